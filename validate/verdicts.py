"""What a comparison says: better, worse, no difference, or undecided, by confidence interval.

The relative difference to what a figure is held against, counted so that more is better, has an
interval [low, high]. With a tolerance T:

- *worse*: high < -T, *better*: low > T;
- *no difference* within T: -T <= low and high <= T;
- else *undecided*: more replications may tell, up to the last look.

A run looks several times, so each interval has the confidence 1 - ALPHA / looks (Bonferroni): the
chance that any of them misses the truth, and so that a verdict is wrong, is at most ALPHA.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..sim.statistics import Interval, Sample, ratio

ALPHA = 0.01
# Replications at each look, as far as they go: each time about half as many again.
# Of two independent samples the first look is later: Welch's interval of two or three values, at
# such a confidence, misses the truth several times as often as it says.
WELCH_MIN = 5
LOOKS = (2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 675, 1_000)

Verdict = Literal["better", "worse", "no difference", "undecided"]


@dataclass(frozen=True)
class Difference:
    """A verdict with what it rests on. ``relative``: more than 0 is better, None if unknown."""

    verdict: Verdict
    relative: Interval | None
    paired: bool = False


def looks_up_to(most: int) -> list[int]:
    """After how many replications to look, the last time after ``most``."""
    return [*(n for n in LOOKS if n < most), most]


def judged(
    reference: Sample,
    value: Sample,
    *,
    higher_is_better: bool,
    tolerance: float,
    looks: int,
    paired: bool,
) -> Difference:
    """``value`` against ``reference``, at one of so many ``looks``."""
    if reference.value == value.value == 0.0:
        return Difference(verdict_of(0.0, 0.0, tolerance), Interval(0.0, 0.0, 0.0), paired)
    counts = [len(one.replicates) for one in (reference, value)]
    if not paired and all(counts) and min(counts) < WELCH_MIN:
        return Difference("undecided", None, paired)
    found = ratio(reference, value, 1.0 - ALPHA / looks, paired)
    if found is None or not all(map(math.isfinite, (found.low, found.high))):
        return Difference("undecided", None, paired)
    sign = 1.0 if higher_is_better else -1.0
    low, high = sorted((sign * (found.low - 1.0), sign * (found.high - 1.0)))
    relative = Interval(sign * (found.value - 1.0), low, high)
    return Difference(verdict_of(low, high, tolerance), relative, paired)


def verdict_of(low: float, high: float, tolerance: float) -> Verdict:
    """The verdict of an interval of the relative difference."""
    if high < -tolerance:
        return "worse"
    if low > tolerance:
        return "better"
    return "no difference" if -tolerance <= low and high <= tolerance else "undecided"


def sample(values: Sequence[float], exact: bool) -> Sample:
    """A figure's replications; an ``exact`` one has one value and no error."""
    mean = math.fsum(values) / len(values)
    return Sample(mean) if exact else Sample(mean, tuple(values))
