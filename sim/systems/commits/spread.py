"""How the time of a single step varies: a distribution of factors on its mean, which is 1.

Measured alone (``numatwin machine measure``), as quantiles; a step that is made of several, each
independent of the others, has the sum of theirs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....inputs import InputError
from ... import _kernel
from .facts import QUANTILES

Floats = npt.NDArray[np.float64]
# The slowest of a machine file's, with a mean of their own, may be some 2.6e5 times the whole mean;
# the kernel takes a million.
FACTOR_MAX = 5e5
# Where a sum of steps is told: as fine as its tail needs.
SHARES = np.concatenate(
    [
        np.linspace(0.0, 0.9, 91),
        np.linspace(0.905, 0.99, 18),
        np.linspace(0.991, 0.998, 15),
        np.linspace(0.9982, 0.9998, 9),
        1.0 - 1e-4 / 2.0 ** np.arange(5),
        [1.0],
    ]
)
HALVINGS = 7  # of the slowest, which a machine file has the mean of


@dataclass(frozen=True)
class Spread:
    """``factors[k]`` at the share ``shares[k]`` of all draws, straight lines in between."""

    shares: tuple[float, ...]
    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in itertools.pairwise(self.shares))
        if not (rising and self.shares[:1] == (0.0,) and self.shares[-1:] == (1.0,)):
            raise InputError("shares of a spread", expected="rising from 0 to 1")
        falls = any(a > b for a, b in itertools.pairwise(self.factors))
        if len(self.factors) != len(self.shares) or falls or self.factors[0] < 0:
            raise InputError("factors of a spread", expected="one for each share, not falling")
        if not (math.isclose(self.mean, 1.0, rel_tol=1e-9) and self.factors[-1] <= FACTOR_MAX):
            raise InputError("mean of a spread", token=f"{self.mean:g}", expected="1")

    @property
    def mean(self) -> float:
        """Of the factors."""
        return _mean(np.array(self.shares), np.array(self.factors))

    def at(self, share: Floats) -> Floats:
        """The factor that this share of all draws does not exceed."""
        found: Floats = np.interp(share, self.shares, self.factors)
        return found

    def draws(self) -> _kernel.Spread:
        """For both planes."""
        return _kernel.Spread(self.shares, self.factors)


def measured(factors: Sequence[float]) -> Spread:
    """From a list of a machine file: QUANTILES, then the mean of what is beyond the last of them.

    Beyond it is a power law, as interruptions are mostly short and seldom very long: of the rest a
    part r takes more than f ÷ r^(1/a) of a last quantile f, with a mean of f · a/(a - 1). In lines
    through its halves; all is then scaled so that the mean is 1.
    """
    *known, slowest = factors
    last, rest = known[-1], 1.0 - QUANTILES[-1]
    parts = 0.5 ** np.arange(HALVINGS + 1)
    beyond = last * parts ** -(1.0 - last / slowest) if slowest > 0 else parts * 0.0
    # The last line's end is where the mean of all lines is this mean; level where that is below.
    means = (beyond[1:] + beyond[:-1]) / 2
    end = 2.0 * (slowest - np.sum(means * -np.diff(parts))) / parts[-1] - beyond[-1]
    shares = [*QUANTILES, *(1.0 - rest * parts[1:]), 1.0]
    return _scaled(np.array(shares), np.array([*known, *beyond[1:], end]))


def shifted(spread: Spread, mean: float, part: float) -> Spread:
    """Of the part of a step: what the whole, with that ``mean``, varies is the part's alone."""
    factors = 1.0 + (np.array(spread.factors) - 1.0) * mean / part
    return _scaled(np.array(spread.shares), factors)


def mixed(parts: Sequence[tuple[float, float, Spread]]) -> Spread:
    """Of a step that is now one, now another one: how often, the mean time, how it varies."""
    if len(parts) == 1:
        return parts[0][2]
    weights, middles = np.diff(SHARES), SHARES[:-1] + np.diff(SHARES) / 2
    values = [time * spread.at(middles) for _, time, spread in parts]
    return _of_means(
        _cut(np.concatenate(values), np.concatenate([often * weights for often, _, _ in parts]))
    )


def summed(parts: Sequence[tuple[float, Spread | None]]) -> Spread | None:
    """Of steps together, each with its mean time (or its part of it) and how it varies."""
    whole = sum(time for time, _ in parts)
    varying = [(time / whole, spread) for time, spread in parts if spread is not None and time > 0]
    if not varying:
        return None
    fixed = 1.0 - sum(part for part, _ in varying)
    if len(varying) == 1:
        part, spread = varying[0]
        return _scaled(np.array(spread.shares), fixed + part * np.array(spread.factors))
    # The middles of as many parts of all draws, with their weights.
    weights = np.diff(SHARES)
    middles = SHARES[:-1] + weights / 2
    values: Floats | None = None
    for part, spread in varying:
        one = part * spread.at(middles)
        if values is not None:
            sums = np.add.outer(values, one).ravel()
            values = _cut(sums, np.outer(weights, weights).ravel())
        else:
            values = one
    assert values is not None
    return _of_means(fixed + values)


def _of_means(means: Floats) -> Spread:
    """From the means of what lies between SHARES."""
    middles = (SHARES[1:] + SHARES[:-1]) / 2
    ends = np.interp(SHARES[1:-1], middles, means)
    last = max(2.0 * means[-1] - ends[-1], ends[-1])
    return _scaled(SHARES, np.array([means[0], *ends, last]))


def _cut(values: Floats, weights: Floats) -> Floats:
    """Means of what lies between SHARES of such values."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    shares = np.concatenate([[0.0], np.cumsum(weights)]) / weights.sum()
    sums = np.concatenate([[0.0], np.cumsum(values * weights)]) / weights.sum()
    means: Floats = np.diff(np.interp(SHARES, shares, sums)) / np.diff(SHARES)
    return means


def _scaled(shares: Floats, factors: Floats) -> Spread:
    factors = np.maximum.accumulate(np.clip(factors, 0.0, None))
    mean = _mean(shares, factors)
    return Spread(tuple(shares.tolist()), tuple((factors / mean).tolist()))


def _mean(shares: Floats, factors: Floats) -> float:
    return float(np.sum(np.diff(shares) * (factors[1:] + factors[:-1]) / 2))
