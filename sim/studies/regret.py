"""Runs of a study under doubt: intervals, how probably each is the best, its expected regret.

A few runs are predicted again with the draws of all their doubts, which are the same where two have
the same facts; and each is off by the model's error by itself. The regret of a choice is what the
best of them is better by, on average; runs that break a constraint as predicted are no choice, and
how probably the chosen one holds each is told. Facts of an event run are varied on the flow plane.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from ..kernel.arrays import Floats
from ..kernel.streams import stream_key
from ..run.decision import chance_of, doubts_in, measure_first, ratio_errors
from ..run.real_planes import REAL
from ..run.record import Record
from ..run.runner import bare_record
from ..run.scenario import Scenario
from ..run.uncertainty import DRAWS, POINTS, bounds, error_of, limited, shift_of, with_uncertainty
from ..run.what_if import FLOW
from ..systems.registry import system_of
from .evaluate import COST, ERROR, POINT, UNSETTLED, Runs
from .levels import is_number
from .results import Results

CANDIDATES = 10
SHOWN = 5  # runs that have an interval without being asked for
NODES_MAX = 16  # of a machine, likewise
DRAWN = ("throughput", "bandwidth_Bps", "latency_ns", "energy_J", "power_W")
T = TypeVar("T")


@dataclass(frozen=True)
class Doubted:
    """A figure of a run: its ``value`` at a ``point``, by what each draw of the ``facts`` (DRAWS,)
    multiplies it, by how much ``chance`` moves it, and by what the model may be off (``factors``).
    """

    point: int
    value: float
    facts: Floats
    chance: Floats
    factors: Floats
    record: Record
    path: tuple[str, ...] = ("throughput",)

    @property
    def values(self) -> Floats:
        """What the figure may be: all draws of facts, of chance and of the model's error."""
        drawn = self.value * np.add.outer(self.facts, self.chance)
        factors = limited(self.record, self.path, self.factors)
        return np.asarray(drawn[..., np.newaxis] * factors[:, np.newaxis])

    @property
    def interval(self) -> list[float]:
        """Between what the figure lies, at ``LEVEL``."""
        return bounds(self.values)

    @property
    def drawn(self) -> Floats:
        """(DRAWS * POINTS,) values: each draw of the facts meets each part of chance and of the
        model's error, in an order of its own; two of them are off by the error of a ratio.
        """
        errors = ratio_errors(self.record, next(iter(self.record.throughput), None))
        rng = np.random.default_rng(stream_key(1, 0, f"the model's error at point {self.point}"))
        chance, error = (
            rng.permuted(np.broadcast_to(np.resize(parts, POINTS), (DRAWS, POINTS)), axis=1)
            for parts in (self.chance, np.exp(errors / 2.0**0.5))
        )
        limits = limited(self.record, self.path, error)
        return np.asarray(self.value * (self.facts[:, np.newaxis] + chance) * limits).ravel()


@dataclass(frozen=True)
class Choice:
    """A run: its ``point``, the probability that it is the best, and its expected ``regret`` as a
    part of the mean of the objective's best.
    """

    point: int
    probability: float
    regret: float


@dataclass(frozen=True)
class UnderDoubt:
    """Some runs of a study under doubt: figures named ``of`` with ``intervals`` by point, which to
    choose, the least expected regret first, what to ``measure`` before (``decision``), and how
    probably the first choice ``holds`` each constraint. Without an objective that is in doubt, only
    intervals of the main figure.
    """

    of: str = ""
    figures: Sequence[Doubted] = ()
    choices: Sequence[Choice] = ()
    measure: Mapping[str, Any] | None = None
    holds: Mapping[str, float] = field(default_factory=dict)

    @property
    def intervals(self) -> dict[int, list[float]]:
        """Ends of 90% intervals, by point."""
        return {one.point: one.interval for one in self.figures}


def under_doubt(results: Results, count: int = SHOWN, quick: bool = True) -> UnderDoubt:
    """The best runs of a study under doubt, or, without an objective, runs from all of it."""
    objective, runs, best = results.study.objective, results.study.runs, results.best(count)
    if objective is None or objective.metric == COST:
        at = best or evenly(range(len(results.rows)), count)
        return intervals_of(results, at, results.main or "", quick)
    found = doubted(runs, rows_at(results, best), objective.metric, objective.per, quick)
    if not found:
        return UnderDoubt()
    drawn = np.array([one.drawn for one in found])
    chosen = choices([one.point for one in found], drawn, objective.least)
    values = np.array([one.value * one.facts for one in found])
    own = values[[one.point == chosen[0].point for one in found]]
    more = (values - own) / own * (-1.0 if objective.least else 1.0)
    doubts = {stream: doubt for one in found for stream, doubt in doubts_in(one.record).items()}
    measure = measure_first(doubts, more, np.zeros(1), chosen[0].regret)
    rows = [row for row in rows_at(results, best) if row[POINT] == chosen[0].point]
    holds = {
        constraint.text: float((constraint.slack(one.values) >= 0.0).mean())
        for constraint in results.study.constraints
        for one in doubted(runs, rows, constraint.metric, quick=quick)
    }
    return UnderDoubt(objective.figure, found, chosen, measure, holds)


def intervals_of(
    results: Results, positions: Sequence[int], metric: str, quick: bool = True
) -> UnderDoubt:
    """Intervals of a metric at positions, no choice."""
    rows = rows_at(results, positions)
    return UnderDoubt(metric, doubted(results.study.runs, rows, metric, quick=quick))


def evenly(of: Sequence[T], count: int = SHOWN) -> list[T]:
    """The first, the last, and some between; all where there are no more."""
    places = np.linspace(0, len(of) - 1, min(count, len(of))).round()
    return [of[int(at)] for at in places]


def rows_at(results: Results, positions: Iterable[int]) -> list[dict[str, Any]]:
    """Rows with the values of their factors as the design has them."""
    study, rows = results.study, [results.rows[at] for at in positions]
    return [
        row | dict(zip(study.runs.paths, study.design.of(int(row[POINT])), strict=True))
        for row in rows
    ]


def doubted(
    runs: Runs,
    rows: Iterable[Mapping[str, Any]],
    metric: str,
    per: str | None = None,
    quick: bool = True,
) -> list[Doubted]:
    """The figure of each of the rows under doubt; without runs that failed, did not settle or were
    real, and figures of which draws say nothing. ``quick``: without what costs more than some runs
    of the flow plane, and without latencies of open clients.
    """
    found = []
    for row in rows:
        value: Any = row.get(metric)
        divisor: Any = 1.0 if per is None else row.get(per)
        known = is_number(value) and is_number(divisor) and metric.partition(".")[0] in DRAWN
        if ERROR in row or UNSETTLED in row or not known:
            continue
        scenario = runs.base.load(*runs.settings(row[POINT], [row.get(p) for p in runs.paths]))
        if scenario.plane in REAL or (quick and _is_slow(scenario, metric)):
            continue
        has_flow = FLOW in system_of(scenario.system).planes
        record = bare_record(replace(scenario, plane=FLOW) if has_flow else scenario)
        record = with_uncertainty(replace(record, plane=scenario.plane), scenario, most=False)
        facts = _shift(record, metric) / (1.0 if per is None else _shift(record, per))
        path, chance = _path(metric), _chance(row, metric, scenario)
        errors = error_of(record, scenario, path).factors
        found.append(Doubted(row[POINT], value / divisor, facts, chance, errors, record, path))
    return found


def choices(points: list[int], drawn: Floats, least: bool) -> list[Choice]:
    """Of (points, draws) values of the objective, each draw of which is as likely."""
    value = -drawn if least else drawn
    best = value.max(axis=0)
    scale = float(np.abs(best).mean()) or 1.0
    wins = value == best
    shares = (wins / wins.sum(axis=0)).mean(axis=1)
    regrets = (best - value).mean(axis=1) / scale
    found = map(Choice, points, shares.tolist(), regrets.tolist())
    return sorted(found, key=lambda one: one.regret)


def _is_slow(scenario: Scenario, metric: str) -> bool:
    """Whether draws take more than some runs of the flow plane."""
    clients = scenario.settings.get("workload", {}).get("clients") or {}
    waits = clients.get("kind") == "open" and metric.startswith("latency_ns")
    large = len(scenario.machine.nodes) > NODES_MAX
    return waits or large or FLOW not in system_of(scenario.system).planes


def _path(metric: str) -> tuple[str, ...]:
    return ("energy_J",) if metric == "power_W" else tuple(metric.split("."))


def _shift(record: Record, metric: str) -> Floats:
    return shift_of(record, _path(metric)) if metric != COST else np.ones(DRAWS)


def _chance(row: Mapping[str, Any], metric: str, scenario: Scenario) -> Floats:
    """By how much the mean of replications may be off, relative, at equal parts of probability."""
    low, high = row.get(f"{metric}.low"), row.get(f"{metric}.high")
    if low is None or high is None or not row[metric]:
        return np.zeros(1)
    return chance_of((high - low) / row[metric], scenario.statistics.confidence)
