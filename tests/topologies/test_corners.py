"""Machines whose uncertain facts are at the ends of their ranges."""

from __future__ import annotations

from numatwin.inputs import parse_yaml
from numatwin.topologies import MachineDescription
from numatwin.topologies.corners import corners, doubtful_corners, ranged_doubts

TEXT = """\
name: two
node_types:
  node:
    cores: 2
    clock: {value: 2 GHz, range: [1 GHz, 3 GHz]}
    ipc: {value: 1.5, range: [1.0, 2.0], doubtful: true}
    memory:
      bandwidth: {value: 20 GB/s, doubtful: true}
      latency: {value: 90 ns, range: [80 ns, 100 ns], doubtful: true}
nodes: [{ids: 0-1, type: node}]
link_types:
  wire: {bandwidth: {value: 10 GB/s, range: [5 GB/s, 12 GB/s], doubtful: true}}
links: [{ends: [0, 1], type: wire}]
"""


def described(text: str) -> MachineDescription:
    return parse_yaml(text, "two.yaml").read_as(MachineDescription)


def test_nodes_and_ways_are_off_together_and_against_each_other() -> None:
    """
    corner                  ipc  latency  wire
    nodes worse, ways worse   1   100 ns   5 GB/s
    nodes better, …           2    80 ns  12 GB/s

    The clock is not doubtful; the bandwidth is, but nobody knows how far: both stay.
    """
    found = {}
    for name, machine in doubtful_corners(described(TEXT)).items():
        kind = machine.node_types["node"]
        assert kind.clock is not None
        assert kind.clock.value == 2e9
        assert kind.ipc is not None
        memory = kind.memory
        assert memory.bandwidth is not None
        assert memory.bandwidth.value == 20e9
        assert memory.latency is not None
        found[name] = (
            kind.ipc.value,
            round(memory.latency.value * 1e9),
            machine.link_types["wire"].bandwidth.value / 1e9,
        )
    assert found == {
        "nodes worse, ways worse": (1.0, 100, 5),
        "nodes better, ways better": (2.0, 80, 12),
        "nodes better, ways worse": (2.0, 80, 5),
        "nodes worse, ways better": (1.0, 100, 12),
    }
    assert ranged_doubts(described(TEXT)) == 3


def test_writes_that_cost_the_controller_less_are_better() -> None:
    text = TEXT.replace(
        "{value: 90 ns, range: [80 ns, 100 ns], doubtful: true}",
        "90 ns\n      write_turnaround: {value: -0.6, range: [-0.8, -0.5]}",
    )
    found = corners(described(text))
    assert found is not None
    ends = [end["node_types"]["node"]["memory"]["write_turnaround"]["value"] for end in found]
    assert ends == [-0.5, -0.8]


def test_where_firmware_chooses_whether_sockets_snoop() -> None:
    """Snoops take room on links: that is a worse way. As no fact of nodes is uncertain, the better
    ways are one machine, and it comes once.
    """
    sure = TEXT.replace(", doubtful: true", "")
    coherence = "coherence: {protocol: snoop, doubtful: true}\n"
    found = doubtful_corners(described(sure + coherence))
    assert {name: one.coherence and one.coherence.protocol for name, one in found.items()} == {
        "nodes better, ways better": "directory",
    }
    assert ranged_doubts(described(sure + coherence)) == 1
    assert doubtful_corners(described(sure + coherence.replace(", doubtful: true", ""))) == {}


def test_without_doubts_there_are_none() -> None:
    sure = described(TEXT.replace(", doubtful: true", ""))
    assert doubtful_corners(sure) == {}
    assert ranged_doubts(sure) == 0
