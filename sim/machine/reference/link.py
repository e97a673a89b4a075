"""A directed link, as ``kernel/link.hpp``."""

from __future__ import annotations

from .load_window import WINDOW_PS
from .servers import Backlog, rounded

DATA_PART_MIN = 0.05  # of the wire, that control messages leave to data at least


class Link:
    """Control messages go first; data get what these left free in the last window."""

    def __init__(self) -> None:
        self.wire, self.control = Backlog(), Backlog()
        self.data_work = self.since = self.start = self.work = 0
        self.stretch = 1.0

    def data(self, now: int, work: int) -> int:
        """When data are across that take the wire so long."""
        self.look(now)
        self.data_work += work
        return self.wire.serve(now, rounded(work * self.stretch))

    def message(self, now: int, work: int) -> int:
        """When a control message is across."""
        self.look(now)
        self.work += work
        return self.control.serve(now, work)

    def look(self, now: int) -> None:
        """Once a window: what control messages leave to data."""
        if now - self.start >= WINDOW_PS:
            self.stretch = 1.0 / max(1.0 - self.work / (now - self.start), DATA_PART_MIN)
            self.start, self.work = now, 0

    def done(self, now: int) -> int:
        """Work done by now, since counting began; data at the stretch that they had in the mean."""
        mean = self.wire.taken / self.data_work if self.data_work else self.stretch
        data = rounded(self.wire.done(now) / mean)
        return min(data + self.control.done(now), now - self.since)

    def start_counting(self, now: int) -> None:
        """Forgets what was done."""
        self.wire.start_counting(now)
        self.control.start_counting(now)
        self.data_work, self.since = 0, now
