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


def rounded(time_ps: float) -> int:
    """The nearest picosecond of a time that is not negative."""
    return int(time_ps + 0.5)
