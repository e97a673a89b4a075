"""Constraints with units, objectives, prices, the Pareto front."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.sim.studies.description import Price, Prices, read_constraint, read_objective
from numatwin.sim.studies.results import pareto

OPERATIONS = ["commit", "lookup"]


@pytest.mark.parametrize(
    ("text", "below", "bound"),
    [
        ("latency_ns.commit.p99 < 100 us", True, 100_000.0),
        ("utilisation.link.busiest <= 80%", True, 0.8),
        ("utilisation.link.busiest < 0.8", True, 0.8),
        ("throughput.lookup > 2 M/s", False, 2e6),
        ("bandwidth_Bps.memory < 50 GB/s", True, 50e9),
        ("power_W < 1 kW", True, 1000.0),
        ("energy_J ≤ 5 J", True, 5.0),
        ("cost < 20000", True, 20_000.0),
        ("cost < 20000 EUR", True, 20_000.0),
        ("machine.nodes >= 4", False, 4.0),
    ],
)
def test_constraints(text: str, below: bool, bound: float) -> None:
    found = read_constraint(text, OPERATIONS)
    assert (found.below, found.bound) == (below, bound)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("latency_ns.commit.p99 < 100 GB/s", "found '100 GB/s', expected a time such as"),
        ("latency_ns.commit.p99 < 100", "found '100', expected a time"),
        ("throughput.lookup > 100 us", "expected a rate such as"),
        ("utilisation.link.busiest < 35", "expected a share, such as '35%'"),
        ("utilisation.link.busiest < 80 us", "expected a share such as '80%'"),
        ("latency_ns.commit.p98 < 1 us", "unknown metric: found 'latency_ns.commit.p98'"),
        ("throughput.scan > 1 M/s", "unknown metric: found 'throughput.scan'"),
        ("speed > 1", "unknown metric: found 'speed'"),
        ("faster", "not a constraint: found 'faster'"),
    ],
)
def test_constraints_refused(text: str, message: str) -> None:
    assert message in told_by(read_constraint, text, OPERATIONS)


def test_slack_is_relative_to_the_bound() -> None:
    above = read_constraint("throughput.lookup > 2 M/s", OPERATIONS)
    slack = above.slack(np.array([1e6, 2e6, 3e6, math.nan]))
    assert slack[:3].tolist() == [-0.5, 0.0, 0.5]
    assert math.isnan(slack[3])


def test_objectives() -> None:
    per = read_objective("maximise throughput.lookup per euro", OPERATIONS)
    assert (per.least, per.metric, per.per) == (False, "throughput.lookup", "cost")
    watt = read_objective("maximize throughput.lookup / watt", OPERATIONS)
    assert watt.values(
        {"throughput.lookup": np.array([10.0]), "power_W": np.array([4.0])}
    ).tolist() == [2.5]
    assert read_objective("minimise cost", OPERATIONS).least
    for text in ("more", "maximise", "maximise speed", "minimise throughput.scan"):
        with pytest.raises(InputError):
            read_objective(text, OPERATIONS)


def test_prices() -> None:
    """2,000 + 4 nodes · 1,000 + 32 cores · 10 + 64 GB · 5 + 8 ports · 100 = 7,440."""
    row = {"machine": "a", "machine.name": "a", "machine.nodes": 4, "machine.cores": 32}
    row |= {"machine.memory_GB": 64.0, "machine.ports": 8}
    price = Price(fixed=2000, per_node=1000, per_core=10, per_GB=5, per_port=100)
    assert Prices(machines={"a": price}).cost(row) == 7_440.0
    assert math.isnan(Prices(machines={"b": price}).cost(row))
    assert Prices(default=price).cost(row) == 7_440.0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40))
def test_pareto(points: list[tuple[int, int]]) -> None:
    """By its definition: no point of the front is beaten, and each other point is, or is equal."""
    least, most = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    front = {points[k] for k in pareto(least, most)}
    assert len(front) == len(pareto(least, most))
    for cost, gain in points:
        beaten = any(a <= cost and b >= gain and (a, b) != (cost, gain) for a, b in points)
        assert ((cost, gain) in front) == (not beaten)
