"""``numatwin machine`` list and show, on bundled machines and on files."""

from pathlib import Path

import pytest
from command_line import CommandLine, Refused

from numatwin.topologies import machine_names

MATRICES = ("slit", "hops", "latency_ns", "bandwidth_Bps")


def test_list(numatwin: CommandLine) -> None:
    done = numatwin("machine", "list")
    assert done.status == 0
    listed = [line.split()[0] for line in done.out.splitlines()[1:] if line[0] != " "]
    assert listed == machine_names()
    rows = numatwin("machine", "list", "--json").json()["machines"]
    assert [row["name"] for row in rows] == machine_names()
    amd = next(row for row in rows if row["name"] == "amd-8n-ht")
    assert (amd["nodes"], amd["cores"], amd["memory_bytes"]) == (8, 64, 64 * 2**30)


@pytest.mark.parametrize("name", machine_names())
def test_show_every_machine(numatwin: CommandLine, name: str) -> None:
    numatwin("machine", "show", name).said()
    shown = numatwin("machine", "show", name, "--json").json()
    count = len(shown["nodes"])
    for matrix in MATRICES:
        assert len(shown[matrix]) == count
        assert {len(row) for row in shown[matrix]} == {count}


def test_show_tells_ways_where_the_file_has_them(numatwin: CommandLine, tmp_path: Path) -> None:
    caches = "[{level: 1, size: 32 KiB}, {level: 3, size: 20 MiB, ways: 20}]"
    path = tmp_path / "box.yaml"
    path.write_text(
        f"name: box\nnode_types:\n  one: {{cores: 1, caches: {caches}, memory: {{}}}}\n"
        "nodes: [{id: 0, type: one}]\n"
    )
    assert "L1 32 KiB, L3 20 MiB (20 ways)" in numatwin("machine", "show", str(path)).out
    text = path.read_text()
    for ways in ("0", "327681"):  # of 327,680 lines
        path.write_text(text.replace("ways: 20", f"ways: {ways}"))
        refused = numatwin("machine", "show", str(path))
        assert refused.status == 2
        assert "box.yaml:3:" in refused.err
        assert "caches.1.ways" in refused.err


def test_show_tells_distances_as_measured(numatwin: CommandLine) -> None:
    lines = numatwin("machine", "show", "amd-8n-ht").out.splitlines()
    row = next(line for line in lines if line.startswith("1 hop, split, dual"))
    assert row.split()[4:] == ["16", "1", "2.9", "GB/s", "152", "ns"]
    assert "latency, ns (from row to column)" in lines


def test_show_folds_large_tables(numatwin: CommandLine) -> None:
    Path("ring.yaml").write_text(
        """\
name: ring
node_types: {a: {cores: 2, memory: {size: 8 GiB, bandwidth: 20 GB/s, latency: 90 ns}}}
nodes: [{ids: 0-31, type: a}]
link_types: {wire: {bandwidth: 10 GB/s, latency: 50 ns}}
generate: [{shape: ring, link: wire}]
"""
    )
    folded = numatwin("machine", "show", "ring.yaml").out
    assert "--matrices" in folded
    assert "from row to column" not in folded
    full = numatwin("machine", "show", "ring.yaml", "--matrices").out
    assert full.count("from row to column") == 3
    assert max(map(len, full.splitlines())) > 100  # nothing is cut
    assert "…" not in full
    row = next(line for line in full.splitlines() if line.startswith("16 hops"))
    assert row.split() == ["16", "hops", "32", "16", "10", "GB/s", "890", "ns"]


def test_show_yaml_is_a_machine_file(numatwin: CommandLine) -> None:
    text = numatwin("machine", "show", "amd-8n-ht", "--yaml").out
    assert "$schema=" not in text  # whose path is that of the bundled file
    Path("mine.yaml").write_text(text)
    mine = numatwin("machine", "show", "mine.yaml", "--json").json()
    assert mine == numatwin("machine", "show", "amd-8n-ht", "--json").json()
    assert numatwin("machine", "show", "mine.yaml", "--yaml").out == text


def test_show_refuses(refused: Refused) -> None:
    assert "machine list" in refused("machine", "show", "zzz")
    assert "No such file" in refused("machine", "show", "./none.yaml")
