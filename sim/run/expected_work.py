"""Estimates how long a run on an event-driven plane takes, from its first moments."""

from __future__ import annotations

import time

import joblib

from .replications import PILOT
from .runner import maker_of
from .scenario import Scenario

# A probe runs for at most this part of the horizon, in about so much time: what ends by then is
# short.
PART_MAX, PROBE_S = 1 / 64, 0.1
FIRST_PART, FIRST_MAX_S = 2.0**-24, 1e-3


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
    """From the simulated time per second of a probe, once the first moments are over."""
    plane, horizon_s = maker_of(scenario)(scenario, PILOT), scenario.horizon_s
    until_s, took_s = min(horizon_s * FIRST_PART, FIRST_MAX_S), 0.0
    simulated_s = until_s
    plane.advance(until_s)
    while took_s < PROBE_S and until_s < horizon_s * PART_MAX:
        began = time.perf_counter()
        plane.advance(2.0 * until_s)
        took_s, simulated_s, until_s = time.perf_counter() - began, until_s, 2.0 * until_s
    return took_s / simulated_s * horizon_s
