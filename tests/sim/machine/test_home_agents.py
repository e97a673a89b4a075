"""Entries of home agents: who waits for a link holds one, and others wait for it in one queue.

Two nodes: a controller reads a line in 1 ns, 100 ns after the request of its own node, 200 ns after
that of the other one; a link carries a line in 4 ns. Scans read lines of node 0.
"""

from typing import Any

import numpy as np
import pytest
from test_shared_service import BOTH, NS
from test_shared_service import MACHINE as TWO_NODES

from numatwin.sim import _kernel
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.reference.service_machine import MemoryUse, PieceDemand
from numatwin.sim.machine.service_machine import service_machine
from numatwin.sim.systems.tasks.service_times import Kinds, ServiceTimes
from numatwin.topologies import Machine, build_machine, load_machine
from numatwin.topologies.schema import Coherence

MS = 1_000_000_000
NODE = np.array([0, 0, 1, 1])
MACHINE = TWO_NODES.replaced(write_ps=(1.0 * NS,) * 2, request_ps=(0, 0), limits=0)


def rates(make: Any, entries: float, scans: dict[int, float], until: int = 6 * MS) -> list[float]:
    """Lines per ns of endless scans on cores, each with so many lines under way."""
    service = make(MACHINE.replaced(entries=(entries, entries)))
    pieces = []
    for core, slots in scans.items():
        demand = service.demand(PieceDemand(memory=(MemoryUse(0, 1.0, slots=slots),)))
        pieces.append(service.start(0, core, demand, 1e12, core))
    while (at := service.next_change()) <= until:
        service.finish(at)
    return [service.rate(piece) * NS for piece in pieces]


@BOTH
def test_far_readers_hold_entries_while_they_wait_for_a_link(make: Any) -> None:
    """100 entries; 160 lines of a near scan, 407.5 of two far ones.

    The link carries 0.25 lines a ns, so a far line takes 407.5 / 0.25 = 1630 ns: 1180 ns in the
    queue for entries, 200 ns without load, 250 ns for the link. A near one takes 1180 + 100 ns:
    160 / 1280 = 0.125 lines a ns. Entries in use: (0.125 + 0.25) * 100 + 0.25 * 250 = 100.
    """
    found = rates(make, 100, {0: 160, 2: 203.75, 3: 203.75})
    assert found == pytest.approx([0.125, 0.125, 0.125], rel=2e-3)
    # Without a limit the near scan has all that the link leaves.
    assert rates(make, 0, {0: 160, 2: 203.75, 3: 203.75}) == pytest.approx([0.75, 0.125, 0.125])


@pytest.mark.parametrize(("near", "far"), [(4_000, 12_000), (9_000, 6_000), (8_000, 8_000)])
def test_where_many_wait_each_gets_lines_as_it_asks_for_them(near: float, far: float) -> None:
    """Total = L (1 + N_l / N_r), or what the controller carries."""
    found = rates(_kernel.SharedService, 50, {0: near, 2: far / 2, 3: far / 2}, 20 * MS)
    assert sum(found) == pytest.approx(0.25 * (1 + near / far), rel=0.02)


@BOTH
@pytest.mark.parametrize(
    "scans",
    [
        {0: 400.0, 1: 50.0},  # near ones alone, more than entries
        {0: 60.0, 2: 20.0, 3: 20.0},  # far ones who want 0.2 lines a ns of the link's 0.25
        {2: 400.0},  # far ones alone: none waits behind them
    ],
)
def test_where_no_link_is_short_nothing_changes(make: Any, scans: dict[int, float]) -> None:
    assert rates(make, 100, scans) == rates(make, 0, scans)


@BOTH
def test_the_queue_empties_when_far_readers_leave(make: Any) -> None:
    service = make(MACHINE.replaced(entries=(100.0, 100.0)))
    pieces = []
    for core, slots in ((0, 160.0), (2, 400.0)):
        demand = service.demand(PieceDemand(memory=(MemoryUse(0, 1.0, slots=slots),)))
        pieces.append(service.start(0, core, demand, 1e12, core))
    service.count(3 * MS)
    slow, waited = service.rate(pieces[0]), service.entry_wait_ps(0)
    service.cancel(3 * MS, pieces[1])
    service.count(40 * MS)
    assert waited > 1_000 * NS
    assert slow < 0.2 / NS
    assert service.rate(pieces[0]) == pytest.approx(1.0 / NS, rel=0.02)


def without_directory() -> Machine:
    """Four sockets; updates of their directories, which take time too, have a test of their own."""
    description = load_machine("xeon-4s-ivb").description
    coherence = Coherence(protocol="directory")
    return build_machine(description.model_copy(update={"coherence": coherence}))


def test_the_flow_plane_finds_the_same() -> None:
    """Scans on all sockets read the memory of one, with as many near ones as far ones a socket: the
    steady state of both, at any number of them and without jumps."""
    costs = CostModel(without_directory())
    times = ServiceTimes(costs)
    read = np.zeros((4, 4))
    read[:, 0] = 1.0
    none = np.zeros(4)
    kinds = Kinds(
        np.arange(4), read, np.zeros((4, 4)), none, none, np.full(4, 16.0), np.ones(4, dtype=bool)
    )
    totals, waits = [], []
    for far in np.linspace(0.0, 15.0, 31):
        sharing = times.of(kinds)
        sharing.solve(np.array([15.0, far, far, far]))
        served = sharing.served()
        totals.append(served.memory_Bps[0])
        waits.append(served.entry_wait_s[0])
    assert max(totals) == pytest.approx(67.5e9, rel=1e-3)
    assert totals[-1] < 0.9 * totals[0]
    assert np.abs(np.diff(totals)).max() < 0.08 * totals[0]
    assert waits[0] == 0.0 < waits[-1]

    cores = np.repeat(np.arange(4), 15)
    service = _kernel.SharedService(service_machine(costs, cores, np.ones(60, dtype=np.int64)))
    scan = service.demand(PieceDemand(memory=(MemoryUse(0, 1.0, slots=16.0),)))
    for core in range(60):
        service.start(0, core, scan, 1e12, core)
    service.count(20 * MS)
    before = service.lines_read(0)
    service.count(30 * MS)
    assert (service.lines_read(0) - before) * 64 / 0.01 == pytest.approx(totals[-1], rel=0.02)


def test_conservation_where_entries_are_short() -> None:
    """Lines are read at the rates that are told, and no resource does more than it can."""
    costs = CostModel(without_directory())
    read = np.full((4, 4), 0.25)
    ones = np.ones(4)
    kinds = Kinds(
        np.arange(4), read, 0.1 * read, 1e-9 * ones, 0 * ones, 16 * ones, np.ones(4, dtype=bool)
    )
    sharing = ServiceTimes(costs).of(kinds)
    sharing.solve(30 * ones)
    served = sharing.served()
    assert (served.memory_use <= 1 + 1e-9).all()
    assert (served.link_use <= 1 + 1e-9).all()
    lines = (30 / served.entry_s)[:, None] * 1.1 * read
    np.testing.assert_allclose(served.pair_Bps, lines * 64, rtol=1e-6)
