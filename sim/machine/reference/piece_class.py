"""Pieces that are alike, and so go on at one pace, as ``kernel/piece_class.hpp``."""

from dataclasses import dataclass, field
from math import inf

from .core_parts import CorePart


@dataclass
class PieceClass:
    """Its clock: lines that each member has served. A member that comes at clock V with w lines
    ends at V + w."""

    demand: int
    node: int
    part: CorePart
    """Of its members."""
    clock: float = 0.0
    since: int = 0
    """Of ``clock``."""
    pace: float = inf
    begun: float = 0.0
    """Clocks at which its members began, all together."""
    done: float = 0.0
    """Lines of past members."""
    marked: float = 0.0
    """Lines served up to the window under way."""
    first_end: float = inf
    members: set[int] = field(default_factory=set)

    def clock_at(self, now: int) -> float:
        """The clock, which goes on at the present pace."""
        return self.clock + (now - self.since) / self.pace

    def served(self, now: int) -> float:
        """Lines, of all members so far."""
        return self.done + len(self.members) * self.clock_at(now) - self.begun

    def add(self, name: int, began: float) -> None:
        """It joins at this clock."""
        self.begun += began
        self.members.add(name)

    def remove(self, name: int, began: float, lines: float) -> None:
        """It leaves, with so many lines served."""
        self.done += lines
        self.members.remove(name)
        self.begun = self.begun - began if self.members else 0.0
