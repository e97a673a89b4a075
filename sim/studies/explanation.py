"""Why one run beats another: the gain from each factor, and the bottleneck after each step.

Parts are Shapley values over the factors that differ. The path changes these one after the other,
the one that brings most first, and says after each step which resource then holds the run back.

Effects of a study's factors: mean effects, and the step from one run to another.

``shapley``: what each factor adds on the way from one run to another, averaged over all orders in
which they may change (Shapley, A value for n-person games, 1953): exact, from the figures of all
combinations of the two runs' values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial, isfinite
from typing import Any, TypeVar

import numpy as np

from ...inputs import InputError
from ..run.replications import unsettled_notes
from .engine import run_points
from .evaluate import ERROR, POINT, UNSETTLED, Metrics, Row, Runs
from .levels import is_number, written
from .results import NOTES_MAX, Results

BINDING = "bottleneck.resource"


@dataclass(frozen=True)
class Step:
    """One factor's change from ``old`` to ``new`` (as settings say them), the figure after it and
    what binds before and after it; None where that is not known.
    """

    path: str
    old: str
    new: str
    figure: float
    bound_by: str | None
    then_bound_by: str | None

    @property
    def words(self) -> str:
        """What the step does to the bottleneck."""
        if self.then_bound_by is None:
            return "what binds is not known"
        if self.bound_by == self.then_bound_by:
            return f"still bound by: {self.then_bound_by}"
        return f"bound by: {self.bound_by or 'unknown'} → {self.then_bound_by}"


@dataclass(frozen=True)
class Explanation:
    """``parts``: of each factor in ``after - before``, the largest first; ``path``: the way there,
    in the same order of factors. ``runs``: how many were compared; ``unsettled``: the warnings of
    those that were too short to settle, by the factors that had the second run's values.
    """

    before: float
    after: float
    bound_by: str | None
    parts: Mapping[str, float]
    path: tuple[Step, ...]
    runs: int
    unsettled: Mapping[frozenset[str], str]

    @property
    def settled(self) -> tuple[bool, bool]:
        """Whether the first run did, and the last one."""
        return frozenset() not in self.unsettled, frozenset(self.parts) not in self.unsettled

    @property
    def notes(self) -> list[str]:
        """How many runs did not settle, in the words of ``compare``."""

        def counted(found: list[frozenset[str]]) -> str:
            ends = {"the first": frozenset[str](), "the last": frozenset(self.parts)}
            among = " and ".join(name for name, end in ends.items() if end in found)
            return f"{len(found)} of {self.runs} runs" + (f", {among} among them" if among else "")

        return unsettled_notes(self.unsettled.items(), counted, NOTES_MAX)


def explained(runs: Runs, one: Sequence[Any], other: Sequence[Any], metric: str) -> Explanation:
    """From the run of values ``one`` to that of ``other``, in 2^k runs of k factors that differ;
    raises InputError where these are none or too many, or a run fails.
    """
    changed = [k for k in range(len(one)) if one[k] != other[k]]
    if not changed:
        raise InputError("both runs have the same values", expected="two that differ")
    if len(changed) > SHAPLEY_MAX:
        raise InputError(
            "both runs differ in too many factors to explain",
            token=str(len(changed)),
            expected=f"at most {SHAPLEY_MAX}",
        )
    sets = list(subsets(changed))
    values = [tuple(other[k] if k in c else one[k] for k in range(len(one))) for c in sets]
    by_name = [frozenset(runs.paths[k] for k in c) for c in sets]
    rows = dict(zip(by_name, _rows(runs, values, metric), strict=True))
    ends = [dict(zip(runs.paths, end, strict=True)) for end in (one, other)]
    return _explanation(runs, [runs.paths[k] for k in changed], ends, rows, metric)


def explained_by_rows(results: Results, first: int, second: int, metric: str) -> Explanation | None:
    """The same from rows alone, of two positions; None where some that it takes are not there."""
    found = from_rows(results, first, second, metric)
    if found is None:
        return None
    ends = [results.rows[first], results.rows[second]]
    return _explanation(results.study.runs, found[0], ends, found[1], metric)


def _explanation(
    runs: Runs,
    changed: Sequence[str],
    ends: Sequence[Mapping[str, Any]],
    rows: Mapping[frozenset[str], Row],
    metric: str,
) -> Explanation:
    units = dict(zip(runs.paths, runs.units, strict=True))
    parts = shapley(changed, lambda chosen: float(rows[chosen][metric]))
    ordered = sorted(parts, key=lambda path: -abs(parts[path]))
    at: frozenset[str] = frozenset()
    first, steps = rows[at], []
    for path in ordered:
        before, at = rows[at], at | {path}
        after = rows[at]
        old, new = (written(end[path], units[path]) for end in ends)
        figure = float(after[metric])
        steps.append(Step(path, old, new, figure, before.get(BINDING), after.get(BINDING)))
    return Explanation(
        float(first[metric]),
        float(rows[at][metric]),
        first.get(BINDING),
        {path: parts[path] for path in ordered},
        tuple(steps),
        len(rows),
        {chosen: row[UNSETTLED] for chosen, row in rows.items() if row.get(UNSETTLED) is not None},
    )


def _rows(runs: Runs, values: Sequence[tuple[Any, ...]], metric: str) -> list[Row]:
    """The row of each of a few runs, in their order; raises InputError where one fails."""
    asked = replace(runs, metrics=Metrics((metric, BINDING)))
    found: dict[int, Row] = {}
    for rows in run_points(asked, iter(list(enumerate(values))), expected=len(values)):
        for row in rows:
            if ERROR in row or not is_number(row.get(metric)):
                why = row.get(ERROR) or f"the run has no figure '{metric}'"
                again = asked.command(row[POINT], values[row[POINT]])
                raise InputError(f"an intermediate run failed: {why} ({again})")
            found[row[POINT]] = row
    return [found[k] for k in range(len(values))]


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
