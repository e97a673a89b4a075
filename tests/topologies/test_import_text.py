"""What numactl -H and Intel MLC print, in the variants that are found."""

from pathlib import Path

import numpy as np
import pytest
from known import known
from refusals import told_by

from numatwin.topologies import Machine, build_machine
from numatwin.topologies.importers import import_machine

PRINTED = Path(__file__).parent / "printed"
NUMACTL = (PRINTED / "numactl.txt").read_text()
MLC = (PRINTED / "mlc.txt").read_text()


def imported(folder: Path, text: str | bytes, name: str = "machine.txt") -> Machine:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return build_machine(import_machine(path))


def refused(folder: Path, text: str | bytes) -> str:
    told = told_by(imported, folder, text)
    return told.removeprefix(str(folder / "machine.txt"))


def test_numactl(tmp_path: Path) -> None:
    machine = imported(tmp_path, NUMACTL)
    assert [node.id for node in machine.nodes] == [0, 2, 5]
    assert [node.cpus for node in machine.nodes] == [(0, 1, 8, 9), (2, 3), ()]
    assert [node.memory_bytes for node in machine.nodes] == [31986 << 20, 0, 129017 << 20]
    assert known(machine.slit).tolist() == [[10, 21, 17], [22, 10, 28], [17, 28, 10]]
    assert machine.description.notes == ("numactl does not list cores: each CPU is taken as one.",)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "$ numactl --hardware\n" + text + "$ \n",
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("0 1 8 9", "0-1,8-9"),
        lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
        lambda text: text.split("\n", 1)[1],
        lambda text: text.replace("0 1 8 9", "0-1,8-9 (4)"),
        lambda text: text.replace("0 1 8 9", "0 1\n8 9"),
        lambda text: "".join(f"2020-09-24 04:03:21\t {line}\n" for line in text.splitlines()),
    ],
    ids=["prompt", "crlf", "ranges", "indented", "without first", "compressed", "wrapped", "log"],
)
def test_numactl_as_it_is_found(tmp_path: Path, change: object) -> None:
    assert callable(change)
    assert imported(tmp_path, change(NUMACTL)).as_json() == imported(tmp_path, NUMACTL).as_json()


def test_numactl_without_distances_and_sizes(tmp_path: Path) -> None:
    text = NUMACTL.split("node distances")[0] + "No distance information available.\n"
    machine = imported(tmp_path, text.replace("31986 MB", "<not available>"))
    assert machine.slit is None
    assert np.isnan(machine.nodes[0].memory_bytes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0 1 8 9", "0 1 8 x", ":2: expected numbers such as '0-3,8'"),
        ("0 1 8 9", "0 1 8 2", ":5: CPU 2 is listed twice"),
        ("0 1 8 9", "0-1 (3)", ":2: 2 CPUs of node 0: expected 3, as its list ends"),
        ("node 5 cpus:\nnode 5 size: 129017 MB\n", "", "cut off: 2 of 3 nodes"),
        ("31986 MB", "plenty", ":3: no size of a node's memory: found 'plenty'"),
        ("  2:  22  10  28 \n", "  2:  22  10\n", ":14: 2 distances: expected 3"),
        ("  2:  22  10  28 \n", "  2:  22  10  999\n", ":14: no distance: found '999'"),
        ("  2:", "  0:", ":14: the distances of node 0 are listed twice"),
        ("  5:  17  28  10 \n", "", ":12: cut off: 2 of 3 rows of distances"),
        ("node 5 c", "node 2 c", ":8: the CPUs of node 2 are listed twice"),
        ("node distances", NUMACTL, "a second machine in the same text"),
    ],
)
def test_bad_numactl_is_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in NUMACTL
    assert message in refused(tmp_path, NUMACTL.replace(old, new, 1))


def test_numactl_cut_off_is_told(tmp_path: Path) -> None:
    assert "cut off: 1 of 3 nodes" in refused(tmp_path, NUMACTL.split("node 2")[0])
    assert "no nodes" in refused(tmp_path, "available: 0 nodes\n")


def test_mlc(tmp_path: Path) -> None:
    """Node 2 is only ever a home: it has no CPUs."""
    machine = imported(tmp_path, MLC)
    nan = pytest.approx(np.nan, nan_ok=True)
    assert machine.latency_ns[:2].ravel().tolist() == [
        pytest.approx(89.2),
        pytest.approx(142.7),
        pytest.approx(250.1),
        pytest.approx(142.9),
        pytest.approx(89.0),
        nan,
    ]
    assert machine.bandwidth_Bps[0].tolist() == [175690.9e6, 55676.8e6, 17600.0e6]
    assert np.ravel(machine.loaded_latency) == pytest.approx([2867e6, 91.23, 351871.6e6, 264.04])
    types = machine.description.node_types
    assert [types[node.type].cores for node in machine.description.nodes] == [None, None, 0]
    mixes = machine.description.read_write_mixes
    assert [(mix.name, mix.bandwidth.value) for mix in mixes] == [
        ("ALL Reads", 351762.1e6),
        ("Stream-triad like", 320198.4e6),
    ]


def test_mlc_with_numactl(tmp_path: Path) -> None:
    """CPUs, memory and SLIT from the one, figures from the other."""
    text = NUMACTL.replace("node 2", "node 1").replace("node 5", "node 2").replace("0,2,5", "0-2")
    text = text.replace("node   0   2   5", "node   0   1   2").replace("  2:", "  1:")
    machine = imported(tmp_path, text.replace("  5:", "  2:") + "\n" + MLC)
    assert [len(node.cpus) for node in machine.nodes] == [4, 2, 0]
    assert machine.slit is not None
    assert machine.latency_ns[0, 2] == pytest.approx(250.1)
    assert "node 1 is measured" in refused(tmp_path, NUMACTL + MLC)


@pytest.mark.parametrize(
    ("head", "nodes"),
    [("\tMemory node\n Socket\t     0\t     1", 2), ("Numa node            0       1 ", 2)],
)
def test_matrices_of_other_versions(tmp_path: Path, head: str, nodes: int) -> None:
    rows = "     0\t  67.5\t 125.2\n     1\t 125.0\t  67.1\n"
    text = f"Measuring idle latencies (in ns)...\n{head}\n{rows}"
    machine = imported(tmp_path, text)
    assert len(machine.nodes) == nodes
    assert machine.latency_ns[0].tolist() == pytest.approx([67.5, 125.2])


def test_single_options(tmp_path: Path) -> None:
    version = "Intel(R) Memory Latency Checker - v3.5\nCommand line parameters: --x\n"
    machine = imported(tmp_path, f"{version}Each iteration took 201.2 core clocks ( 80.5    ns)\n")
    assert machine.latency_ns.tolist() == [[pytest.approx(80.5)]]
    loaded = version + MLC[MLC.index("Measuring Loaded") : MLC.index("Measuring cache")]
    assert len(imported(tmp_path, loaded).loaded_latency) == 2
    wide = imported(tmp_path, MLC.encode("utf-16"))
    assert wide.as_json() == imported(tmp_path, MLC).as_json()


def test_an_excerpt_without_headings(tmp_path: Path) -> None:
    lines = [line for line in MLC.splitlines() if not line.startswith("Measuring Mem")]
    machine = imported(tmp_path, "\n".join(lines))
    assert machine.bandwidth_Bps[1, 0] == 55692.3e6


def test_other_traffic_than_reads_is_left_out(tmp_path: Path) -> None:
    machine = imported(tmp_path, MLC.replace("Read-only traffic", "2:1 Read-Write traffic"))
    assert np.isnan(machine.bandwidth_Bps).all()
    assert machine.loaded_latency == ()
    assert len(machine.description.notes) == 3
    assert machine.latency_ns[0, 0] == pytest.approx(89.2)


def test_the_last_of_several_runs_counts(tmp_path: Path) -> None:
    machine = imported(tmp_path, MLC + MLC.replace("89.2", "99.9").replace("264.04", "300.0"))
    assert machine.latency_ns[0, 0] == pytest.approx(99.9)
    assert np.ravel(machine.loaded_latency) == pytest.approx([2867e6, 91.23, 351871.6e6, 300.0])
    assert len(machine.description.notes) == 4


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    notes = imported(tmp_path, MLC.replace("142.7", "0.0")).description.notes
    assert "Left out, as not measured: figures of 0 (1)." in notes
    assert "Nodes without a row are taken as memory without CPUs: 2" in notes


TWO_NODES = "Numa node 0 1\n 0 {} 9.2\n 1 9.1 8.0\n"
TWO_TABLES = (
    "Measuring idle latencies (in ns)...\n"
    + TWO_NODES
    + "Measuring Memory Bandwidths between nodes within system\nUsing Read-only traffic type\n"
    + TWO_NODES
)


def test_a_matrix_that_lacks_a_row_is_refused(tmp_path: Path) -> None:
    whole = TWO_TABLES.format("8.1", "7.1")
    assert len(imported(tmp_path, whole).nodes) == 2
    assert ":3: cut off: no row of node 1" in refused(
        tmp_path, whole.replace(" 1 9.1 8.0\n", "", 1)
    )
    alone = whole[: whole.index("Measuring Memory")].replace(" 1 9.1 8.0\n", "")
    assert ":3: cut off: no row of node 1" in refused(tmp_path, alone)
    one_has_none = (
        "available: 2 nodes (0-1)\n"
        "node 0 cpus: 0 1\nnode 0 size: 16 MB\nnode 0 free: 1 MB\n"
        "node 1 cpus:\nnode 1 size: 16 MB\nnode 1 free: 1 MB\n"
        "node distances:\nnode 0 1\n 0: 10 20\n 1: 20 10\n"
    )
    assert len(imported(tmp_path, one_has_none + alone).nodes) == 2


@pytest.mark.parametrize("word", ["nan", "abc", "-5", "1e3"])
@pytest.mark.parametrize("figure", ["89.2", "351762.1", "264.04"])
def test_a_word_that_is_no_number_is_refused(tmp_path: Path, figure: str, word: str) -> None:
    assert f"no number: found '{word}'" in refused(tmp_path, MLC.replace(figure, word, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\t 142.7\t 250.1\t", "\t 142.7\t", ":5: 2 values in a row: expected 3"),
        ("142.7", "14x.7", ":5: no number: found '14x.7'"),
        ("142.7", "14.2.7", ":5: no number: found '14.2.7'"),
        ("       1\t 142.9", "       0\t 142.9", ":6: node 0 is listed twice in a table"),
        (" 20000\t 91.23\t   2867.0", " 20000\t 91.23", "cut off: a row of the loaded"),
        (" for random access (in ns)", " (in core clocks)", ":2: idle latencies in another unit"),
    ],
)
def test_bad_mlc_is_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in MLC
    assert message in refused(tmp_path, MLC.replace(old, new, 1))


def test_mlc_without_measurements_is_told(tmp_path: Path) -> None:
    assert "no measurement of reads" in refused(tmp_path, MLC.splitlines()[0])


def test_formats_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "machine.txt"
    path.write_text(NUMACTL)
    assert import_machine(path, name="mine").name == "mine"
    assert "no name for a machine: found '../x'" in told_by(import_machine, path, name="../x")
    assert "unknown format: expected a sysfs tree" in refused(tmp_path, "name: x\nnodes: []\n")
    assert ":1: not text: found 'byte 0xff'" in refused(tmp_path, b"available: 1 nodes (0)\xff")


LSCPU = (PRINTED / "lscpu.txt").read_text()
BESIDE = (PRINTED / "numactl-two.txt").read_text()


@pytest.mark.parametrize("beside", ["", BESIDE, BESIDE[BESIDE.index("node distances") :]])
def test_lscpu(tmp_path: Path, beside: str) -> None:
    """Alone, beside numactl -H, or beside its distances only; two threads are a core."""
    made = imported(tmp_path, LSCPU + beside)
    assert [(node.cores, len(node.cpus), node.group) for node in made.nodes] == [
        (2, 4, "package0"),
        (2, 4, "package1"),
    ]
    assert [(c.level, c.size_bytes, c.shared_by_cores) for c in made.nodes[0].caches] == [
        (1, 32 << 10, 1),
        (3, 55 << 19, 2),
    ]
    assert made.nodes[0].clock_Hz == 2.4e9
    assert (made.slit is not None) == bool(beside)
    assert made.description.notes == ()
    assert "a second machine" in refused(tmp_path, LSCPU + LSCPU)


def test_lscpu_of_clusters_and_of_two_kinds_of_cores(tmp_path: Path) -> None:
    """Of ARM's servers without sockets; of a Core with two P-cores and four E-cores."""
    clusters = LSCPU.replace("Socket(s):          2", "Socket(s): -\nCluster(s): 2")
    clusters = clusters.replace("Core(s) per socket", "Core(s) per cluster")
    groups = [node.group for node in imported(tmp_path, clusters).nodes]
    assert groups == ["package0", "package1"]
    text = LSCPU[: LSCPU.index("NUMA node0")] + "NUMA node0 CPU(s): 0-7\n"
    text = text.replace("Core(s) per socket: 2", "Core(s) per socket: 6")
    text = text.replace("Socket(s):          2", "Socket(s): 1").replace("2 inst", "1 inst")
    made = imported(tmp_path, text)
    assert (made.nodes[0].cores, len(made.nodes[0].cpus)) == (6, 8)
    assert [(c.level, c.shared_by_cores) for c in made.nodes[0].caches] == [(3, 6)]
    assert made.description.notes == (
        "lscpu counts 6 cores of 8 CPUs: the last 4 CPUs are taken as cores of one hardware "
        "thread, and private caches are left out.",
        "The cores within a node differ in threads or clock: taken as equal.",
    )


def test_lscpu_beside_mlc(tmp_path: Path) -> None:
    made = imported(tmp_path, LSCPU + TWO_TABLES.format("80.5", "90000.1"))
    assert (made.nodes[0].cores, made.threads) == (2, 8)
    assert made.latency_ns[0, 0] == pytest.approx(80.5)


def test_unequal_cores_and_joined_packages_are_reported(tmp_path: Path) -> None:
    one = LSCPU.replace("0,1,4,5", "0-7").replace("NUMA node1 CPU(s):      2,3,6,7\n", "")
    assert imported(tmp_path, one).description.notes[0].startswith("2 packages are one node")
    odd = one.replace("0-7", "0-6")
    assert (
        "The cores within a node differ in threads or clock: taken as equal."
        in imported(tmp_path, odd).description.notes
    )


LIKWID = (PRINTED / "likwid.txt").read_text()


def test_likwid_topology(tmp_path: Path) -> None:
    made = imported(tmp_path, LIKWID)
    assert [(node.cores, node.cpus, node.group) for node in made.nodes] == [
        (1, (0, 2), "package0"),
        (1, (1, 3), "package1"),
    ]
    assert [node.memory_bytes for node in made.nodes] == [1 << 30, 2 << 30]
    assert made.nodes[0].caches[0].size_bytes == 32 << 10
    assert known(made.slit).tolist() == [[10, 21], [21, 10]]
    far = imported(tmp_path, LIKWID.replace("Domain:\t\t\t1", "Domain:\t\t\t8"))
    assert far.slit is not None
    assert [node.id for node in far.nodes] == [0, 8]
    assert far.slit.tolist() == [[10, 21], [21, 10]]
    assert "cut off" in refused(tmp_path, LIKWID[: LIKWID.index("NUMA")])
    assert ":13: no size: found 'big'" in refused(tmp_path, LIKWID.replace("32 kB", "big"))


LIBVIRT = (PRINTED / "libvirt.xml").read_text()


def test_libvirt_domain(tmp_path: Path) -> None:
    made = imported(tmp_path, "<?xml version='1.0'?>\n" + LIBVIRT)
    assert [(node.cores, len(node.cpus), node.group) for node in made.nodes] == [
        (2, 4, "package0"),
        (2, 4, "package1"),
        (0, 0, None),
    ]
    assert [node.memory_bytes for node in made.nodes] == [1 << 30, 2 << 30, 1 << 30]
    assert known(made.slit).tolist() == [[10, 21, 20], [21, 10, 20], [20, 20, 10]]
    assert [node.side_cache_bytes for node in made.nodes] == [(8 << 20,), (), ()]
    assert (made.latency_ns[0, 0], made.latency_ns[0, 2]) == pytest.approx((90, 250))
    assert made.bandwidth_Bps[0, 0] == 204800 << 20
    assert ":6: no memory of a cell" in refused(tmp_path, LIBVIRT.replace("memory='1'", ""))
    assert "no cells" in refused(tmp_path, "<domain><cpu/></domain>")
