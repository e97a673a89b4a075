"""Recent utilisation of a server, as ``kernel/load_window.hpp``."""

from __future__ import annotations

WINDOW_PS = 100_000_000  # 100 µs


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
