"""A directed link, as ``kernel/link.hpp``."""

from __future__ import annotations

from .load_window import WINDOW_PS
from .servers import Backlog, rounded

DATA_PART_MIN = 0.05  # of the wire, that control messages leave to data at least


class Link:
    """Control messages go first; data get what these left free in the last window."""

    def __init__(self) -> None:
        self.both = Backlog()
        self.data_free = self.control_free = self.start = self.work = 0
        self.stretch = 1.0

    def data(self, now: int, work: int) -> int:
        """When data are across that take the wire so long."""
        self.look(now)
        self.both.serve(now, work)
        self.data_free = max(self.data_free, now) + rounded(work * self.stretch)
        return self.data_free

    def message(self, now: int, work: int) -> int:
        """When a control message is across."""
        self.look(now)
        self.work += work
        self.both.serve(now, work)
        self.control_free = max(self.control_free, now) + work
        return self.control_free

    def look(self, now: int) -> None:
        """Once a window: what control messages leave to data."""
        if now - self.start >= WINDOW_PS:
            self.stretch = 1.0 / max(1.0 - self.work / (now - self.start), DATA_PART_MIN)
            self.start, self.work = now, 0

    def done(self, now: int) -> int:
        """How long the wire was busy by now, since counting began: while any of both is left."""
        return self.both.done(now)

    def start_counting(self, now: int) -> None:
        """Forgets what was done."""
        self.both.start_counting(now)
