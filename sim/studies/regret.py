"""The best runs of a study under doubt: how probably each is the best, and its expected regret.

The best runs by the objective are predicted again with the draws of all their doubts, which are the
same where two have the same facts; and each is off by the model's error by itself. The regret of a
choice is what the best of them is better by, on average. Bounds of constraints are taken as known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernel.streams import stream_key
from ..run.decision import ratio_errors
from ..run.doubts import Floats
from ..run.real_planes import REAL
from ..run.record import Record
from ..run.runner import run_scenario
from ..run.uncertainty import DRAWS, shift_of, with_uncertainty
from .evaluate import POINT
from .results import Results

CANDIDATES = 10


@dataclass(frozen=True)
class Choice:
    """A run: its ``point``, the probability that it is the best, and its expected ``regret`` as a
    part of the mean of the objective's best.
    """

    point: int
    probability: float
    regret: float


def least_regret(results: Results, count: int = CANDIDATES) -> list[Choice]:
    """The best runs by their expected regret, the least first; [] without an objective, or where
    the runs were real.
    """
    study, objective = results.study, results.objective
    if study.objective is None or objective is None:
        return []
    points, drawn = [], []
    for at in results.best(count):
        point = int(results.rows[at][POINT])
        settings, policy = study.runs.settings(point, study.design.of(point))
        scenario = study.runs.base.load(settings, policy)
        if scenario.plane in REAL:
            return []
        record = with_uncertainty(run_scenario(scenario, workers=1), scenario)
        shift = _shift(record, study.objective.metric)
        if study.objective.per is not None:
            shift = shift / _shift(record, study.objective.per)
        points.append(point)
        drawn.append(float(objective[at]) * shift * _error(record, point))
    return choices(points, np.array(drawn), study.objective.least) if points else []


def choices(points: list[int], drawn: Floats, least: bool) -> list[Choice]:
    """Of (points, draws) values of the objective, each draw of which is as likely."""
    value = -drawn if least else drawn
    best = value.max(axis=0)
    scale = float(np.abs(best).mean()) or 1.0
    wins = value == best
    shares = (wins / wins.sum(axis=0)).mean(axis=1)
    regrets = (best - value).mean(axis=1) / scale
    found = [
        Choice(point, float(share), float(regret))
        for point, share, regret in zip(points, shares, regrets, strict=True)
    ]
    return sorted(found, key=lambda one: one.regret)


def _shift(record: Record, metric: str) -> Floats:
    """(DRAWS,) of a figure by the names that studies have; ones of what no doubt moves."""
    path: Any = ("energy_J",) if metric in ("power_W", "energy_J") else tuple(metric.split("."))
    known = path[0] in ("throughput", "bandwidth_Bps", "latency_ns", "energy_J")
    return shift_of(record, path) if known else np.ones(DRAWS)


def _error(record: Record, point: int) -> Floats:
    """(DRAWS,) what the model is off by at a point alone: two of them make the error of a ratio."""
    errors = ratio_errors(record, next(iter(record.throughput), None))
    rng = np.random.default_rng(stream_key(1, 0, f"the model's error at point {point}"))
    return np.asarray(np.exp(rng.choice(errors, DRAWS) / 2.0**0.5))
