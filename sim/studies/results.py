"""The rows of a study as columns, with the verdicts of its constraints and its objective.

How a figure follows a factor: curves of a study's rows, one for each setting of the others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...inputs.grouping import stretches
from ..kernel.arrays import Flags, Floats, Ints
from ..run.replications import unsettled_notes
from .evaluate import COST, ERROR, LIKELY, OWN, POINT, UNSETTLED, less_is_better
from .levels import is_number, written
from .run_study import check_same
from .store import Store, rows_in
from .study import Study

SPANS_MAX, NOTES_MAX = 6, 3
DIGITS = 9  # figures that agree to so many are equal


@dataclass(frozen=True)
class Results:
    """Rows of a study, by point. ``table``: as they are stored, with ``cost`` where machines have
    prices.
    """

    study: Study
    table: pa.Table

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A row a run, without what it has no value for."""
        return list(rows_in(self.table))

    @cached_property
    def metrics(self) -> list[str]:
        """Names of the figures, without the bounds of their intervals."""
        own = (*OWN, *self.study.runs.paths)
        return [
            name
            for name in self.table.column_names
            if name not in own and not name.endswith((".low", ".high"))
        ]

    @cached_property
    def numeric(self) -> list[str]:
        """Names of the figures that are numbers, and known of any run."""
        return [name for name in self.metrics if is_numeric(self.table.schema.field(name).type)]

    def column(self, name: str) -> Floats:
        """(N,) numbers of that name, NaN where there are none."""
        if name not in self.table.column_names:
            return np.full(len(self.table), np.nan)
        column = self.table[name]
        if not is_numeric(column.type):
            return np.full(len(self.table), np.nan)
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)

    @property
    def points(self) -> Ints:
        """(N,) the number of each row's point."""
        return np.asarray(self.table[POINT].to_numpy(), dtype=np.int64)

    @cached_property
    def slacks(self) -> Mapping[str, Floats]:
        """By constraint, (N,) how far each run is from breaking it; negative where it does."""
        return {
            constraint.text: constraint.slack(self.column(constraint.metric))
            for constraint in self.study.constraints
        }

    @cached_property
    def feasible(self) -> Flags:
        """(N,) whether a run was made and holds all constraints."""
        holds = np.array([row.get(ERROR) is None for row in self.rows], dtype=bool)
        for slack in self.slacks.values():
            holds &= slack >= 0  # False where unknown
        return holds

    @cached_property
    def objective(self) -> Floats | None:
        """(N,) the objective's figure; None without one."""
        objective = self.study.objective
        if objective is None:
            return None
        return objective.values({name: self.column(name) for name in objective.metrics})

    @cached_property
    def asked(self) -> list[str]:
        """The figures that objective and constraints are of, and what decides among machines of
        equal cost.
        """
        objective = self.study.objective
        asked = [
            *(objective.metrics if objective else ()),
            *(constraint.metric for constraint in self.study.constraints),
        ]
        if objective is not None and objective.metric == COST and self.throughput is not None:
            asked.append(self.throughput)
        return list(dict.fromkeys(asked))

    @cached_property
    def unknown(self) -> list[str]:
        """What is asked for and not known of runs that were made, a sentence each."""
        made = np.array([row.get(ERROR) is None for row in self.rows], dtype=bool)
        bounds = {constraint.metric for constraint in self.study.constraints}
        found = []
        for metric in self.asked:
            count = int((made & ~np.isfinite(self.column(metric))).sum())
            if count:
                runs = "1 run" if count == 1 else f"{count:,} runs"
                then = "cannot hold its bound" if metric in bounds else "cannot be the best"
                found.append(f"{metric} is not known of {runs}, which {then}.")
        return found

    @cached_property
    def unsettled(self) -> list[int]:
        """Positions of the runs that were too short to settle, as their Records warn."""
        return [at for at, row in enumerate(self.rows) if UNSETTLED in row]

    @cached_property
    def unsettled_points(self) -> list[int]:
        """Their numbers."""
        return [int(self.rows[at][POINT]) for at in self.unsettled]

    @property
    def notes(self) -> list[str]:
        """What a reader of the best run must know: what is not known of runs, and which points'
        runs did not settle, in the words of ``compare``.
        """
        chosen = next((int(self.rows[at][POINT]) for at in self.best()), None)
        warnings = [(int(self.rows[at][POINT]), self.rows[at][UNSETTLED]) for at in self.unsettled]
        warnings.sort(key=lambda found: found[0] != chosen)  # what concerns the best comes first

        def named(points: list[int]) -> str:
            among = f"among them {chosen}, " if len(points) > 1 else ""
            return spans(points, "point") + (f", {among}the best" if chosen in points else "")

        return self.unknown + unsettled_notes(warnings, named, NOTES_MAX)

    @cached_property
    def throughput(self) -> str | None:
        """The name of the first throughput; None where no run has any."""
        return next((name for name in self.numeric if name.startswith("throughput.")), None)

    @property
    def main(self) -> str | None:
        """The figure that matters most: the objective's, or else the first throughput, or the first
        of all; None without any.
        """
        objective = self.study.objective
        if objective is not None and objective.metric != COST and objective.metric in self.numeric:
            return objective.metric
        return self.throughput or next(iter(self.numeric), None)

    @cached_property
    def order(self) -> Ints:
        """(N,) positions, the best run first: by the objective; where that is equal by the first
        throughput, by cost, and by power.
        """
        objective = self.study.objective
        keys = (
            []
            if objective is None or self.objective is None
            else [self.objective if objective.least else -self.objective]
        )
        keys += [] if self.throughput is None else [-self.column(self.throughput)]
        keys += [self.column(COST), self.column("power_W")]
        return np.lexsort([rounded(key) for key in reversed(keys)])

    def best(self, count: int = 1) -> list[int]:
        """Positions of the best rows that hold all constraints, the best first."""
        if self.objective is None:
            return []
        known = self.feasible & np.isfinite(self.objective)
        return [int(at) for at in self.order if known[at]][:count]

    def first(self, name: str) -> int | None:
        """Position of the first run that has that figure."""
        return next(iter(np.flatnonzero(np.isfinite(self.column(name))).tolist()), None)

    def front(self, least: str, other: str) -> list[int]:
        """Positions of runs that hold all constraints, and that no other beats in both figures:
        less of ``least``, and more of ``other``, or less where that is better. Of equal ones the
        better run as ``order`` has it; sorted by the first figure.
        """
        known = self.order[self.feasible[self.order]]
        sign = -1.0 if self.wants_less(other) else 1.0
        least_of, other_of = rounded(self.column(least)[known]), rounded(self.column(other)[known])
        return [int(known[k]) for k in pareto(least_of, sign * other_of)]

    def verdict(self, at: int) -> dict[str, Any]:
        """Of the run at a position: its ``settings``, its ``slack`` by constraint (None where it is
        unknown), and whether it ``settled``.
        """
        slacks = {text: float(values[at]) for text, values in self.slacks.items()}
        return {
            "settings": {path: self.rows[at].get(path) for path in self.study.runs.paths},
            "slack": {text: slack if slack == slack else None for text, slack in slacks.items()},
            "settled": at not in self.unsettled,
        }

    def wants_less(self, name: str) -> bool:
        """Whether less of a figure is better: the objective says so, or its kind."""
        objective = self.study.objective
        if objective is not None and objective.metric == name and objective.per is None:
            return objective.least
        return less_is_better(name)


def spans(numbers: Sequence[int], noun: str) -> str:
    """``point 4``, ``points 0 to 5, 8, 12 and 9 more``: the first few spans of them."""
    shown = stretches(numbers)[:SPANS_MAX]
    more = len(numbers) - sum(high - low + 1 for low, high in shown)
    text = ", ".join(f"{low}" if low == high else f"{low} to {high}" for low, high in shown)
    return f"{noun}{'s' * (len(numbers) > 1)} {text}" + (f" and {more:,} more" if more else "")


def rounded(values: Floats) -> Floats:
    """To ``DIGITS`` digits: what differs by rounding is equal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.abs(values))))
        return np.where(np.isfinite(size * values), np.round(values * size) / size, values)


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a column holds numbers."""
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def load_results(study: Study, folder: Path) -> Results:
    """The rows in ``folder``; raises InputError where they are of another study."""
    store = Store(folder)
    before = store.identity()
    if before is not None:
        check_same(study, before, folder)
    return results_of(study, store.read())


def results_of(study: Study, table: pa.Table) -> Results:
    """Results of stored rows."""
    if study.prices is not None and "machine.nodes" in table.column_names:
        names = [n for n in ("machine", *table.column_names) if n == "machine" or "machine." in n]
        wanted = [n for n in dict.fromkeys(names) if n in table.column_names]
        known: dict[tuple[Any, ...], float] = {}
        costs = []
        for row in table.select(wanted).to_pylist():
            key = tuple(row.values())
            if key not in known:
                known[key] = study.prices.cost(row)
            costs.append(known[key])
        table = table.append_column(COST, pa.array(costs, pa.float64(), from_pandas=True))
    return Results(study, table)


def pareto(least: Floats, most: Floats) -> list[int]:
    """Positions that no other beats: of less (or equal) in one and more in the other; NaN: never.

    Sorted by the first.
    """
    known = np.flatnonzero(np.isfinite(least) & np.isfinite(most))
    order = known[np.lexsort((-most[known], least[known]))]
    front, best = [], -np.inf
    for row in order.tolist():
        if most[row] > best:
            front.append(row)
            best = most[row]
    return front


CURVES_MAX = 8


@dataclass(frozen=True)
class Response:
    """A ``metric`` over the factor at ``path``: points (x, y, low, high) by the curve's name.

    ``left_out``: how many further curves there are. ``log``: whether x is better drawn so.
    ``likely``: whether low and high are 90% intervals of all that is uncertain.
    """

    path: str
    unit: str
    metric: str
    curves: Mapping[str, Sequence[tuple[float, float, float | None, float | None]]]
    left_out: int
    log: bool
    likely: bool = False

    @property
    def knees(self) -> Mapping[str, tuple[float, float]]:
        """By curve, the point farthest below the line between its ends, both axes scaled by their
        range (Kneedle: Satopää et al., ICDCSW 2011); of curves that have one, such as a latency's
        over a load.
        """
        found = {}
        for name, points in self.curves.items():
            (x0, y0, *_), (x1, y1, *_) = points[0], points[-1]
            if x1 > x0 and y1 > y0:
                depths = [(x - x0) / (x1 - x0) - (y - y0) / (y1 - y0) for x, y, *_ in points]
                deepest = max(range(len(points)), key=depths.__getitem__)
                if depths[deepest] > 0.0:
                    found[name] = points[deepest][:2]
        return found


def response(
    rows: Sequence[Mapping[str, Any]], paths: Sequence[str], units: Sequence[str], metric: str
) -> Response | None:
    """Over the factor with most numbers; None where no factor has two numbers and a figure."""
    found = [row for row in rows if not row.get(ERROR) and is_number(row.get(metric))]
    values: dict[str, set[Any]] = {
        path: {row.get(path) for row in found}
        for path in paths
        if all(is_number(row.get(path)) for row in found)  # others may be mappings
    }
    numeric = [path for path, seen in values.items() if len(seen) > 1]
    if not numeric:
        return None
    over = max(numeric, key=lambda path: len(values[path]))
    others = [(path, unit) for path, unit in zip(paths, units, strict=True) if path != over]
    likely = any(LIKELY + metric in row for row in found)  # else intervals of replications
    curves: dict[str, list[tuple[float, float, float | None, float | None]]] = {}
    for row in found:
        name = ", ".join(f"{short(path)} {written(row.get(path), unit)}" for path, unit in others)
        ends = row.get(f"{metric}.low"), row.get(f"{metric}.high")
        low, high = row.get(LIKELY + metric, (None, None)) if likely else ends
        curves.setdefault(name, []).append((row[over], row[metric], low, high))
    kept = dict(list(curves.items())[:CURVES_MAX])
    return Response(
        over,
        units[list(paths).index(over)],
        metric,
        {name: sorted(points, key=lambda point: point[0]) for name, points in kept.items()},
        len(curves) - len(kept),
        _is_log(sorted(values[over])),
        likely,
    )


def short(path: str) -> str:
    """What distinguishes a path for people: its last part."""
    return path.rpartition(".")[2].replace("_", " ")


def _is_log(xs: Sequence[float]) -> bool:
    """Whether values grow by factors rather than by steps."""
    if len(xs) < 3 or xs[0] <= 0 or xs[-1] / xs[0] < 8:
        return False
    middle = xs[len(xs) // 2]
    ratio, mean = math.sqrt(xs[0] * xs[-1]), 0.5 * (xs[0] + xs[-1])
    return abs(math.log(middle / ratio)) < abs(math.log(middle / mean))
