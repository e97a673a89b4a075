"""Clients of ERIS's routing against queueing theory: one worker that executes all commands, one by
one, in the same time each, is the one server of a textbook queue.

All else costs nothing, or a picosecond of way. Commands of the server's own client begin when it is
done with what it has taken: the order differs from first come, first served, but no command waits
while the server is idle, and all take the same time. So neither throughput nor mean latency
depends on it (Kleinrock's conservation law).
"""

import math

import numpy as np
import pytest
from eris_machines import WALK, Latencies, machine, routing
from scipy import stats

from numatwin.sim._kernel import ErisRouting

REPLICATIONS, CONFIDENCE = 10, 0.999
FREE = [0.0, 0.0]


def one_server(workers: int, seed: int, **clients: float) -> ErisRouting:
    of = machine(
        [0] * workers,
        issue_ps=FREE,
        receive_ps=FREE,
        flush_ps=FREE,
        copy_ps=FREE,
        swap_ps=FREE,
        handed_ps=[1] * 4,
        lines_per_command=0.0,
        batch=1,
        **clients,
    )
    return routing(of, [[1.0] + [0.0] * (workers - 1)], seed=seed)


def holds(found: list[float], expected: float) -> None:
    """The expected mean lies in the confidence interval of the replications."""
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(found) - 1) * stats.sem(found)
    # A way of 1 ps or two, of 700, does not count.
    assert abs(np.mean(found) - expected) <= half + 0.005 * expected
    assert half < 0.05 * expected


def finite_source_rate(sources: int, service: float, think: float) -> float:
    """Of M/D/1 with so many sources, each of which thinks between its commands.

    The number of waiting commands that a departure leaves is a Markov chain: while one is served,
    each of those that think comes with probability 1 - exp(-service / think). Where a departure
    leaves none, the server waits for the first of all sources. (Machine repair with constant
    repair times, as in Takács, Introduction to the Theory of Queues, 1962, chapter 5.)
    """
    comes = -math.expm1(-service / think)
    steps = np.zeros((sources, sources))
    for left in range(sources):
        begun = max(left, 1)  # where none is left, service begins with the next that comes
        steps[left, begun - 1 :] = stats.binom.pmf(
            np.arange(sources - begun + 1), sources - begun, comes
        )
    system = np.vstack([steps.T - np.eye(sources), np.ones(sources)])
    left = np.linalg.lstsq(system, np.append(np.zeros(sources), 1.0), rcond=None)[0]
    return float(1 / (service + left[0] * think / sources))


def test_the_finite_source_at_its_ends() -> None:
    """One source: no queue. So many that the server never waits."""
    assert finite_source_rate(1, 1.0, 3.0) == pytest.approx(1 / 4)
    assert finite_source_rate(60, 1.0, 3.0) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(("workers", "think_services"), [(1, 2), (4, 3), (10, 8), (10, 30)])
def test_thinking_clients_are_machine_repair(workers: int, think_services: int) -> None:
    think_ps = think_services * WALK
    rates = []
    for seed in range(REPLICATIONS):
        model = one_server(workers, seed, think_ps=float(think_ps))
        model.run(200 * think_ps)
        model.start_counting()
        start_ps = model.now_ps
        model.run(start_ps + 4_000 * WALK)
        model.check()
        rates.append(float(model.counts()["done"][0]) / (model.now_ps - start_ps))
    holds(rates, finite_source_rate(workers, WALK, think_ps))


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
def test_open_arrivals_are_m_d_1(load: float) -> None:
    """Mean time in the system: S + load S / (2 (1 - load)), by Pollaczek and Khinchine."""
    workers = 4
    means = []
    for seed in range(REPLICATIONS):
        model = one_server(workers, seed, arrival_ps=workers * WALK / load)
        model.run(1_000 * WALK)
        model.start_counting()
        model.run(model.now_ps + 40_000 * WALK)
        model.check()
        means.append(Latencies(model).mean)
    holds(means, WALK * (1 + load / (2 * (1 - load))))
