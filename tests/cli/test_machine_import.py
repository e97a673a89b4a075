"""``numatwin machine import``: a machine file from what other tools say."""

import os
from pathlib import Path

import pytest
from command_line import CommandLine, Refused

NUMACTL = """\
available: 2 nodes (0-1)
node 0 cpus: 0 1
node 0 size: 1024 MB
node 1 cpus: 2 3
node 1 size: 2048 MB
node distances:
node   0   1
  0:  10  21
  1:  21  10
"""


@pytest.fixture
def hardware(numatwin: CommandLine) -> str:
    """The name of a file in the folder that the commands run in."""
    Path("hardware.txt").write_text(NUMACTL)
    return "hardware.txt"


def test_printed(numatwin: CommandLine, hardware: str) -> None:
    Path("mine.yaml").write_text(numatwin("machine", "import", hardware, "--no-catalogue").said())
    shown = numatwin("machine", "show", "mine.yaml", "--json").json()
    assert shown == numatwin("machine", "import", hardware, "--json", "--no-catalogue").json()
    assert shown["name"] == "hardware"
    assert shown["nodes"] == [
        {"id": 0, "cpus": [0, 1], "memory_bytes": 2**30},
        {"id": 1, "cpus": [2, 3], "memory_bytes": 2**31},
    ]
    assert shown["slit"] == [[10, 21], [21, 10]]
    assert shown["latency_ns"] == shown["bandwidth_Bps"] == [[None, None], [None, None]]


def test_written(numatwin: CommandLine, hardware: str) -> None:
    words = ("machine", "import", hardware, "--name", "mine")
    printed = numatwin(*words, "--out", "mine.yaml").said()
    assert printed.startswith("mine.yaml: 2 nodes, 4 cores, 3 GiB\n")
    assert Path("mine.yaml").read_text() == numatwin(*words).out
    shown = numatwin("machine", "show", "mine.yaml", "--json").json()
    assert shown == numatwin("machine", "import", hardware, "--json").json() | {"name": "mine"}


def test_filled_in_from_the_catalogue(numatwin: CommandLine, hardware: str) -> None:
    printed = numatwin("machine", "import", hardware).said()
    Path("mine.yaml").write_text(printed)
    shown = numatwin("machine", "show", "mine.yaml", "--json").json()
    assert shown == numatwin("machine", "import", hardware, "--json").json()
    assert shown["latency_ns"] == [[105, 180], [180, 105]]
    assert printed.startswith("# Guessed, as for a processor of which nothing is known: ")
    assert "# Still unknown: which processor it is (set --processor), caches, " in printed
    assert "numatwin machine measure" in printed
    assert "Doubtful values: " in numatwin("machine", "show", "mine.yaml").out


def test_the_processor_may_be_named(numatwin: CommandLine, hardware: str) -> None:
    done = numatwin("machine", "import", hardware, "--processor", "EPYC 7763", "--out", "mine.yaml")
    assert "catalogue of facts, entry epyc-7003, 7763 (EPYC 7003 (Milan))" in done.out
    shown = numatwin("machine", "show", "mine.yaml", "--json").json()
    assert shown["latency_ns"] == [[100, 195], [195, 100]]


def test_a_named_processor_is_of_the_catalogue(refused: Refused, hardware: str) -> None:
    assert "found 'Z80'" in refused("machine", "import", hardware, "--processor", "Z80")
    line = refused("machine", "import", hardware, "--processor", "EPYC 7763", "--no-catalogue")
    assert "at most one of" in line


def test_unknown_cores_are_not_counted(numatwin: CommandLine) -> None:
    Path("mlc.txt").write_text("Measuring idle latencies (in ns)...\nNuma node 0\n0 80.5\n")
    done = numatwin("machine", "import", "mlc.txt", "--out", "mine.yaml")
    assert done.out.startswith("mine.yaml: 1 node, cores unknown, memory unknown\n")


MLC = """\
Measuring idle latencies (in ns)...
Numa node 0 1
0 80.5 140.5
1 140.1 80.4
Measuring Memory Bandwidths between nodes within system
Numa node 0 1
0 100000.0 40000.0
1 40100.0 99900.0
Measuring Loaded Latencies for the system
 00000 200.0 150000.0
 20000 82.0 1000.0
"""


def test_how_to_learn_the_rest(numatwin: CommandLine) -> None:
    """What was measured is not asked for again, and one node has no other."""
    Path("mlc.txt").write_text(MLC)
    done = numatwin("machine", "import", "mlc.txt", "--processor", "Xeon Gold 6148").out
    assert "# Still unknown: size of the memory.\n" in done
    assert "# Cores, caches and sizes: import the output of 'lstopo mine.xml' there.\n" in done
    assert "To measure" not in done
    Path("one.txt").write_text(
        "available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 1024 MB\n"
        "node distances:\nnode   0\n  0:  10\n"
    )
    done = numatwin("machine", "import", "one.txt", "--processor", "EPYC 9755").out
    assert "measured bandwidth of the memory, measured latency of the memory" in done
    assert "between nodes" not in done
    assert "# To measure: 'numatwin machine measure'" in done


def test_what_is_left_out_is_told(numatwin: CommandLine) -> None:
    text = "Measuring idle latencies (in ns)...\nNuma node 0 1\n 0 0 140.1\n 1 140.2 80.3\n"
    Path("mlc.txt").write_text(text)
    done = numatwin("machine", "import", "mlc.txt", "--out", "mine.yaml")
    assert "Left out, as not measured: figures of 0 (1).\n" in done.out


def test_this_host(numatwin: CommandLine) -> None:
    if not Path("/sys/devices/system/cpu").is_dir():
        pytest.skip("this host has no sysfs")
    described = numatwin("machine", "import", "--json").json()
    assert described["name"] == "this-host"
    cpus = sum(len(node["cpus"]) for node in described["nodes"])
    assert cpus >= len(os.sched_getaffinity(0))


@pytest.mark.parametrize("out", [[], ["--out", "mine.yaml"], ["--json"]])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad.txt: empty file"),
        ("nonsense", "bad.txt: unknown format: expected a sysfs tree"),
        (NUMACTL[:-13], "bad.txt:7: cut off: 1 of 2 rows of distances"),
        (NUMACTL.replace("2 3", "1 3"), "bad.txt:4: CPU 1 is listed twice"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "are not allowed"),
    ],
)
def test_refused(refused: Refused, out: list[str], text: str, message: str) -> None:
    Path("bad.txt").write_text(text)
    assert message in refused("machine", "import", "bad.txt", *out)


def test_nothing_is_written_where_it_cannot_be(refused: Refused, hardware: str) -> None:
    assert "No such file" in refused("machine", "import", "none.xml", "--out", "mine.yaml")
    assert "cannot be written" in refused("machine", "import", hardware, "--out", "none/mine.yaml")
    for out in ("mine.json", "mine"):  # it would hold YAML, and be found as a machine by no command
        assert f"found '{out}', expected the extension .yaml or .yml" in refused(
            "machine", "import", hardware, "--out", out, "--json"
        )


def test_a_cluster_is_built(numatwin: CommandLine, refused: Refused) -> None:
    command = ("machine", "build", "--processor", "EPYC 7763", "--out", "cluster.yaml")
    done = numatwin(*command, "--adapter", "infiniband-hdr", "--servers", "4")
    assert done.out.startswith("cluster.yaml: 4 × server with 1 × EPYC 7763, InfiniBand HDR 4x")
    shown = numatwin("machine", "show", "cluster.yaml", "--json").json()
    assert len(shown["nodes"]) == 4
    assert shown["nodes"][0]["memory_bytes"] == 256 * 2**30
    assert "expected one of ethernet-10" in refused(*command, "--adapter", "arcnet")
    line = refused(*command, "--adapter", "roce-100", "--memory", "much")
    assert "not a size of memory" in line


def test_a_server_is_built(numatwin: CommandLine, refused: Refused) -> None:
    command = ("machine", "build", "--processor", "EPYC 9554", "--out", "server.yaml")
    done = numatwin(*command, "--sockets", "2", "--nodes-per-socket", "4", "--expander", "1 TiB")
    assert done.out.startswith("server.yaml: 2 × EPYC 9554, 4 nodes a socket, a CXL memory exp")
    assert "so assumed: 256 GiB of memory" in done.out
    shown = numatwin("machine", "show", "server.yaml", "--json").json()
    assert [node["id"] for node in shown["nodes"]] == [*range(9)]
    assert "expected --adapter" in refused(*command, "--servers", "2")
    split = refused(*command, "--adapter", "roce-100", "--nodes-per-socket", "4")
    assert "a cluster's server is one node" in split
