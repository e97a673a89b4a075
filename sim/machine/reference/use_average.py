"""The average of the time in which a processor or a thread was in use, as Linux has it (PELT)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp2

HALF_LIFE_PS = 32_000_000_000  # y^32 = 0.5, in periods of 1,024 us (kernel/sched/pelt.c)


@dataclass
class UseAverage:
    """``part`` of the time, 0 to 1 of a thread, as of ``updated_ps``."""

    part: float = 0.0
    updated_ps: int = 0

    def pass_time(self, now: int, runs: bool) -> None:
        """It was in use all the time since, or not at all."""
        left = exp2(-(now - self.updated_ps) / HALF_LIFE_PS)
        self.part = 1.0 - (1.0 - self.part) * left if runs else self.part * left
        self.updated_ps = now
