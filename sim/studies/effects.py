"""Effects of a study's factors: mean effects, and the step from one run to another.

``shapley``: what each factor adds on the way from one run to another, averaged over all orders in
which they may change (Shapley, A value for n-person games, 1953): exact, from the figures of all
combinations of the two runs' values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import factorial, isfinite
from typing import Any, TypeVar

import numpy as np

from .evaluate import Row
from .levels import is_number
from .results import Results

Part = TypeVar("Part")
SHAPLEY_MAX = 8
BAND = (0.1, 0.9)


@dataclass(frozen=True)
class LevelEffect:
    """Runs with one value of a factor: their mean figure, and between what most of them lie."""

    value: Any
    mean: float
    low: float
    high: float
    runs: int


def level_effects(results: Results, path: str, metric: str, most: int = 24) -> list[LevelEffect]:
    """By value of the factor at ``path``, or by as many equal parts of it as there may be."""
    figures = results.column(metric)
    values = [row.get(path) for row in results.rows]
    named: dict[int, Any]
    numeric = all(is_number(value) for value in values)
    if numeric and len(set(values)) > most:
        found = np.array(values, dtype=np.float64)
        edges = np.quantile(found, np.linspace(0.0, 1.0, most + 1))
        part = np.clip(np.searchsorted(edges, found, side="right") - 1, 0, most - 1)
        groups = {k: np.flatnonzero(part == k) for k in range(most)}
        named = {k: float(found[members].mean()) for k, members in groups.items() if len(members)}
    else:
        distinct: list[Any] = list(dict.fromkeys(values))
        if numeric:
            distinct.sort()
        named = dict(enumerate(distinct))
        place: dict[Any, int] = {value: k for k, value in named.items()}
        of_row = np.array([place[value] for value in values])
        groups = {k: np.flatnonzero(of_row == k) for k in named}
    effects = []
    for k, value in named.items():
        inside = figures[groups[k]]
        inside = inside[np.isfinite(inside)]
        if len(inside):
            low, high = np.quantile(inside, BAND)
            effects.append(
                LevelEffect(value, float(inside.mean()), float(low), float(high), len(inside))
            )
    return effects


def main_effects(results: Results, metric: str) -> dict[str, tuple[LevelEffect, LevelEffect]]:
    """By factor, the values with the least and the most mean figure; the widest first."""
    found = {}
    for path in results.study.runs.paths:
        effects = level_effects(results, path, metric, most=8)
        if len(effects) > 1:
            ordered = sorted(effects, key=lambda effect: effect.mean)
            found[path] = (ordered[0], ordered[-1])
    wide = sorted(found.items(), key=lambda item: item[1][0].mean - item[1][1].mean)
    return dict(wide)


def subsets(of: Sequence[Part]) -> Iterator[frozenset[Part]]:
    """All of them, the empty one first and the whole last."""
    for size in range(len(of) + 1):
        yield from map(frozenset, combinations(of, size))


def shapley(changed: Sequence[str], figure: Callable[[frozenset[str]], float]) -> dict[str, float]:
    """By factor of ``changed``, its part in figure(all) - figure(none); the parts add up to that.

    ``figure``: of the run in which these factors have the second run's values.
    """
    count = len(changed)
    known = {chosen: figure(chosen) for chosen in subsets(changed)}
    parts = dict.fromkeys(changed, 0.0)
    for chosen, value in known.items():
        for factor in changed:
            if factor in chosen:
                continue
            size = len(chosen)
            weight = factorial(size) * factorial(count - size - 1)
            gain = known[chosen | {factor}] - value
            parts[factor] += weight / factorial(count) * gain
    return parts


def from_rows(
    results: Results, first: int, second: int, metric: str
) -> tuple[list[str], dict[frozenset[str], Row]] | None:
    """The factors by which the rows at two positions differ, and by those of them that have the
    second one's values the row; None where a combination was not run or has no figure, or where
    more factors differ than is exact in time.
    """
    paths, rows = results.study.runs.paths, results.rows
    one, other = rows[first], rows[second]
    changed = [path for path in paths if one.get(path) != other.get(path)]
    if not 0 < len(changed) <= SHAPLEY_MAX:
        return None
    figures = results.column(metric)
    row_at = {_key(row, paths): row for row, y in zip(rows, figures, strict=True) if isfinite(y)}
    found = {}
    for chosen in subsets(changed):
        mixed = {p: (other if p in chosen else one).get(p) for p in paths}
        row = row_at.get(_key(mixed, paths))
        if row is None:
            return None
        found[chosen] = row
    return changed, found


def _key(row: Mapping[str, Any], paths: Sequence[str]) -> str:
    return repr([row.get(path) for path in paths])
