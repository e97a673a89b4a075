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


class Link:
    """Messages go first; data give way to them."""

    def __init__(self) -> None:
        self.wire, self.control = Backlog(), Backlog()

    def data(self, now: int, work: int) -> int:
        """When data are over."""
        return self.wire.serve(now, work)

    def message(self, now: int, work: int) -> int:
        """When a message is over."""
        self.wire.serve(now, work)
        return self.control.serve(now, work)
