"""Waits of bursts at links, against a closed system that is played by hand."""

import heapq
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats
from small_scenarios import NODE, SCAN, small, small_file

from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.demands import Demand, Exchange
from numatwin.sim.machine.hand_over_traffic import hand_over_traffic
from numatwin.sim.planes.rate_solver import RateSolver
from numatwin.sim.planes.rates import Rates

SEED = 4711
LINES = 32.0
NODES = 2
# Waits are means, whose distribution is approximate.
WITHIN = 0.03


def costs_of(folder: Path) -> CostModel:
    # Without misses that hold a core: its time is given.
    quick = f"{NODE}streaming_misses=1000000"
    return CostModel(small(small_file(folder, SCAN, nodes=NODES), quick).machine)


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
@pytest.mark.parametrize("used", [0.2, 0.4, 0.6, 0.8, 0.9, 0.95])
def test_closed_senders(tmp_path: Path, used: float, alone: float, senders: int) -> None:
    costs = costs_of(tmp_path)
    burst_s = LINES * float(costs.link_line_s[0])
    core_s = alone * burst_s
    # They would use so much of the links, were there no waits.
    think_s = senders * burst_s / NODES / used
    rates = solved(costs, senders, think_s, core_s)
    found = [played(costs, rates, senders, think_s, core_s, SEED + k) for k in range(5)]
    half = float(stats.t.ppf(0.995, 4) * stats.sem(found))
    mean = float(np.mean(found))
    flow = float(rates.flows.sum())
    print(senders, alone, used, rates.loads.links.max(), rates.loads.control.max(), flow / mean, half / mean, rates.iterations, rates.residual)
    assert half < 0.02 * mean, "the simulation is too short to tell"
    assert abs(flow - mean) < WITHIN * mean + half, f"seed {SEED}"
