"""The rows of a study as columns, with the verdicts of its constraints and its objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .evaluate import ERROR, OWN, POINT
from .levels import is_number
from .metrics import COST
from .run_study import check_same
from .store import Store, rows_in
from .study import Study

Floats = npt.NDArray[np.float64]


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
    def points(self) -> npt.NDArray[np.int64]:
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
    def feasible(self) -> npt.NDArray[np.bool_]:
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
    def unknown(self) -> list[str]:
        """What is asked for and not known of runs that were made, a sentence each."""
        objective = self.study.objective
        asked = [
            *(objective.metrics if objective else ()),
            *(c.metric for c in self.study.constraints),
        ]
        made = np.array([row.get(ERROR) is None for row in self.rows], dtype=bool)
        found = []
        for metric in dict.fromkeys(asked):
            count = int((made & ~np.isfinite(self.column(metric))).sum())
            if count:
                found.append(
                    f"{metric} is not known of {count:,} runs: they hold no bound of it, and are "
                    "never the best."
                )
        return found

    def best(self, count: int = 1) -> list[int]:
        """Positions of the best rows that hold all constraints, the best first."""
        if self.objective is None or self.study.objective is None:
            return []
        known = np.flatnonzero(self.feasible & np.isfinite(self.objective))
        sign = 1.0 if self.study.objective.least else -1.0
        order = np.argsort(sign * self.objective[known], kind="stable")
        return [int(k) for k in known[order[:count]]]


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
                whole = is_number(row.get("machine.nodes"))
                known[key] = study.prices.cost(row) if whole else float("nan")
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


def described(study: Study, row: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """What a row is of: each factor and its value, as text."""
    from .levels import written

    return [(factor.path, written(row.get(factor.path), factor.unit)) for factor in study.factors]
