"""Estimates of a study that may still be zero, and how many points would tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NEGLIGIBLE = 0.01  # an index of a hundredth of the variance, known to that, decides nothing


@dataclass(frozen=True)
class Undecided:
    """Of ``columns`` {title: (name, estimate, half of its interval) each}, estimated from so many
    ``points``; an error of ``negligible`` is small enough for an estimate of any size.
    """

    points: int
    negligible: float
    columns: Mapping[str, Sequence[tuple[str, float, float]]]

    @property
    def names(self) -> dict[str, list[str]]:
        """By column, those whose error exceeds both the estimate and what is negligible."""
        found = {
            title: [name for name, value, half in rows if half > self._wanted(value)]
            for title, rows in self.columns.items()
        }
        return {title: names for title, names in found.items() if names}

    @property
    def enough(self) -> int:
        """Points, a power of two, of which the errors would not: they fall with the root."""
        ratios = [
            half / self._wanted(value)
            for rows in self.columns.values()
            for _, value, half in rows
            if half > self._wanted(value)
        ]
        return 1 << math.ceil(math.log2(self.points * max(ratios, default=1.0) ** 2))

    def as_json(self) -> dict[str, Any] | None:
        """None where all can be distinguished from 0."""
        return {**self.names, "points": self.enough} if self.names else None

    @property
    def notes(self) -> list[str]:
        """A line, where there is anything to tell."""
        if not self.names:
            return []
        which = "; ".join(f"'{title}' of {', '.join(names)}" for title, names in self.names.items())
        return [
            f"\nNot distinguishable from 0 yet: {which}. "
            f"Errors fall with the square root of --points; {self.enough:,} would do."
        ]

    def _wanted(self, value: float) -> float:
        return max(abs(value), self.negligible)
