"""Limits of transfers by hand: what a measured pair says of its initiator, links and home."""

from dataclasses import replace

import numpy as np
import pytest

from numatwin.inputs import parse_yaml
from numatwin.sim._kernel import SharedService
from numatwin.sim.kernel.picoseconds import PS_PER_S
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.reference.service_machine import MemoryUse, PieceDemand
from numatwin.sim.machine.reference.shared_service import SharedService as ReferenceService
from numatwin.sim.machine.service_machine import service_machine
from numatwin.sim.machine.transfer_limits import assumed_of_links
from numatwin.topologies import build_machine
from numatwin.topologies.schema import MachineDescription

MACHINE = """\
name: three
node_types:
  plain:
    cores: 4
    clock: 1 GHz
    ipc: 1
    streaming_misses: 100
    {die}
    caches: [{{level: 3, size: 1 MiB, shared_by_cores: 2, latency: 10 ns}}]
    memory: {{size: 1 GiB, bandwidth: 40 GB/s, latency: 100 ns}}
nodes: [{{ids: 0-2, type: plain}}]
link_types: {{wire: {{bandwidth: 16 GB/s, {carried}}}}}
links:
  - {{ends: [0, 1], type: wire}}
  - {{ends: [1, 2], type: wire}}
pair_latency: [[100 ns, 200 ns, 400 ns], [200 ns, 100 ns, 200 ns], [400 ns, 200 ns, 100 ns]]
pair_bandwidth:
  - [40 GB/s, {near}, {far}]
  - [{near}, 40 GB/s, {near}]
  - [{far}, {near}, 40 GB/s]
"""


def costs_of(near: str, far: str, carried: str = "", die: str = "") -> CostModel:
    text = MACHINE.format(near=near, far=far, carried=carried, die=die)
    description = parse_yaml(text, "three.yaml").read_as(MachineDescription)
    return CostModel(build_machine(description))


def test_a_pair_that_fills_a_link_says_what_the_link_carries() -> None:
    """14 of 16 GB/s; the pair over two links has as many of them, and so is held by them."""
    costs = costs_of("14 GB/s", "14 GB/s")
    assert costs.link_Bps == pytest.approx(np.full(4, 14e9))
    assert not costs.limits.limited


def test_a_draw_moves_a_limit_and_puts_no_other_in_its_place() -> None:
    """13 GB/s fill no link, and are held by lines under way; drawn around 14 they do."""
    stated, other = costs_of("14 GB/s", "14 GB/s"), costs_of("13 GB/s", "13 GB/s")
    assert other.limits.initiator_s.any()
    drawn = CostModel(replace(other.machine, drawn_from=stated.machine))
    assert not drawn.limits.limited
    assert drawn.link_Bps == pytest.approx(np.full(4, 13e9))


def test_pairs_that_fill_nothing_are_held_by_lines_under_way() -> None:
    """6.4 GB/s at 200 ns are 20 lines; 3.2 GB/s at 400 ns are as many. Links keep their rate."""
    costs = costs_of("6.4 GB/s", "3.2 GB/s")
    assert costs.link_Bps == pytest.approx(np.full(4, 16e9))
    assert not costs.limits.pair_s.any()
    # Half of each: 20 lines over 300 ns on average.
    lines = np.array([[0.0, 0.5, 0.5], [0, 0, 0], [0, 0, 0]])
    assert costs.limits.taken_s(lines)[0] == pytest.approx(300e-9 / 20)
    (one,) = assumed_of_links(costs, costs.limits)
    assert (one.name, one.value) == ("rate that wire links carry", 16e9)
    assert one.low is not None
    assert one.low.value == 6.4e9


def test_a_pair_with_fewer_lines_has_a_limit_of_its_own() -> None:
    """1.6 GB/s at 400 ns are 10 of 20 lines."""
    costs = costs_of("6.4 GB/s", "1.6 GB/s")
    assert (costs.limits.pair_s > 0).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert costs.limits.pair_s[0, 2] == pytest.approx(64 / 1.6e9)


def test_what_a_link_was_seen_to_carry_counts() -> None:
    costs = costs_of("6.4 GB/s", "3.2 GB/s", carried="carried: 7 GB/s")
    assert costs.link_Bps == pytest.approx(np.full(4, 7e9))
    assert not list(assumed_of_links(costs, costs.limits))


@pytest.mark.parametrize(("cores", "reads_Bps"), [(1, 4e9), (2, 4e9), (3, 8e9), (4, 8e9)])
@pytest.mark.parametrize("service", [SharedService, ReferenceService])
def test_a_die_reads_no_more_than_its_link_carries(
    service: type, cores: int, reads_Bps: float
) -> None:
    """Two cores a die, 4 GB/s each die; a core alone could have 64 GB/s."""
    costs = costs_of("6.4 GB/s", "3.2 GB/s", die="die_bandwidth: 4 GB/s")
    threads = np.ones(cores, dtype=np.int64)
    shared = service(service_machine(costs, np.zeros(cores, dtype=np.int64), threads))
    demand = shared.demand(PieceDemand(1.0, 0.0, (MemoryUse(0, 1.0, 0.0, 100.0),)))
    names = [shared.start(0, core, demand, 1e6, core) for core in range(cores)]
    rate = sum(shared.rate(name) for name in names)
    assert rate * PS_PER_S * 64 == pytest.approx(reads_Bps, rel=1e-6)


def test_kernel_and_reference_share_limits_alike() -> None:
    costs = costs_of("6.4 GB/s", "1.6 GB/s", die="die_bandwidth: 30 GB/s")
    machine = service_machine(costs, np.arange(3), np.ones(3, dtype=np.int64))
    rates = []
    for made in (SharedService(machine), ReferenceService(machine)):
        names = []
        for node in range(3):
            homes = (MemoryUse((node + 1) % 3, 1.0, 0.5, 50.0), MemoryUse(node, 2.0, 0.0, 50.0))
            number = made.demand(PieceDemand(1.0, 0.0, homes))
            names.append(made.start(0, node, number, 1e6, node))
        rates.append([made.rate(name) for name in names])
    assert rates[0] == rates[1]
