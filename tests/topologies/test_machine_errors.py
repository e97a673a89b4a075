"""What is wrong in a machine file is told in one line, with its line and column."""

from pathlib import Path

import pytest
from refusals import told_by

from numatwin.inputs import InputError, parse_yaml
from numatwin.topologies import Machine, load_machine, machine_from_document

GOOD = """\
name: small
node_types:
  cpu:
    cores: 2
    threads_per_core: 2
    clock: 2.5 GHz
    ipc: {value: 1.4, range: [1.0, 1.8]}
    caches: [{level: 1, size: 32 KiB}]
    memory: {size: 8 GiB, bandwidth: 20 GB/s, latency: 90 ns}
nodes:
  - {id: 0, type: cpu, cpus: "0-3"}
  - {id: 5, type: cpu, cpus: "4,6-8"}
hubs: [{id: switch}]
link_types:
  wire: {bandwidth: 10 GB/s, latency: 50 ns}
  half: {bandwidth: 5 GB/s, splits: true}
links:
  - {ends: [0, switch], type: wire, ports: [0, a]}
  - {ends: [5, switch], type: wire}
distance_classes:
  - {name: local, route: {}}
  - {name: far, route: {wire: 2}, bandwidth: 6 GB/s}
slit: [[10, 20], [20, 10]]
pair_latency: [[null, 150 ns], [140 ns, null]]
coherence: {protocol: snoop}
"""

# What to replace, with what, the message, and the text that the error points at.
BAD = [
    # Units
    ("10 GB/s", "10", "a bare number has no unit", "10, l"),
    ("10 GB/s", "10 ns", "'ns' is not a unit of bandwidth", "10 ns"),
    ("10 GB/s", "10 GT/s", "unknown unit 'GT", "10 GT/s"),
    ("90 ns", "fast", "expected a time with its unit", "fast"),
    # Values
    ("10 GB/s", "-10 GB/s", "above 0", "-10 GB/s"),
    ("10 GB/s", "0 GB/s", "above 0", "0 GB/s, latency: 50"),
    ("20 GB/s", "0 GB/s", "above 0", "0 GB/s, latency: 90"),
    ("90 ns", "0 ns", "above 0", "0 ns}"),
    ("cores: 2", "cores: -2", "expected at least 0", "-2"),
    ("cores: 2", "cores: two", "expected a whole number", "two"),
    ("value: 1.4", "value: -1", "expected above 0", "-1"),
    ("value: 1.4", "value: 2.4", "lower bound ≤ value ≤ upper bound", "ipc"),
    ("{level: 1", "{level: 9", "expected at most 4", "9, s"),
    (
        "[{level: 1",
        "[{level: 1, size: 1 MiB}, {level: 1",
        "level 1 is listed twice",
        "{level: 1, size: 32",
    ),
    # Fields
    ("clock", "clok", "unknown field 'clok'", "clok"),
    ("name: small", "title: small", "missing field 'name'", "title: small"),
    (
        "name: small",
        "name: ../small",
        "name: found '../small', expected at most 64 letters",
        "../small",
    ),
    ("{wire: 2}", "{wi/re: 2}", "expected at most 64 letters", "2}, b"),
    ("snoop", "gossip", "'snoop' or 'directory'", "gossip"),
    # Nodes
    ("{id: 0, type: cpu,", "{id: 0, type: gpu,", "unknown node type: expected one of cpu", "gpu"),
    ("{id: 0, type: cpu", "{type: cpu", "expected either id or ids", "{type"),
    ("{id: 5", "{id: 0", "node 0 is listed twice", "nodes:"),
    ('"0-3"', '"0-9"', "10 CPUs: expected", '"0-9"'),
    ('"0-3"', '"0-x"', "expected numbers such as '0-3,8'", '"0-x"'),
    ('{id: 0, type: cpu, cpus: "0-3"}', "{ids: 3-1, type: cpu}", "first ≤ last", "3-1"),
    ("{id: 5", "{ids: 5-9", "cpus: expected with id", "{ids"),
    # Links
    ("{ends: [5, switch]", "{ends: [7, switch]", "unknown end 7", "ends: [7"),
    ("{ends: [5, switch]", "{ends: [5, 5]", "a link to itself", "ends: [5"),
    ("switch], type: wire}", "switch], type: rope}", "unknown link type 'rope'", "rope"),
    ("  - {ends: [5, switch], type: wire}\n", "", "disconnected: node 5 has no route", "links:"),
    ("type: wire}", "type: half, ports: [0, a]}", "on a port of another link", "ports: [0, a]}"),
    (
        "hubs: [{id: switch}]",
        "hubs: [{id: switch}, {id: switch}]",
        "hub switch is listed twice",
        "hubs",
    ),
    # Classes and matrices
    ("route: {wire: 2}", "route: {rope: 2}", "unknown kind of link 'rope'", "2}, b"),
    ("[20, 10]]", "[20]]", "slit: 1 values in a row: expected 2", "[20]"),
    (", [20, 10]]", "]", "slit: 1 rows: expected 2", "slit"),
    ("cores: 2", "cores: !!python/name:os.system 2", "os.system is not allowed", "!!python"),
    ("slit: [[10", "slit: [[-1", "expected at least 0", "-1"),
]


def made(text: str) -> Machine:
    return machine_from_document(parse_yaml(text, "small.yaml"))


def test_the_good_file_is_good() -> None:
    machine = made(GOOD)
    assert [node.id for node in machine.nodes] == [0, 5]
    assert machine.latency_ns.ravel().tolist() == pytest.approx([90, 150, 140, 90])
    assert machine.bandwidth_Bps.ravel().tolist() == pytest.approx([20e9, 6e9, 6e9, 20e9])
    assert machine.hops.tolist() == [[0, 2], [2, 0]]
    assert machine.nodes[1].cpus == (4, 6, 7, 8)


@pytest.mark.parametrize(("old", "new", "message", "token"), BAD)
def test_mistakes_are_told_with_their_place(old: str, new: str, message: str, token: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    told = told_by(made, text)
    assert message in told
    position = text.index(token)
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    assert told.startswith(f"small.yaml:{line}:{column}: ")


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        ("0-999999999", "expected nodes of at most 1,000,000"),
        ("-3", "expected the first and the last node, such as 0-7"),
        ('""', "expected the first and the last node, such as 0-7"),
        ("7", "expected the first and the last node, such as 0-7"),
        ('"0-7,9"', "expected the first and the last node, such as 0-7"),
        ("5-0", "expected first ≤ last"),
        ("0-1024", "expected at most 1,024 nodes"),
        ("1000000-1000001", "expected nodes of at most 1,000,000"),
    ],
)
def test_a_run_of_nodes_at_fault_is_named(run: str, fault: str) -> None:
    """Also where it is the only item, so that the list would be called too short."""
    head, links = GOOD.index("nodes:\n"), GOOD.index("hubs:")
    text = f"{GOOD[:head]}nodes:\n  - {{ids: {run}, type: cpu}}\n{GOOD[links:]}"
    told, token = told_by(made, text), run.strip('"')
    assert told == f"small.yaml:11:11: nodes.0.ids: found '{token}', {fault}"


@pytest.mark.parametrize(
    ("nodes", "fault"),
    [
        ("5-0", "expected first ≤ last"),
        ("0-9999999", "expected nodes of at most 1,000,000"),
        ("[0]", "expected"),
        ("0-7", "there is no node 1"),
    ],
)
def test_nodes_of_a_nic(nodes: str, fault: str) -> None:
    text = f"{GOOD}nics: [{{nodes: {nodes}, bandwidth: 10 GB/s}}]\n"
    told = told_by(made, text)
    assert told.startswith(f"small.yaml:{text.count(chr(10))}:")
    assert "nics.0.nodes: " in told or "there is no node" in told
    assert fault in told


def test_an_unknown_machine_is_told_with_a_near_one() -> None:
    with pytest.raises(InputError, match="unknown machine: found 'amd-8n', expected 'amd-8n-ht'"):
        load_machine("amd-8n")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in told_by(load_machine, tmp_path / "none.yaml")


def test_a_user_file_is_a_machine(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(GOOD)
    assert load_machine(path).name == "small"
