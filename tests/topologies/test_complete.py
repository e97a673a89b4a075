"""Descriptions filled in from the catalogue: what is taken, what is guessed, what stays."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known import known
from saved_trees import TREE, write_folder

from numatwin.inputs import Quantity, parse_yaml
from numatwin.topologies import Machine, MachineDescription, build_machine, load_machine
from numatwin.topologies.export import machine_yaml
from numatwin.topologies.facts import complete
from numatwin.topologies.importers import import_machine

DATA = Path(__file__).parents[3] / "shared" / "data"
DOCUMENTS = {"COPYING", "SOURCES.md"}
FILES = sorted(path for path in DATA.glob("*/*") if path.is_file() and path.name not in DOCUMENTS)
HASWELL = "Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz"


def described(
    processor: str | None,
    packages: list[str | None],
    slit: list[list[int]] | None = None,
    *,
    cores: int = 8,
    extra: str = "",
    identity: str = "",
) -> MachineDescription:
    """A node with so many cores for each of ``packages``, as an importer would give it."""
    said = f'model_name: "{processor}"' if processor else 'vendor: "unheard of"'
    text = f"name: made\nnode_types:\n  node:\n    processor: {{{said}{identity}}}\n"
    text += f"    cores: {cores}\n    memory: {{size: 8 GiB}}\n{extra}nodes:\n"
    for node, package in enumerate(packages):
        text += f"  - {{id: {node}, type: node"
        text += f", group: {package}}}\n" if package else "}\n"
    if slit is not None:
        text += f"slit: {slit}\n"
    return parse_yaml(text, "made.yaml").read_as(MachineDescription)


def made(*args: object, **more: object) -> Machine:
    return build_machine(complete(described(*args, **more)).description)  # type: ignore[arg-type]


def all_equal(n: int, distance: int = 21) -> list[list[int]]:
    return [[10 if i == j else distance for j in range(n)] for i in range(n)]


def ends(machine: Machine) -> set[tuple[object, object]]:
    return {
        (machine.vertex_name(a), machine.vertex_name(b)) for a, b in (x.ends for x in machine.links)
    }


def test_a_known_processor() -> None:
    machine = made(HASWELL, ["p0", "p1"], all_equal(2))
    node = machine.nodes[0]
    assert node.clock_Hz == 2.5e9
    # 88% of four channels of DDR4-2133.
    assert node.memory_bandwidth_Bps == pytest.approx(0.88 * 4 * 2133.33e6 * 8, rel=1e-3)
    assert node.outstanding_misses == 10
    assert machine.latency_ns[0, 1] == pytest.approx(142)
    # 92% of two QPI links of 9.6 GT/s.
    (link,) = machine.links
    assert link.bandwidth_Bps == pytest.approx(0.92 * 2 * 9.6e9 * 2, rel=1e-3)
    assert "node_types.node.memory.bandwidth" in machine.doubtful
    assert "link_types.socket.latency" in machine.doubtful
    # The manual tells the line-fill buffers: no doubt about them.
    assert "node_types.node.outstanding_misses" not in machine.doubtful


def test_each_value_says_where_it_comes_from() -> None:
    description = complete(described(HASWELL, ["p0", "p1"], all_equal(2))).description
    kind = description.node_types["node"]
    assert kind.memory.bandwidth is not None
    assert kind.memory.bandwidth.source is not None
    assert kind.memory.bandwidth.source.startswith("catalogue (xeon-e5-v3, E5-2680 v3): 88% of")
    assert kind.memory.bandwidth.low < kind.memory.bandwidth.value < kind.memory.bandwidth.high


def test_what_the_source_tells_stays() -> None:
    before = described(HASWELL, ["p0", "p1"], all_equal(2))
    kind = before.node_types["node"]
    own = Quantity(5e9, 5e9, 5e9, "measured")
    memory = kind.memory.model_copy(update={"bandwidth": own})
    kind = kind.model_copy(update={"clock": Quantity(1e9, 1e9, 1e9), "memory": memory})
    before = before.model_copy(update={"node_types": {"node": kind}})
    after = complete(before).description.node_types["node"]
    assert after.memory.bandwidth == own
    assert after.clock == Quantity(1e9, 1e9, 1e9)


def test_a_second_time_changes_nothing() -> None:
    once = complete(described(HASWELL, ["p0", "p1"], all_equal(2))).description
    twice = complete(once).description
    assert twice.model_copy(update={"notes": once.notes}) == once


def test_four_sockets_all_to_all() -> None:
    """An E7 of the first kind has four QPI links, one of them to devices."""
    machine = made("Intel(R) Xeon(R) CPU E7- 4870  @ 2.40GHz", ["a", "b", "c", "d"], all_equal(4))
    assert len(machine.links) == 6
    assert machine.hops.max() == 1


def test_more_sockets_than_links_hang_on_a_hub() -> None:
    """Two QPI links cannot join four sockets all to all; a SLIT of one distance tells no ring."""
    machine = made("Intel(R) Xeon(R) CPU E5-4640 0 @ 2.40GHz", ["a", "b", "c", "d"], all_equal(4))
    assert [hub.kind for hub in machine.hubs] == ["interconnect"]
    bandwidth = machine.description.link_types["socket"].bandwidth
    assert bandwidth.low < 0.5 * bandwidth.value


@pytest.mark.parametrize(("sockets", "protocol"), [(4, "snoop"), (24, "directory")])
def test_more_sockets_than_snoop_have_a_directory(sockets: int, protocol: str) -> None:
    """An SGI of 24 × E5-4640 would else send each miss to all, and its links would bind."""
    packages: list[str | None] = [f"p{k}" for k in range(sockets)]
    coherence = known(made("Xeon E5-4640", packages, all_equal(sockets, 65)).description.coherence)
    assert coherence.protocol == protocol


def test_the_slit_tells_a_ring() -> None:
    ring = [[10, 20, 30, 20], [20, 10, 20, 30], [30, 20, 10, 20], [20, 30, 20, 10]]
    machine = made("Intel(R) Xeon(R) CPU E5-4640 0 @ 2.40GHz", ["a", "b", "c", "d"], ring)
    assert ends(machine) == {(0, 1), (1, 2), (2, 3), (0, 3)}
    assert machine.latency_ns[0, 2] == pytest.approx(78 + 2 * 50)


def test_clusters_of_a_socket_hang_on_its_mesh() -> None:
    """Channels are shared out; the two sockets' meshes are joined."""
    slit = [[10, 12, 21, 21], [12, 10, 21, 21], [21, 21, 10, 12], [21, 21, 12, 10]]
    name = "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz"
    machine = made(name, ["s0", "s0", "s1", "s1"], slit, cores=20)
    assert [(hub.id, hub.kind) for hub in machine.hubs] == [
        ("mesh-s0", "mesh"),
        ("mesh-s1", "mesh"),
    ]
    assert machine.nodes[0].memory_bandwidth_Bps == pytest.approx(0.86 * 204.8e9 / 2, rel=1e-3)
    assert machine.latency_ns[0].tolist() == pytest.approx([89, 96, 143, 143], abs=0.5)


def test_dies_have_links_of_their_own() -> None:
    """Naples: dies of a package all to all, and each to its twin in the other package."""
    slit = [[10 if i == j else 16 if i // 4 == j // 4 else 32 for j in range(8)] for i in range(8)]
    machine = made("AMD EPYC 7601 32-Core Processor", ["a"] * 4 + ["b"] * 4, slit)
    assert {pair for pair in ends(machine) if pair[1] >= 4 and pair[0] < 4} == {  # type: ignore[operator]
        (0, 4),
        (1, 5),
        (2, 6),
        (3, 7),
    }
    assert len(machine.links) == 6 + 6 + 4


def test_a_node_of_two_sockets_has_the_channels_of_both() -> None:
    one = made(HASWELL, [None])
    both = made(HASWELL, [None], identity=", packages: 2")
    assert one.nodes[0].memory_bandwidth_Bps is not None
    assert both.nodes[0].memory_bandwidth_Bps == pytest.approx(
        2 * one.nodes[0].memory_bandwidth_Bps, rel=1e-3
    )


def test_a_virtual_machine_shares_its_socket() -> None:
    """Four of twelve cores: from a third of the bandwidth to all of it."""
    description = complete(
        described(HASWELL, [None], cores=4, identity=", virtual: true")
    ).description
    bandwidth = known(description.node_types["node"].memory.bandwidth)
    real = complete(described(HASWELL, [None], cores=4)).description
    whole = known(real.node_types["node"].memory.bandwidth)
    assert bandwidth.low == pytest.approx(whole.low / 3, rel=1e-3)
    assert bandwidth.high == whole.high
    assert bandwidth.low < bandwidth.value < whole.value


def test_an_unknown_processor_is_a_guess() -> None:
    done = complete(described(None, ["a", "b"], all_equal(2)))
    machine = build_machine(done.description)
    bandwidth = known(done.description.node_types["node"].memory.bandwidth)
    assert known(bandwidth.source).startswith("guessed (a processor of which nothing is known)")
    assert bandwidth.high > 5 * bandwidth.low
    assert "node_types.node.clock" in machine.doubtful
    assert machine.links
    assert "which processor it is (set --processor)" in done.unknown
    assert any("Guessed" in line for line in done.taken)


def test_the_name_of_the_processor_may_be_given() -> None:
    done = complete(described(None, ["a", "b"], all_equal(2)), "EPYC 7763")
    assert known(done.description.node_types["node"].clock).value == 2.45e9
    assert not any("which processor" in line for line in done.unknown)


def test_memory_without_cpus_hangs_on_the_nearest_node(tmp_path: Path) -> None:
    """Node 5 of the small tree has a bandwidth of its own from node 0; node 9 has no memory."""
    before = import_machine(write_folder(tmp_path / "tree", TREE))
    machine = build_machine(complete(before).description)
    five = [node.id for node in machine.nodes].index(5)
    assert machine.bandwidth_Bps[0, five] == 17_600e6
    assert machine.latency_ns[0, five] == 250
    assert machine.nodes[five].memory_bandwidth_Bps == 17_600e6
    assert np.isfinite(machine.hops).all()


@pytest.mark.parametrize(
    ("kind", "low_Bps", "high_Bps"),
    [("HBM", 80e9, 500e9), ("NVM", 6e9, 45e9), ("CXL-DRAM", 8e9, 55e9), ("odd", 6e9, 200e9)],
)
def test_kinds_of_memory(kind: str, low_Bps: float, high_Bps: float) -> None:
    text = machine_yaml(described(HASWELL, ["a"])).replace(
        "nodes: [{id: 0,",
        f"  far: {{cores: 0, memory: {{size: 1 GiB, kind: {kind}}}}}\n"
        "nodes: [{id: 1, type: far}, {id: 0,",
    )
    before = parse_yaml(text, "made.yaml").read_as(MachineDescription)
    bandwidth = known(complete(before).description.node_types["far"].memory.bandwidth)
    assert (bandwidth.low, bandwidth.high) == (low_Bps, high_Bps)
    assert bandwidth.doubtful


def test_measured_pairs_are_not_overruled() -> None:
    if not DATA.is_dir():
        pytest.skip("no folder ../shared/data with real inputs")
    before = import_machine(DATA / "mlc" / "skylake-2s.txt")
    alone, named = complete(before), complete(before, "Xeon Gold 6140")
    assert alone.description.links == ()
    assert any("--processor" in line for line in alone.unknown)
    machine = build_machine(named.description)
    assert machine.bandwidth_Bps[0, 0] == 104362.2e6
    assert machine.nodes[0].memory_bandwidth_Bps is None
    assert machine.nodes[0].cores == 18
    assert len(machine.links) == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_real_file_is_filled_in(path: Path) -> None:
    done = complete(import_machine(path))
    text = machine_yaml(done.description)
    assert parse_yaml(text, path.name).read_as(MachineDescription) == done.description
    machine = build_machine(done.description)
    if any(kind.cores is None for kind in done.description.node_types.values()):
        return  # of MLC, which tells no cores
    for k, node in enumerate(machine.nodes):
        if node.cores:
            assert node.clock_Hz
            assert node.ipc
            assert not np.isnan(machine.latency_ns[k, k])
        assert node.memory_bandwidth_Bps or not np.isnan(machine.bandwidth_Bps[:, k]).all()
    assert np.isfinite(machine.latency_ns[[bool(node.cores) for node in machine.nodes]]).all()


def test_the_same_links_as_the_bundled_machine() -> None:
    """Whose graph was read from this SLIT."""
    path = DATA / "hwloc" / "64amd64-4s2n4ca2co.tar.bz2"
    if not path.exists():
        pytest.skip("no folder ../shared/data with real inputs")
    machine = build_machine(complete(import_machine(path)).description)
    bundled = load_machine("amd-8n-ht")
    assert np.array_equal(machine.hops, bundled.hops)


@given(st.data())
def test_any_slit_and_any_packages_make_a_machine(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 9))
    slit = data.draw(
        st.lists(st.lists(st.integers(0, 255), min_size=n, max_size=n), min_size=n, max_size=n)
    )
    packages = data.draw(
        st.lists(st.sampled_from([None, "p0", "p1", "p2"]), min_size=n, max_size=n)
    )
    names = ["AMD EPYC 7601", HASWELL, "AMD Opteron(TM) Processor 6276", "POWER8", None]
    processor = data.draw(st.sampled_from(names))
    use_slit = data.draw(st.booleans())
    before = described(processor, packages, slit if use_slit else None)
    done = complete(before)
    machine = build_machine(done.description)
    assert np.isfinite(machine.latency_ns).all()
    assert (machine.latency_ns >= machine.latency_ns.diagonal()[None, :] - 1e-9).all()
    assert parse_yaml(machine_yaml(done.description), "x").read_as(MachineDescription)


LATENCIES = """\
Measuring idle latencies (in ns)...
Numa node 0 1 2 3
 0 77.7 90.5 {0} {0}
 1 90.2 77.1 {0} {0}
 2 {0} {0} 77.9 90.3
 3 {0} {0} 90.7 77.4
"""


@pytest.mark.parametrize(
    ("processor", "remote", "cores", "groups"),
    [
        ("Xeon E5-2690 v4", "130.1", 7, [0, 0, 1, 1]),  # cluster-on-die
        ("EPYC 9354P", "95.1", 8, [0, 0, 0, 0]),  # one socket in NPS4
        ("Xeon E7-4870", "130.1", 10, None),  # four sockets
    ],
)
def test_nodes_of_a_socket_by_their_latencies(
    tmp_path: Path, processor: str, remote: str, cores: int, groups: list[int] | None
) -> None:
    path = tmp_path / "mlc.txt"
    path.write_text(LATENCIES.format(remote))
    done = complete(import_machine(path), processor)
    nodes = build_machine(done.description).nodes
    assert [node.cores for node in nodes] == [cores] * 4
    assert [len(node.cpus) for node in nodes] == [2 * cores] * 4
    expected = [None] * 4 if groups is None else [f"package{group}" for group in groups]
    assert [node.group for node in nodes] == expected
    assert any("By the processor's name" in line for line in done.taken) == bool(groups)


def test_cores_of_a_socket_by_the_numbers_of_its_cpus(tmp_path: Path) -> None:
    """Two runs of CPU numbers a node: second threads. Eight cores of an EPYC 7551's 32 a node."""
    lines = ["available: 8 nodes (0-7)"]
    for k in range(8):
        cpus = " ".join(str(8 * k + cpu + run) for run in (0, 64) for cpu in range(8))
        lines += [f"node {k} cpus: {cpus}", f"node {k} size: 16000 MB"]
    path = tmp_path / "numactl.txt"
    path.write_text("\n".join(lines) + "\n")
    machine = build_machine(complete(import_machine(path), "EPYC 7551").description)
    assert [(node.cores, node.group) for node in machine.nodes] == [
        (8, f"package{k // 4}") for k in range(8)
    ]
    assert machine.threads == 128


def test_memory_as_near_to_several_nodes_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "numactl.txt"
    path.write_text(
        "available: 3 nodes (0-2)\nnode 0 cpus: 0\nnode 0 size: 1 MB\nnode 1 cpus: 1\n"
        "node 1 size: 1 MB\nnode 2 cpus:\nnode 2 size: 1 MB\nnode distances:\nnode 0 1 2\n"
        "0: 10 40 80\n1: 40 10 80\n2: 80 80 10\n"
    )
    done = complete(import_machine(path))
    assert any("to several are the same: 2." in line for line in done.taken)
