"""Servers without an event of their own, and their recent load, as ``kernel/fifo_server.hpp`` and
``kernel/memory_controller.hpp``."""

WINDOW_PS = 100_000_000  # 100 µs


class Backlog:
    """Works off what it is given, first come first served."""

    free = taken = before = 0  # before: left of what came before counting began

    def serve(self, now: int, work: int) -> int:
        """When ``work`` that comes ``now`` is done."""
        self.free = max(self.free, now) + work
        self.taken += work
        return self.free

    def done(self, now: int) -> int:
        """Work done by now, since counting began."""
        return self.taken - max(self.free - now, 0) + self.before

    def start_counting(self, now: int) -> None:
        """Forgets what was done."""
        self.taken, self.before = 0, max(self.free - now, 0)


def rounded(time_ps: float) -> int:
    """The nearest picosecond of a time that is not negative."""
    return int(time_ps + 0.5)


class LoadWindow:
    """The load of the last window, by which latencies rise."""

    start = work = 0  # of the window under way

    def close(self, now: int) -> float | None:
        """The load of the window under way (at most 1) if it is over; the next one begins."""
        elapsed = now - self.start
        if elapsed < WINDOW_PS:
            return None
        load = min(1.0, self.work / elapsed)
        self.start, self.work = now, 0
        return load
