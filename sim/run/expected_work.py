"""Estimates how long a run on an event-driven plane takes."""

from __future__ import annotations

import joblib

from ..planes.expected_time import expected_time_s
from .replications import PILOT
from .runner import maker_of
from .scenario import Scenario


def expected_wall_s(scenario: Scenario) -> float:
    """Of a run: all replications and a pilot, where there is one, on all processors."""
    plan = scenario.statistics
    workers: int = joblib.effective_n_jobs(-1)
    rounds = _pilots(scenario) + -(-plan.replications // workers)
    return _replication_s(scenario) * rounds


def expected_cpu_s(scenario: Scenario) -> float:
    """Of a run whose replications come one after another."""
    return _replication_s(scenario) * (_pilots(scenario) + scenario.statistics.replications)


def _pilots(scenario: Scenario) -> int:
    return int(scenario.statistics.warm_up_s is None)


def _replication_s(scenario: Scenario) -> float:
    return expected_time_s(maker_of(scenario)(scenario, PILOT), scenario.horizon_s)
