"""Rates at one moment: waits by queueing theory, shares by hand, and the fixed point of the two."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats
from small_scenarios import (
    CACHE,
    COLUMN_BYTES,
    LINK,
    LINK_BPS,
    LOOKUP,
    MEMORY_BPS,
    NODE,
    SCAN,
    UPSERT,
    small,
    small_file,
)

from numatwin.sim.machine.costs import LINK_LOAD_MAX, CostModel
from numatwin.sim.machine.defaults import TYPICAL_LOADED_LATENCY
from numatwin.sim.planes.flow import FlowPlane
from numatwin.sim.planes.rates import Rates, spare_time_shares
from numatwin.sim.run.what_if import flow_plane
from numatwin.topologies import load_machine

SEED = 1909
FULL = 1e-4  # what is full to this part is full
NEAR = 1e-3


def costs_of(folder: Path) -> CostModel:
    return CostModel(small(small_file(folder, SCAN, nodes=2)).machine)


def waits_of_a_queue(
    load: float, service_s: float, served: int, random: np.random.Generator
) -> tuple[float, float]:
    """Mean wait before one server with equal service times and random arrivals, and half the width
    of its interval: 99.9%, from 25 queues by themselves.

    Lindley: the wait is how far the sum of (service - gap) stands above its lowest point so far.
    """
    means = []
    for _ in range(25):
        steps = service_s - random.exponential(service_s / load, served)
        sums = np.concatenate([[0.0], np.cumsum(steps)])
        waits = sums - np.minimum.accumulate(sums)
        means.append(float(waits[served // 5 :].mean()))
    return float(np.mean(means)), float(stats.t.ppf(0.9995, 24) * stats.sem(means))


@pytest.mark.parametrize("load", [0.05, 0.3, 0.6, 0.9])
def test_waits_before_a_link_are_those_of_a_queue(tmp_path: Path, load: float) -> None:
    """M/D/1, a line of 64 + 8 bytes at 10 GB/s a service (Pollaczek and Khinchine):
    load / (2 (1 - load)) services.
    """
    service_s = 72 / LINK_BPS
    wait_s = costs_of(tmp_path).link_wait_s(np.full(2, load))
    assert wait_s == pytest.approx(service_s * load / (2 * (1 - load)), rel=1e-12)
    random = np.random.Generator(np.random.Philox(SEED))
    mean_s, half_s = waits_of_a_queue(load, service_s, 100_000, random)
    assert half_s < 0.1 * mean_s, "the simulation is too short to tell"
    assert abs(mean_s - wait_s[0]) <= half_s


def test_waits_before_links_rise_up_to_a_limit(tmp_path: Path) -> None:
    costs = costs_of(tmp_path)
    waits = np.array([costs.link_wait_s(np.full(2, load))[0] for load in np.linspace(0, 1, 101)])
    assert waits[0] == 0
    assert (np.diff(waits) >= 0).all()
    assert waits[-1] == costs.link_wait_s(np.full(2, LINK_LOAD_MAX))[0]


def test_waits_for_memory_by_its_curve() -> None:
    """A machine's own curve where it has one; else that of typical servers, times its latency."""
    costs = CostModel(load_machine("intel-4s-qpi"))
    for load, ratio in TYPICAL_LOADED_LATENCY:
        assert costs.memory_wait_s(np.full(4, load)) == pytest.approx(129e-9 * (ratio - 1))
    assert (
        np.diff([costs.memory_wait_s(np.full(4, x))[0] for x in np.linspace(0, 1, 50)]) > 0
    ).all()


def rates_of(path: Path, *chosen: str) -> tuple[FlowPlane, Rates]:
    plane = flow_plane(small(path, *chosen))
    return plane, plane.steady()


def test_two_flows_over_one_link(tmp_path: Path) -> None:
    """Nodes 0 - 1 - 2 in a row, the column on 0, workers on 1 and 2: both cross the link from 0.

    They fill it. Each has as many lines under way, so that they share as the inverse of their
    latencies: workers of both are busy for the same part of their time.
    """
    path = small_file(tmp_path, SCAN, "single-ram", nodes=3, shape="mesh, dimensions: [3]")
    slots = f"{NODE}streaming_misses=10"
    plane, rates = rates_of(path, "system.nodes=[1, 2]", "system.home=0", slots)
    near, far = rates.flows
    assert near + far == pytest.approx(LINK_BPS * 64 / 72 / COLUMN_BYTES, rel=1e-6)
    near_s, far_s = (rates.steps["scanning"][plane.system.workers.core_node == k] for k in (1, 2))
    assert near * near_s[0] == pytest.approx(far * far_s[0], rel=1e-6)
    # 100 ns and a hop of 50 ns against two; what waits add is the same for both, one link.
    assert 1 < near / far < 200 / 150


def test_a_flow_with_little_to_ask_leaves_the_rest(tmp_path: Path) -> None:
    """One core on node 1 against four on node 0, all data there: the link is not full, memory is.

    The scan of one core: ten lines under way, or what it executes, whichever is less.
    """
    path = small_file(tmp_path, SCAN, "single-ram", nodes=2)
    _, rates = rates_of(path, f"{LINK}bandwidth=100 GB/s", f"{NODE}streaming_misses=10")
    assert rates.flows.sum() == pytest.approx(MEMORY_BPS / COLUMN_BYTES, rel=1e-6)
    assert rates.flows[0] > rates.flows[1] > 0


@given(st.data())
def test_who_has_time_issues(data: st.DataObject) -> None:
    """Whoever issues is done when all others who do are, and no earlier than the rest."""
    count = data.draw(st.integers(1, 12))

    def times(low: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        found = data.draw(st.lists(st.floats(low, 1), min_size=count, max_size=count))
        return np.array(found)

    own_s, issue_s = times(0.0), times(1e-3)
    shares = spare_time_shares(own_s, issue_s)
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()
    done_s = own_s + shares * issue_s
    level_s = done_s[shares > 1e-12].max()
    assert done_s[shares > 1e-9] == pytest.approx(level_s, rel=1e-6)
    assert (own_s[shares <= 1e-12] >= level_s * (1 - 1e-9)).all()


SHAPES = ["all_to_all", "ring", "mesh, dimensions: [2, 2]", "hypercube"]


def of_any_size(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None
)
@given(data=st.data())
def test_rates_agree_with_the_waits_that_they_cause(tmp_path: Path, data: st.DataObject) -> None:
    """The loads that waits were worked out from are the loads that came of it; nothing does more
    than it can; every flow is held by something that is full.

    One search in two hundred ends at its limit of iterations, near enough.
    """
    protocol = data.draw(st.sampled_from(["directory", "snoop"]))
    path = small_file(
        tmp_path,
        data.draw(st.sampled_from([LOOKUP, UPSERT, SCAN])),
        data.draw(st.sampled_from(["partitioned", "interleaved", "single-ram"])),
        nodes=4,
        shape=data.draw(st.sampled_from(SHAPES)),
        protocol=protocol,
        caches=CACHE,
    )
    plane, rates = rates_of(
        path,
        f"{NODE}memory.bandwidth={data.draw(of_any_size(1, 400)):.4g} GB/s",
        f"{NODE}memory.latency={data.draw(of_any_size(30, 500)):.4g} ns",
        f"{NODE}outstanding_misses={data.draw(of_any_size(1, 100)):.4g}",
        f"{NODE}clock={data.draw(of_any_size(0.5, 8)):.4g} GHz",
        f"{LINK}bandwidth={data.draw(of_any_size(0.1, 200)):.4g} GB/s",
        f"{LINK}latency={data.draw(of_any_size(5, 500)):.4g} ns",
    )
    assert rates.residual <= NEAR
    resources = plane.solver.resources
    assert (rates.use >= 0).all()
    assert (rates.use <= 1).all()
    assert (rates.memory_Bps <= resources.capacity[resources.memory] * (1 + FULL)).all()
    if protocol == "directory":  # of snoops, see below
        assert (rates.link_Bps <= resources.capacity[resources.links] * (1 + NEAR)).all()
    for holder in rates.binding:
        assert rates.use[holder] >= 1 - FULL
    # Looked for again from there, and from rest, the same is found.
    for start in (rates.loads, None):
        again = plane.solver.solve(plane.system.demand(plane.demands, plane.time_s), None, start)
        assert again.flows == pytest.approx(rates.flows, rel=2 * NEAR)


def test_snoops_fit_on_their_links(tmp_path: Path) -> None:
    """Four nodes scan their own memory. For each line that either node at a link misses, a snoop or
    an answer of 8 bytes crosses it: at 1 GB/s, so many lines of 64 bytes and no more.
    """
    path = small_file(tmp_path, SCAN, nodes=4, protocol="snoop")
    _, rates = rates_of(path, f"{LINK}bandwidth=1 GB/s")
    lines_per_s = 1e9 / (8 + 8)
    assert rates.flows.sum() == pytest.approx(4 * lines_per_s * 64 / COLUMN_BYTES, rel=0.05)
