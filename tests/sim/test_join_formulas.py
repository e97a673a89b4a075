"""The event plane against the cost formulas of the source (Binnig et al., PVLDB 9, 2016).

Per byte: a pass over tuples c_mem = 10^-9 s, a byte that is shipped c_net, the longest of a
thread's and the adapter's time for messages of 2 KB. A cluster does so much on each of its n
nodes, one thread each; (n - 1) / n of the tuples are shipped.

  GHJ             4 c_mem + c_net
  GHJ with Bloom  c_mem + sel (4 c_mem + c_net)
  RDMA GHJ        3 c_mem          transfers overlap
  RRJ             2 c_mem          the pass in memory is the one over the network
"""

import math

import numpy as np
import pytest
from known import known

from numatwin.sim.run.runner import maker_of
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.joins.flow import JoinFlow
from numatwin.sim.systems.joins.operators import Pieces
from numatwin.topologies import load_machine
from numatwin.topologies.nics import message_curve

C_MEM = 1.0  # ns a byte
INNER, OUTER, BYTES, NODES = 400_000, 800_000, 16, 8
SIZES = {"inner": 10**9, "outer": 10**10}


def c_net(transport: str) -> float:
    """ns a byte of messages of 2 KB."""
    curve = message_curve(load_machine("ib-fdr-8n"), 0, transport, 1)
    return max(receiving(transport), curve.occupancy_s(2048) / 2048 * 1e9)


def receiving(transport: str) -> float:
    """ns a byte of a receiver's thread."""
    machine = load_machine("ib-fdr-8n")
    cycles = message_curve(machine, 0, transport, 1).cycles(2048)
    return cycles / known(machine.nodes[0].clock_Hz) / 2048 * 1e9


def played(operator: str, transport: str, *more: str, plane: str = "event") -> float:
    """ns a byte of both tables, on each node, of the first query."""
    scenario = load_scenario(
        "join",
        plane=plane,
        settings=(
            f"workload.objects.inner.records={INNER}",
            f"workload.objects.outer.records={OUTER}",
            f"system.operator={operator}",
            f"system.transport={transport}",
            "system.workers=1",
            "system.ports=1",
            *more,
        ),
    )
    if plane == "flow":
        mean_ns = JoinFlow(scenario).flow.query_s(0) * 1e9
    else:
        made = maker_of(scenario)(scenario, 1)
        made.advance(0.05)
        (latencies,) = made.outcome().latencies_ns.values()
        mean_ns = latencies.mean
    return mean_ns / ((INNER + OUTER) * BYTES / NODES)


SHIPPED = (NODES - 1) / NODES


@pytest.mark.parametrize(
    ("operator", "transport", "formula"),
    [
        # The formula has no CPU time of receivers.
        ("ghj", "IPoEth", 4 * C_MEM + SHIPPED * (c_net("IPoEth") + receiving("IPoEth"))),
        ("ghj", "RDMA", 4 * C_MEM + SHIPPED * c_net("RDMA")),
        ("rdma-ghj", "RDMA", 3 * C_MEM),
        ("rrj", "RDMA", 2 * C_MEM),
    ],
)
def test_within_a_tenth_of_the_formulas(operator: str, transport: str, formula: float) -> None:
    assert played(operator, transport) == pytest.approx(formula, rel=0.1)


def test_bloom_filters_cost_more_than_the_formula_counts() -> None:
    """It ships filters for free: here each node sends its own, 4.8 bits a tuple of the inner table
    and of what passes of the outer one, to all others, whose threads copy it. A first scan of both
    tables and a second of what passes are in it; here the inner table is scanned twice, the outer
    one once."""
    sel, error = 0.2, 0.1
    passing = sel + (1 - sel) * error
    found = played("ghj-bloom", "RDMA", f"workload.operations.join.selectivity={sel}")
    formula = C_MEM + passing * (4 * C_MEM + SHIPPED * c_net("RDMA"))
    inner = INNER / (INNER + OUTER)
    scans = (2 * inner + (1 - inner) - 1 - passing) * C_MEM
    filter_bytes = -math.log(error) / math.log(2) ** 2 / 8 / BYTES
    filter_bytes *= inner + passing * (1 - inner)
    filters = filter_bytes * (C_MEM + (NODES - 1) * (C_MEM + c_net("RDMA") + receiving("RDMA")))
    assert found > 1.1 * formula
    assert found == pytest.approx(formula + scans + filters, rel=0.1)


def test_the_outer_table_is_probed_and_gets_its_filter_in_one_scan() -> None:
    """With no tuple that has a partner, and hardly a false positive: three scans are left, and the
    inner table's filter."""
    nobody = ("workload.operations.join.selectivity=0", "system.filter_error=0.001")
    found = played("ghj-bloom", "RDMA", "system.nodes=2", *nobody) / 4  # of two nodes, not eight
    inner = INNER / (INNER + OUTER)
    filter_bytes = -math.log(0.001) / math.log(2) ** 2 / 8 / BYTES * inner
    filters = filter_bytes * (C_MEM + C_MEM + c_net("RDMA") + receiving("RDMA"))
    assert found == pytest.approx((1 + inner) * C_MEM + filters, rel=0.05)


def test_sockets_over_infiniband_take_threads_of_receivers_too() -> None:
    """The formulas have no CPU time of messages but the sender's: over IPoIB half of a receiver's
    is in interrupts of one core, the other half on the threads that join."""
    formula = 4 * C_MEM + SHIPPED * c_net("IPoIB")
    found = played("ghj", "IPoIB")
    assert found > 1.1 * formula
    assert found == pytest.approx(formula + SHIPPED * receiving("IPoIB") / 2, rel=0.1)


@pytest.mark.parametrize(
    ("operator", "transport"),
    [("ghj", "IPoEth"), ("ghj", "IPoIB"), ("ghj-bloom", "RDMA"), ("rdma-ghj", "RDMA")],
)
def test_the_flow_plane_agrees_with_one_thread_a_node(operator: str, transport: str) -> None:
    event = played(operator, transport)
    assert played(operator, transport, plane="flow") == pytest.approx(event, rel=0.1)


def test_flows_hold_pieces_that_are_alike_once_however_large_tables_are() -> None:
    """10^9 and 10^10 tuples in chunks: one kind for each node. One by one they go round the nodes,
    as a central queue hands them out."""
    sizes = [f"workload.objects.{name}.records={size}" for name, size in SIZES.items()]
    play = JoinFlow(load_scenario("join", settings=(*sizes, "system.operator=ghj"))).play
    scan = play.plans[0].steps[0].pieces
    assert scan.counts is not None
    assert len(scan.lines) == len(play.ids)
    assert (scan.lines * scan.counts).sum() == pytest.approx(SIZES["inner"] * BYTES / 64)
    assert not any(step.piece_home for step in play.setup.operators[0].steps)
    few = Pieces(np.arange(3), np.array([1.0, 2.0, 3.0]), counts=np.array([2, 0, 3])).each()
    assert few.home.tolist() == [0, 2, 0, 2, 2]
    assert few.lines.tolist() == [1.0, 3.0, 1.0, 3.0, 3.0]
