"""Verdicts of comparisons: better, worse, no difference, or undecided, by confidence interval.

The relative difference to what a figure is held against, counted so that more is better, has an
interval [low, high]. With a tolerance T:

- *worse*: high < -T, *better*: low > T;
- *no difference* within T: -T <= low and high <= T;
- else *undecided*: more replications may tell, up to the last look.

A suite has several checks, and each of them looks several times; so each interval has the
confidence 1 - ALPHA / (looks * checks) (Bonferroni). The chance that any interval of the whole
suite misses the truth, and so that any of its verdicts is wrong, is at most ALPHA. All checks of
the file count, so that a verdict does not depend on which of them are run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..sim.run.statistics import Interval, Sample, difference, ratio

ALPHA = 0.01
# Replications at each look, as far as they go: each time about half as many again.
LOOKS = (2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 675, 1_000)
# Of two independent samples the first look is later: Welch's interval of two or three values, at
# such a confidence, misses the truth several times as often as it says.
WELCH_MIN = 5

Verdict = Literal["better", "worse", "no difference", "undecided"]
VERDICTS: tuple[Verdict, ...] = ("better", "worse", "no difference", "undecided")


@dataclass(frozen=True)
class Difference:
    """A verdict with what it rests on. ``relative``: more than 0 is better, None if unknown."""

    verdict: Verdict
    relative: Interval | None
    paired: bool = False


UNKNOWN = Difference("undecided", None)


def looks_up_to(most: int, least: int = LOOKS[0]) -> list[int]:
    """After how many replications to look: from ``least`` on, the last time after ``most``."""
    return [*(n for n in LOOKS if least <= n < most), most]


def confidence_of(looks: int, checks: int = 1) -> float:
    """The confidence of each interval where so many ``checks`` look so often."""
    return 1.0 - ALPHA / (looks * checks)


def judged(
    reference: Sample,
    value: Sample,
    *,
    higher_is_better: bool,
    tolerance: float,
    confidence: float,
    paired: bool,
    grain: float = 0.0,
) -> Difference:
    """``value`` against ``reference``.

    ``grain``: by how much the difference of the two may be off, in their unit, because figures are
    counted in steps; replications that happen to fall on one step would look certain.
    """
    if reference.value == value.value == 0.0:
        return Difference(verdict_of(0.0, 0.0, tolerance), Interval(0.0, 0.0, 0.0), paired)
    counts = [len(entry.replicates) for entry in (reference, value)]
    if not paired and all(counts) and min(counts) < WELCH_MIN:
        return UNKNOWN
    if reference.value == 0.0:
        return _against_nothing(reference, value, higher_is_better, confidence, paired, grain)
    found = ratio(reference, value, confidence, paired)
    if found is None or not all(map(math.isfinite, (found.low, found.high))):
        return UNKNOWN
    sign = 1.0 if higher_is_better else -1.0
    step = grain / abs(reference.value)
    low, high = sorted((sign * (found.low - step - 1.0), sign * (found.high + step - 1.0)))
    relative = Interval(sign * (found.value - 1.0), low, high)
    return Difference(verdict_of(low, high, tolerance), relative, paired)


def _against_nothing(
    reference: Sample,
    value: Sample,
    higher_is_better: bool,
    confidence: float,
    paired: bool,
    grain: float,
) -> Difference:
    """Of 0 there is no part: whatever is surely not 0 is beyond every tolerance."""
    found = difference(reference, value, confidence, paired)
    if found is None or found.low - grain <= 0.0 <= found.high + grain:
        return UNKNOWN
    higher = found.value > 0.0
    return Difference("better" if higher == higher_is_better else "worse", None, paired)


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
