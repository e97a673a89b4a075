"""Calibrated intervals: how wide a predicted interval must be to contain nine of ten measurements.

The intervals that planes predict know of random draws and of uncertain facts, not of what the model
itself is wrong by. How far measurements lay outside them in other runs says that: each interval is
widened (or narrowed) by the quantile of these distances, relative to the value (conformalised
quantile regression: Romano, Patterson and Candès, NeurIPS 2019). A row's own run is left out of
what widens it, so that no measured value is part of its own prediction, and the share of rows that
are held is that to expect of a run which was never measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from .rows import Row

LEVEL = 0.90
COVERAGE_AIM = (0.85, 0.95)
HALF_MAX = 1.0  # a wider interval hardly excludes 0: what it holds says nothing of a prediction
OTHERS_MIN = 9  # rows: of fewer, the quantile is not among them


@dataclass(frozen=True)
class Coverage:
    """Of the test rows of a kind: how many there are, the share ``held`` by calibrated intervals,
    and the median of their half widths, relative to the value.
    """

    kind: str
    rows: int
    held: float
    half: float

    @property
    def judgeable(self) -> bool:
        """Whether the intervals are narrow enough to say something."""
        return self.half <= HALF_MAX

    @property
    def holds(self) -> bool:
        """Whether the share is as the intervals say."""
        return self.judgeable and COVERAGE_AIM[0] <= self.held <= COVERAGE_AIM[1]

    def as_json(self) -> dict[str, Any]:
        """As ``--json`` has it."""
        return {
            "kind": self.kind,
            "rows": self.rows,
            "level": LEVEL,
            "held": self.held,
            "half_width": self.half,
            "aim": list(COVERAGE_AIM),
            "judgeable": self.judgeable,
            "holds": self.holds,
        }


def coverage_of(rows: Sequence[Row]) -> list[Coverage]:
    """By kind, of the test set; kinds with too few rows to tell are left out."""
    found = []
    test = [row for row in rows if row.set == "test" and _positive(row)]
    for kind in dict.fromkeys(row.kind for row in test):
        chosen = [row for row in test if row.kind == kind]
        held, halves = 0, []
        for row in chosen:
            widening = _widening([other for other in chosen if other.group != row.group])
            if widening is None:
                break
            low = row.predicted.low * math.exp(-widening)
            high = row.predicted.high * math.exp(widening)
            held += low <= row.measured.value <= high
            halves.append(0.5 * max(high - low, 0.0) / row.predicted.value)
        else:
            found.append(Coverage(kind, len(chosen), held / len(chosen), median(halves)))
    return found


def _widening(others: Sequence[Row]) -> float | None:
    """The logarithm of the factor by which bounds move outwards; None of too few rows."""
    if len(others) < OTHERS_MIN:
        return None
    distances = sorted(
        max(
            math.log(row.predicted.low / row.measured.value),
            math.log(row.measured.value / row.predicted.high),
        )
        for row in others
    )
    rank = math.ceil(LEVEL * (len(distances) + 1))
    return distances[min(rank, len(distances)) - 1]


def _positive(row: Row) -> bool:
    return min(row.predicted.low, row.measured.value) > 0
