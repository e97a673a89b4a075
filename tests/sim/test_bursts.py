"""Waits of bursts at links, against a closed system that is played by hand."""

import heapq
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from small_scenarios import LINK, NODE, SCAN, small, small_file

from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.demands import Demand, Exchange
from numatwin.sim.machine.hand_over_traffic import hand_over_traffic
from numatwin.sim.planes.rate_solver import RateSolver
from numatwin.sim.planes.rates import Rates
from numatwin.topologies import load_machine

SEED = 4711
LINES = 32.0
NODES = 2
# Waits are means, whose distribution is approximate.
WITHIN = 0.03


def costs_of(folder: Path, *changes: str) -> CostModel:
    # Without misses that hold a core: its time is given.
    quick = f"{NODE}streaming_misses=1000000"
    return CostModel(small(small_file(folder, SCAN, nodes=NODES), quick, *changes).machine)


def solved(costs: CostModel, senders: int, think_s: float, core_s: float) -> Rates:
    """Senders that think, then hand a burst of lines over to either node, each with its core."""
    node = np.arange(senders) % NODES
    none = np.zeros(NODES)
    exchange = Exchange(
        names=("thinking", "receiving"),
        received=np.full(senders, 1.0 / senders),
        make_s=none + think_s,
        send_s=none + core_s,
        receive_s=none,
        more_s=np.zeros(senders),
        home=np.arange(NODES),
        lines=LINES,
        answer_lines=0.0,
        atomics=0.0,
        bursts=1.0,
        burst_square=LINES**2,
        waits=lambda threads: lambda issued, remote: 0.0 * issued,
        passed_on=0.0,
    )
    demand = Demand(
        flow_of=np.zeros(NODES, dtype=np.int64),
        steps=(),
        writes=(),
        batch=1.0,
        miss_instructions=1.0,
        exchange=exchange,
    )
    return RateSolver(costs, node, np.ones(senders)).solve(demand)


def played(
    costs: CostModel, rates: Rates, senders: int, think_s: float, alone_s: float, seed: int
) -> float:
    """The same, burst by burst: links serve pieces as they come, at what control leaves of them."""
    random = np.random.Generator(np.random.Philox(seed))
    evenly = np.full(NODES, 1.0 / NODES)
    each = hand_over_traffic(costs, evenly, evenly)
    left = 1.0 - rates.loads.control
    line_s = (costs.link_line_s / left).tolist()
    way = {(a, b): costs.machine.routes.links_of(a, b)[0] for a, b in ((0, 1), (1, 0))}
    free = [0.0] * len(line_s)
    count, done = 20_000, 0
    thinks = iter(random.exponential(think_s, count + senders).tolist())
    targets = iter(random.integers(NODES, size=count + senders).tolist())
    ready = [(next(thinks), k) for k in range(senders)]
    heapq.heapify(ready)
    began_s = now = 0.0
    while done < count:
        now, k = heapq.heappop(ready)
        done += 1
        if done == count // 10:
            began_s = now
        end, here, there = now + alone_s, k % NODES, next(targets)
        if here != there:
            for a, b, lines, waited in (
                (there, here, each.fetched, True),
                (here, there, 1.0, True),
                (here, there, each.back, False),
            ):
                link = way[a, b]
                free[link] = max(free[link], now) + LINES * lines * line_s[link]
                end = max(end, free[link]) if waited else end
        heapq.heappush(ready, (end + next(thinks), k))
    return (count - count // 10) / (now - began_s)


@pytest.mark.parametrize("senders", [4, 16, 64])
@pytest.mark.parametrize("alone", [0.5, 2.0])
@pytest.mark.parametrize("asked", [0.25, 0.6, 0.95, 1.2])
def test_closed_senders(tmp_path: Path, asked: float, alone: float, senders: int) -> None:
    """Senders whose own work takes less or more than a burst takes a link; they would use so much
    of the links if they waited for nothing.
    """
    costs = costs_of(tmp_path)
    burst_s = LINES * float(costs.link_line_s[0])
    core_s, think_s = alone * burst_s, senders * burst_s / NODES / asked
    rates = solved(costs, senders, think_s, core_s)
    found = [played(costs, rates, senders, think_s, core_s, SEED + k) for k in range(5)]
    mean, half = float(np.mean(found)), float(stats.t.ppf(0.995, 4) * stats.sem(found))
    assert half < 0.02 * mean, "the simulation is too short to tell"
    assert abs(float(rates.flows.sum()) - mean) < WITHIN * mean + half, f"seed {SEED}"


def test_known_loads(tmp_path: Path) -> None:
    """The cases above go from links that are hardly used to such that are nearly full, and without
    waits there would be more.
    """
    costs = costs_of(tmp_path)
    burst_s = LINES * float(costs.link_line_s[0])
    few, many = (
        solved(costs, 64, 64 * burst_s / NODES / asked, 0.5 * burst_s) for asked in (0.25, 1.2)
    )
    assert few.loads.links.max() < 0.25
    assert 0.9 < many.loads.links.max() < 1.0


@given(
    bandwidth=st.floats(1.0, 50.0),
    more=st.floats(1.0, 3.0),
    senders=st.integers(1, 64),
    think_us=st.floats(0.01, 20.0),
)
@settings(max_examples=40, deadline=None)
def test_wider_links_never_slow_senders_down(
    tmp_path_factory: pytest.TempPathFactory,
    bandwidth: float,
    more: float,
    senders: int,
    think_us: float,
) -> None:
    folder = tmp_path_factory.mktemp("bursts")
    rates = [
        solved(costs_of(folder, f"{LINK}bandwidth={each} GB/s"), 2 * senders, think_us * 1e-6, 0.0)
        for each in (bandwidth, more * bandwidth)
    ]
    slower, faster = (float(each.flows.sum()) for each in rates)
    assert faster >= slower * (1 - 1e-4)
    assert max(each.residual for each in rates) < 1e-4


@pytest.mark.parametrize("machine", ["amd-8n-ht", "xeon-4s-ivb", "epyc-2s-nps4"])
def test_a_writers_share_of_one_and_a_rounding_error_makes_no_negative_traffic(
    machine: str,
) -> None:
    costs = CostModel(load_machine(machine))
    n = len(costs.machine.nodes)
    source, evenly = np.zeros(n), np.full(n, 1.0 / n)
    source[1] = np.nextafter(1.0, 2.0)  # as the sum of shares comes out: the solver refused it
    found = hand_over_traffic(costs, source, evenly)
    assert (found.wire >= 0.0).all()
    assert found.wire.any()
    assert found.fetched >= 0.0
