"""A core and the time of its threads, as ``kernel/core.hpp``."""

from typing import NamedTuple

from .overlap import overlapped
from .servers import Backlog, rounded


class CoreWork(NamedTuple):
    """What a thread does between two points, in ps: ``instructions`` that overlap with cache misses
    (``held``: the time that they take a thread that has all of the core's miss slots), and
    ``separate`` ones that overlap with nothing; ``stall``: of a stream."""

    instructions: float = 0.0
    held: float = 0.0
    separate: float = 0.0
    stall: float = 0.0

    def times(self, pace: float) -> "CoreWork":
        """On a core that takes so many times as long."""
        return CoreWork(
            self.instructions * pace, self.held * pace, self.separate * pace, self.stall
        )


class PhaseEnd(NamedTuple):
    """When a phase ends: were the thread alone (with its share of the slots), and as it is."""

    alone: int
    done: int


class Core:
    """Its hardware ``threads`` take turns on its pipeline and share its miss slots equally."""

    def __init__(self, threads: int = 0) -> None:
        self.threads, self.server, self.held = threads, Backlog(), 0.0

    def begin(self, now: int, work: CoreWork) -> PhaseEnd:
        """A thread of this core begins a phase: its instructions and misses overlap."""
        instructions, held, separate, stall = work
        overlap = overlapped(instructions, held * self.threads, stall)
        alone = done = now + rounded(separate + overlap)
        if self.threads > 1:
            done = max(done, self.server.serve(now, rounded(separate + instructions)))
        self.held += held
        return PhaseEnd(alone, done)

    def executed(self, now: int) -> int:
        """Time that its pipeline worked; of a core with one thread the thread tells."""
        return self.server.done(now)

    def start_counting(self, now: int) -> None:
        """Forgets what was done."""
        self.server.start_counting(now)
        self.held = 0.0


class ThreadTime:
    """How long a thread is kept waiting by all that it shares: memory, links, its core; and what
    is left of its phase."""

    def __init__(self) -> None:
        self.before = self.begun = 0  # held up before; the phase under way, and its ends
        self.alone = self.over = 0
        self.held = 0.0

    def begin(self, now: int, alone: int, held: float) -> None:
        """A phase begins, and would be over at ``alone`` with nobody in its way; its misses hold
        slots for ``held``."""
        self.before += self.over - self.alone
        self.begun, self.alone, self.held = now, alone, held

    def left(self, now: int) -> float:
        """The part of its phase that is ahead."""
        return (self.over - now) / (self.over - self.begun) if self.over > now else 0.0

    def held_left(self, now: int) -> float:
        """Slot time of misses that is ahead: they come evenly."""
        return self.left(now) * self.held

    def held_up(self, now: int) -> int:
        """Time that it was kept waiting up to now, since counting began."""
        return self.before + max(min(now, self.over) - self.alone, 0)

    def start_counting(self, now: int) -> None:
        """Forgets what was counted."""
        self.before = 0
        self.before = -self.held_up(now)
