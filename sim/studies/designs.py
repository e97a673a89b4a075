"""Designs: which values of its factors a study runs, point by point.

Points are numbered; point i has the same values whoever asks for it, and however many are asked.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...inputs import InputError, check_regular, parse_yaml
from .factors import Factor
from .levels import in_common_unit

Floats = npt.NDArray[np.float64]

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
        check_regular(path)
        if path.stat().st_size > TABLE_BYTES_MAX:
            raise InputError(f"too large: expected at most {TABLE_BYTES_MAX:,} bytes", str(path))
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = [row for row in csv.reader(stream) if row]
    except OSError as failure:
        raise InputError(f"cannot be read: {failure.strerror}", str(path)) from None
    except (csv.Error, UnicodeDecodeError) as failure:
        raise InputError(f"not a CSV table: {failure}", str(path)) from None
    if len(rows) < 2:
        raise InputError("an empty table", str(path), expected="a head and a row for each point")
    head = [name.strip() for name in rows[0]]
    for name in factors:
        if name not in head:
            raise InputError(f"no column '{name}'", str(path), 1, expected="one for each factor")
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(head):
            message = "a row of another length"
            expected = f"{len(head)} cells"
            raise InputError(message, str(path), line, token=str(len(row)), expected=expected)
    columns, units = [], []
    for name in factors:
        texts = [row[head.index(name)] for row in rows[1:]]
        values, unit = in_common_unit([_cell(t, path, line) for line, t in enumerate(texts, 2)])
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
