"""Servers without an event of their own, as those of ``kernel/backlog.hpp``."""

from __future__ import annotations


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


# Over which control messages count, and what they leave to data at least.
WINDOW_PS, DATA_PART_MIN = 100_000_000, 0.05


class Link:
    """Control messages go first, between data; data get what these left free in the last window."""

    def __init__(self) -> None:
        self.wire, self.control = Backlog(), Backlog()
        self.data_work = self.since = self.window_start = self.window_work = 0
        self.stretch = 1.0

    def data(self, now: int, work: int) -> int:
        """When data are over."""
        self._look(now)
        self.data_work += work
        return self.wire.serve(now, int(work * self.stretch + 0.5))

    def message(self, now: int, work: int) -> int:
        """When a message is over."""
        self._look(now)
        self.window_work += work
        return self.control.serve(now, work)

    def _look(self, now: int) -> None:
        elapsed = now - self.window_start
        if elapsed >= WINDOW_PS:
            self.stretch = 1.0 / max(1.0 - self.window_work / elapsed, DATA_PART_MIN)
            self.window_start, self.window_work = now, 0

    def done(self, now: int) -> int:
        """Work of both kinds done by now, since counting began."""
        mean = self.wire.taken / self.data_work if self.data_work else self.stretch
        data = int(self.wire.done(now) / mean + 0.5)
        return min(data + self.control.done(now), now - self.since)

    def start_counting(self, now: int) -> None:
        """Forgets what was done."""
        self.wire.start_counting(now)
        self.control.start_counting(now)
        self.data_work, self.since = 0, now
