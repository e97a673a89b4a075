"""Factors: what runs of a study differ in, as levels, a range or a distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .levels import Levels, tidy

Floats = npt.NDArray[np.float64]

# Distributions without end are drawn within this part of their probability.
TAIL = 1e-4


@dataclass(frozen=True)
class Distribution:
    """How a factor's number is distributed: ``kind``, and its parameters in the factor's unit.

    ``uniform`` and ``loguniform`` from ``low`` to ``high``, ``triangular`` with a ``mode`` between
    them, ``normal`` and ``lognormal`` of ``mean`` and ``deviation`` (lognormal: of the logarithm's
    base e), cut where a ten-thousandth of the probability lies beyond, and at ``low`` and ``high``.
    """

    kind: str
    low: float = -math.inf
    high: float = math.inf
    mode: float = math.nan
    mean: float = math.nan
    deviation: float = math.nan

    def quantiles(self, parts: Floats) -> Floats:
        """The values below which ``parts`` (0 to 1) of the probability lie."""
        low, high = self.low, self.high
        if self.kind == "uniform":
            return low + parts * (high - low)
        if self.kind == "loguniform":
            return np.asarray(low * (high / low) ** parts)
        if self.kind == "triangular":
            knee = (self.mode - low) / (high - low)
            rising = low + np.sqrt(parts * (high - low) * (self.mode - low))
            falling = high - np.sqrt((1.0 - parts) * (high - low) * (high - self.mode))
            return np.where(parts < knee, rising, falling)
        from scipy.special import ndtr, ndtri

        log = self.kind == "lognormal"
        ends = [
            (math.log(end) if end > 0 else -math.inf) if log and math.isfinite(end) else end
            for end in (low, high)
        ]
        first, last = (
            float(ndtr((end - self.mean) / self.deviation)) if math.isfinite(end) else edge
            for end, edge in zip(ends, (TAIL, 1.0 - TAIL), strict=True)
        )
        drawn = self.mean + self.deviation * ndtri(first + parts * (last - first))
        return np.asarray(np.exp(drawn) if log else drawn)


@dataclass(frozen=True)
class Factor:
    """A field, as a setting's ``path`` names it, or ``policy``, and its values.

    ``levels``: those of a grid. ``distribution``: of numbers in ``levels.unit`` that a sample
    draws; None where it draws one of the levels. ``whole``: numbers are rounded.
    """

    path: str
    levels: Levels
    distribution: Distribution | None = None
    whole: bool = False

    @property
    def unit(self) -> str:
        """The unit of its numbers."""
        return self.levels.unit

    @property
    def ordered(self) -> bool:
        """Whether its values are numbers; words, such as machines and policies, have no order."""
        return self.distribution is not None or self.levels.numeric

    def drawn(self, parts: Floats) -> list[Any]:
        """Values for ``parts`` (0 to 1) of its probability."""
        if self.distribution is None:
            count = len(self.levels.values)
            level = np.minimum((parts * count).astype(int), count - 1)
            return [self.levels.values[k] for k in level]
        found = self.distribution.quantiles(parts).tolist()
        return [tidy(value, self.whole) for value in found]
