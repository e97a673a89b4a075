"""Designs: which values of its factors a study runs, point by point.

Points are numbered; point i has the same values whoever asks for it, and however many are asked.

Factors: what runs of a study differ in, as levels, a range or a distribution.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...inputs import InputError, parse_yaml
from ...inputs.csv_rows import csv_rows
from ...inputs.text_lines import text_lines
from ..kernel.arrays import Floats
from .levels import Levels, in_common_unit, tidy

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


TABLE_BYTES_MAX = 64 * 2**20


@dataclass(frozen=True)
class Design:
    """The points of a study. ``of(i)``: the values of point i, in the order of the factors."""

    kind: str
    factors: tuple[Factor, ...]
    count: int
    columns: tuple[tuple[Any, ...], ...] | None = None
    """Of a sample or a table: the values of each factor; a grid needs none."""

    def of(self, point: int) -> tuple[Any, ...]:
        """The values of a point."""
        if self.columns is not None:
            return tuple(column[point] for column in self.columns)
        if self.kind == "one_at_a_time":
            return self._one_at_a_time(point)
        values = []
        for factor in reversed(self.factors):
            point, level = divmod(point, len(factor.levels.values))
            values.append(factor.levels.values[level])
        return tuple(reversed(values))

    def _one_at_a_time(self, point: int) -> tuple[Any, ...]:
        """The first levels of all, then each factor's others in turn."""
        values = [factor.levels.values[0] for factor in self.factors]
        for k, factor in enumerate(self.factors):
            others = len(factor.levels.values) - 1
            if 0 < point <= others:
                values[k] = factor.levels.values[point]
            point -= others
            if point <= 0:
                break
        return tuple(values)

    def points(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """All points with their numbers."""
        for point in range(self.count):
            yield point, self.of(point)


def grid(factors: Sequence[Factor]) -> Design:
    """All combinations; the last factor changes from point to point."""
    count = math.prod(len(factor.levels.values) for factor in factors)
    return Design("grid", tuple(factors), count)


def one_at_a_time(factors: Sequence[Factor]) -> Design:
    """The first level of each factor, and from there each factor's other levels alone."""
    count = 1 + sum(len(factor.levels.values) - 1 for factor in factors)
    return Design("one_at_a_time", tuple(factors), count)


def latin_hypercube(factors: Sequence[Factor], count: int, seed: int) -> Design:
    """``count`` points of which each has a stripe of its own of each factor's probability."""
    from scipy.stats import qmc

    sampler = qmc.LatinHypercube(d=len(factors), rng=np.random.default_rng(seed))
    return sampled("latin_hypercube", factors, np.asarray(sampler.random(count)))


def sobol(factors: Sequence[Factor], count: int, seed: int) -> Design:
    """The first ``count`` points of a scrambled Sobol sequence (Owen's scrambling)."""
    from scipy.stats import qmc

    sampler = qmc.Sobol(d=len(factors), rng=np.random.default_rng(seed))
    whole = 1 << max(count - 1, 0).bit_length()  # SciPy draws powers of two alone in balance
    return sampled("sobol", factors, np.asarray(sampler.random(whole))[:count])


def sampled(kind: str, factors: Sequence[Factor], parts: Floats) -> Design:
    """The points at ``parts`` (N, k) of the factors' probability."""
    columns = tuple(tuple(factor.drawn(parts[:, k])) for k, factor in enumerate(factors))
    return Design(kind, tuple(factors), len(parts), columns)


def table(path: Path, factors: Sequence[str]) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The columns of a CSV file and their units, for ``factors``; raises InputError."""
    try:
        rows = list(csv_rows(text_lines(path, TABLE_BYTES_MAX), str(path)))
    except OSError as failure:
        raise InputError(f"cannot be read: {failure.strerror}", str(path)) from None
    if len(rows) < 2:
        raise InputError("an empty table", str(path), expected="a head and a row for each point")
    head = [name.strip() for name in rows[0][1]]
    columns, units = [], []
    for name in factors:
        if name not in head:
            raise InputError(f"no column '{name}'", str(path), 1, expected="one for each factor")
        at = head.index(name)
        values, unit = in_common_unit([_cell(row[at], path, line) for line, row in rows[1:]])
        columns.append(tuple(values))
        units.append(unit)
    return columns, units


def _cell(text: str, path: Path, line: int) -> Any:
    if not text.strip():
        raise InputError("an empty cell", str(path), line, expected="a value for each factor")
    try:
        return parse_yaml(text.strip(), str(path)).value
    except InputError as failure:
        failure.line, failure.column = line, None
        raise
