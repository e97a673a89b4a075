"""What the times of an engine's other operations say of one of its operations.

Counts do not tell how many instructions per cycle an engine's loops execute, how far the kernel
pushes their lines out of the caches, or how many of these come back at a time; a machine file does
not tell all of its facts exactly. Each of these is taken to be one unknown for all operations of an
engine on one machine. All are drawn together, and each draw predicts all operations. To predict one
of them, a draw counts by how likely the measured times of the others are with it: what the model
was off by elsewhere is part of that, half of its variance the same for all operations
(``numatwin.validate.posterior``). The weighted draws, and what the model may be off by, are the
prediction.

What an operation's loops differ by from those of the engine's others is its own: as much as the
queries of DuckDB and MonetDB differ, whose errors from counts alone are known (``own_deviation``).

Operations of one ``command`` are no evidence for each other: more clients, larger values or longer
pipelines hardly make another figure. Of each ``operation`` of another command one row is evidence,
that of the fewest clients, so that runs of the same thing do not count several times.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from numatwin.inputs import DescriptionError, InputError
from numatwin.inputs.shared_work import shared
from numatwin.sim.machine.assumptions import Assumption
from numatwin.sim.run.assumptions import varied
from numatwin.sim.run.doubts import Doubt, doubts_of, drawn, merged
from numatwin.sim.run.model_error import THROUGHPUT, Class, kind_of
from numatwin.sim.run.scenario import Scenario
from numatwin.sim.run.what_if import Predictor
from numatwin.validate.calibrate.engine_rows import ASSUMED_SPREAD
from numatwin.validate.posterior import (
    Floats,
    Known,
    effective,
    error_weights,
    log_likelihood,
    normalised,
    predictive,
)

DRAWS = 1024
PARTS = (0.05, 0.5, 0.95)
AT_ONCE = ".at_once"
ENGINES = [
    Path(__file__).parent / "real_engines" / f"{name}.json" for name in ("figures", "monetdb")
]


@dataclass(frozen=True)
class Operation:
    """A row: its ``measured`` seconds, and those that (N,) draws predict; not a number where a draw
    cannot be. What predictions of its ``engine`` were off by is no evidence for it.
    """

    command: str
    operation: str
    clients: int
    of: Class
    measured_s: float
    drawn_s: Floats
    engine: str = ""


@dataclass(frozen=True)
class Given:
    """Seconds that are predicted given other commands, the ends of their 90% interval, and how many
    draws count.
    """

    predicted_s: tuple[float, float, float]
    effective: float


def given_others(rows: Sequence[Operation]) -> list[Given]:
    """Of each row of an engine, all of one class."""
    return [_given(row, evidence_for(row, rows)) for row in rows]


def evidence_for(row: Operation, rows: Sequence[Operation]) -> list[Operation]:
    """One row of each operation of another command."""
    others = sorted((one for one in rows if one.command != row.command), key=lambda r: r.clients)
    return list({one.operation: one for one in reversed(others)}.values())


def _given(row: Operation, others: Sequence[Operation]) -> Given:
    rates = [-np.log(one.drawn_s) for one in (row, *others)]
    possible = np.where(np.isfinite(rates).all(axis=0), 0.0, -np.inf)
    own, *known = (np.nan_to_num(one, nan=99.0) for one in rates)
    own = own + own_deviation() * ndtri(drawn(f"own deviation of {row.operation}", len(own)))
    error = error_weights(row.of, row.engine)
    measured = -np.log([one.measured_s for one in others])
    spreads = np.full(len(others), np.hypot(ASSUMED_SPREAD, own_deviation()))
    evidence = Known(row.of, measured, spreads, error), np.column_stack(known)
    log_weights = possible + log_likelihood([evidence], len(own))
    low, middle, high = np.exp(np.negative(predictive(own, log_weights, error, evidence, PARTS)))
    return Given((middle, high, low), effective(normalised(log_weights)))


@cache
def own_deviation() -> float:
    """Of the logarithm of an operation's rate from what is common to its engine: that of queries on
    one thread from the mean of their engine and size of tables, predicted from counts alone.
    """
    squares, degrees = 0.0, 0
    for file in ENGINES:
        rows = [row for row in json.loads(file.read_text())["rows"] if row["threads"] == 1]
        for size in {row["rows"] for row in rows}:
            of = [row for row in rows if row["rows"] == size]
            logs = np.log([row["counted_s"][0] / row["measured_s"] for row in of])
            squares += float(((logs - logs.mean()) ** 2).sum())
            degrees += len(of) - 1
    return float(np.sqrt(squares / degrees))


def unknowns(scenario: Scenario) -> Iterator[Doubt]:
    """What is uncertain of it, named alike in all operations of an engine. Where lines lie that the
    kernel has displaced is another unknown than how large what no cache holds is.
    """
    doubts = doubts_of(scenario)
    names = [one.assumption.name for one in doubts]
    loops = tuple(name.removesuffix(AT_ONCE) for name in names if name.endswith(AT_ONCE))

    def after_calls(one: Assumption) -> bool:
        return one.name.startswith(loops)

    for doubt in doubts:
        parts = (doubt.assumption, *doubt.others)
        for displaced, group in groupby(sorted(parts, key=after_calls), key=after_calls):
            first, *others = group
            field = first.name.rpartition(".")[2]
            stream = f"lines that the kernel displaces: {field}" if displaced else doubt.stream
            yield replace(doubt, assumption=first, others=tuple(others), stream=stream)


def drawn_s(scenario: Scenario, each: int, count: int = DRAWS) -> Floats:
    """(count,) seconds between operations of one of ``each`` threads, by draws of all unknowns."""
    doubts = tuple(unknowns(scenario))
    found = np.full(count, np.nan)
    parts = np.column_stack([drawn(doubt.stream, count) for doubt in doubts])
    with shared():
        predictor = Predictor(scenario)
        for k, row in enumerate(parts):
            try:
                (rate,) = predictor(varied(scenario, merged(doubts, row))).throughput.values()
            except (InputError, DescriptionError):  # a draw that contradicts itself
                continue
            found[k] = each / rate
    return found


def class_of_scenario(scenario: Scenario) -> Class:
    """What its throughput is predicted as."""
    (operation,) = scenario.settings["workload"]["operations"].values()
    return Class(str(scenario.settings["system"]["kind"]), "flow", kind_of(operation), THROUGHPUT)
