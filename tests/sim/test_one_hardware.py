"""The same work on the same machine has the same traffic and rate, whichever system does it."""

import numpy as np
import pytest

from numatwin.sim._kernel import SharedService
from numatwin.sim.kernel.picoseconds import PS_PER_S
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.demands import Demand, Reads, Step
from numatwin.sim.machine.reference.service_machine import MemoryUse, PieceDemand
from numatwin.sim.machine.reference.shared_service import SharedService as ReferenceService
from numatwin.sim.machine.service_machine import service_machine
from numatwin.sim.planes.rate_solver import RateSolver
from numatwin.sim.systems.tasks.service_times import Kinds, ServiceTimes
from numatwin.topologies.catalogue import load_machine, machine_names

NODES_MAX = 64
BIG = [name for name in machine_names() if 2 <= len(load_machine(name).nodes) <= NODES_MAX]
LEAST_S = 1e-15  # of instructions


@pytest.mark.parametrize("name", BIG)
def test_an_interleaved_scan_has_one_traffic_and_rate(name: str) -> None:
    """All cores stream lines of all memories in turn: as ERIS's flows and as tasks."""
    costs = CostModel(load_machine(name))
    n = len(costs.cores)
    core_node = np.repeat(np.arange(n), costs.cores.astype(int))
    nodes = np.unique(core_node)
    memory = np.array([node.memory_bytes > 0 for node in costs.machine.nodes])
    lines = np.ones((n, n)) * memory / memory.sum()
    flow_of, none = np.zeros(n, dtype=np.int64), np.zeros(len(core_node))
    flow_of[nodes] = np.arange(len(nodes))
    reads = Reads(1.0 / costs.cores[core_node], lines, stream=True)
    demand = Demand(flow_of, (Step("scan", none + LEAST_S, none, (reads,)),), (), 1e9, 1.0)
    eris = RateSolver(costs, core_node, np.ones(len(core_node))).solve(demand)
    tasks = ServiceTimes(costs).of(
        Kinds(
            node=nodes,
            read=lines[nodes],
            written=np.zeros((len(nodes), n)),
            instructions_s=np.full(len(nodes), LEAST_S),
            separate_s=np.zeros(len(nodes)),
            slots=costs.streaming_misses[nodes],
            on_core=np.ones(len(nodes), dtype=bool),
        )
    )
    tasks.solve(costs.cores[nodes])
    served = tasks.served()
    assert served.link_Bps.sum() / served.memory_Bps.sum() == pytest.approx(
        eris.link_Bps.sum() / eris.memory_Bps.sum(), rel=0.01
    )
    assert served.memory_Bps.sum() == pytest.approx(eris.memory_Bps.sum(), rel=0.01)


@pytest.mark.parametrize("name", [name for name in BIG if len(load_machine(name).nodes) <= 8])
def test_a_line_crosses_the_same_links_on_all_planes(name: str) -> None:
    """A line that is read and one written back, by each pair of nodes: bytes by the sums over
    routes, by the line's own way, and by the event plane's parts in C++ and in Python."""
    costs = CostModel(load_machine(name))
    n, links = len(costs.cores), len(costs.link_Bps)
    machine = service_machine(costs, np.arange(n), np.ones(n, dtype=np.int64))
    for node in range(n):
        for home in range(n):
            one = np.zeros((n, n))
            one[node, home] = 1.0
            read, written = costs.line_bytes(node, home)
            assert read == pytest.approx(costs.wire_rows(one).sum(axis=(0, 1)))
            assert written == pytest.approx(costs.written_wire_rows(one).sum(axis=(0, 1)))
            found = []
            for make in (SharedService, ReferenceService):
                service = make(machine)
                demand = service.demand(
                    PieceDemand(1.0, 0.0, (MemoryUse(home, 1000.0, 300.0, 10.0),))
                )
                service.start(0, node, demand, 1.0, 0)
                service.finish(10**12)
                service.count(10**12)
                found.append([service.link_ps(link) for link in range(links)])
            assert found[0] == found[1]
            expected = (1000 * read + 300 * written) * PS_PER_S / costs.link_Bps
            assert found[0] == pytest.approx(expected, rel=2e-3, abs=1)


def test_a_directory_in_memory_takes_controllers_from_eris_too() -> None:
    """Of half near and half far reads every second one is written: 2 N F / (N + F)."""
    costs = CostModel(load_machine("xeon-4s-ivb"))
    assert costs.directory_in_memory
    near_and_far = np.ones((4, 4)) + 2 * np.eye(4)
    assert costs.directory_writes(near_and_far) == pytest.approx([0.5] * 4)
    assert costs.directory_writes(np.eye(4)) == pytest.approx([0.0] * 4)
