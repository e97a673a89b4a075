"""Directories in memory: each time that a line's readers change between near and far, it is
written.

Two nodes: a controller reads and writes a line in 1 ns, 100 ns after the request; scans read lines
of node 0. With N near and F far lines a ns, 2 N F / (N + F) are written.
"""

from typing import Any

import numpy as np
import pytest

from numatwin.sim import _kernel
from numatwin.sim._kernel import ServiceMachine
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.reference import shared_service as reference
from numatwin.sim.machine.reference.service_machine import MemoryUse, PieceDemand
from numatwin.sim.machine.service_machine import service_machine
from numatwin.sim.systems.tasks.service_times import Kinds, ServiceTimes
from numatwin.topologies import load_machine

pytestmark = pytest.mark.kernel

NS, MS = 1_000, 1_000_000_000
MACHINE = ServiceMachine(
    read_ps=(1.0 * NS, 1.0 * NS),
    write_ps=(1.0 * NS, 1.0 * NS),
    latency_ps=(100.0 * NS,) * 4,
    load=(0.0, 1.0),
    load_ratio=(1.0, 1.0),
    core_node=(0, 1),
    core_threads=(1, 1),
    data_ps=(4 * NS, 4 * NS),
    request_ps=(0, 0),
    entering=(-1, 0, 1, -1),
    predecessor=(-1, 0, 1, -1),
    vertices=2,
    directory_in_memory=True,
)
WIDE = MACHINE.replaced(data_ps=(0, 0))
MAKERS = [_kernel.SharedService, reference.SharedService]
BOTH = pytest.mark.parametrize("make", MAKERS, ids=["kernel", "reference"])


def scanned(make: Any, machine: ServiceMachine, cores: list[int]) -> tuple[list[float], Any]:
    """Lines a ns of endless scans on cores, after 6 ms; and the service."""
    service = make(machine)
    scan = service.demand(PieceDemand(memory=(MemoryUse(0, 1.0, slots=1e4),)))
    pieces = [service.start(0, core, scan, 1e12, core) for core in cores]
    while (at := service.next_change()) <= 6 * MS:
        service.finish(at)
    service.count(6 * MS)
    return [service.rate(piece) * NS for piece in pieces], service


@BOTH
@pytest.mark.parametrize(
    ("machine", "cores", "expected"),
    [
        (WIDE, [0, 1], [1 / 3, 1 / 3]),  # half of the lines read are written: 1.5 ns a line
        (WIDE, [0], [1.0]),
        (WIDE, [1], [1.0]),  # others read a line again and again: it is set once
        # A link of 0.25 lines a ns: T + 0.5 (T - 0.25) / T = 1.
        (MACHINE, [0, 1], [np.sqrt(3) / 4, 0.25]),
        (MACHINE.replaced(directory_in_memory=False), [0, 1], [0.75, 0.25]),
    ],
)
def test_by_hand(make: Any, machine: ServiceMachine, cores: list[int], expected: float) -> None:
    found, service = scanned(make, machine, cores)
    assert found == pytest.approx(expected, rel=0.01)
    assert service.lines_written(0) == 0  # nothing of the pieces'
    if len(cores) > 1:
        assert service.controller_ps(0) == pytest.approx(6 * MS, rel=0.01)


@BOTH
def test_it_is_over_when_one_kind_of_readers_leaves(make: Any) -> None:
    service = make(WIDE)
    scan = service.demand(PieceDemand(memory=(MemoryUse(0, 1.0, slots=1e4),)))
    near, far = (service.start(0, core, scan, 1e12, core) for core in (0, 1))
    service.count(2 * MS)
    assert service.rate(near) * NS == pytest.approx(1 / 3, rel=0.01)
    service.cancel(2 * MS, far)
    service.count(3 * MS)
    assert service.rate(near) * NS == 1.0


@pytest.mark.parametrize("far", [1, 5, 15])
def test_the_flow_plane_finds_the_same(far: int) -> None:
    """15 near readers of a socket's memory, ``far`` ones on each other socket."""
    costs = CostModel(load_machine("xeon-4s-ivb"))
    assert costs.directory_in_memory
    read, none = np.zeros((4, 4)), np.zeros(4)
    read[:, 0] = 1.0
    slots, on_core = np.full(4, 16.0), np.ones(4, dtype=bool)
    kinds = Kinds(np.arange(4), read, np.zeros((4, 4)), none, none, slots, on_core)
    sharing = ServiceTimes(costs).of(kinds)
    sharing.solve(np.array([15.0, far, far, far]))
    served = sharing.served()
    assert (served.memory_use <= 1 + 1e-9).all()

    cores = np.repeat(np.arange(4), [15, far, far, far])
    one_each = np.ones(len(cores), dtype=np.int64)
    service = _kernel.SharedService(service_machine(costs, cores, one_each))
    scan = service.demand(PieceDemand(memory=(MemoryUse(0, 1.0, slots=16.0),)))
    for core in range(len(cores)):
        service.start(0, core, scan, 1e12, core)
    service.count(20 * MS)
    before = service.lines_read(0)
    service.count(30 * MS)
    found = (service.lines_read(0) - before) * 64 / 0.01
    assert found == pytest.approx(served.memory_Bps[0], rel=0.02)
