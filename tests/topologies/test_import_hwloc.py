"""hwloc XML of formats 2 and 3, and XML that is meant to do harm."""

import re
from pathlib import Path

import pytest
from known import known
from refusals import told_by

from numatwin.inputs import parse_yaml
from numatwin.topologies import Machine, MachineDescription, build_machine
from numatwin.topologies.export import machine_yaml
from numatwin.topologies.importers import import_machine

# Node 0 in a package with cores of two threads and a memory-side cache before it, fast node 4 as
# near; node 2 in another package, without memory; node 7 at the root, with memory only.
XML = (Path(__file__).parent / "hwloc-small.xml").read_text()


def imported(folder: Path, text: str | bytes, name: str = "machine.xml") -> Machine:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return build_machine(import_machine(path))


def refused(folder: Path, text: str | bytes) -> str:
    told = told_by(imported, folder, text)
    assert [path.name for path in folder.iterdir()] == ["machine.xml"]
    return told.removeprefix(str(folder / "machine.xml"))


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_everything_comes_through(tmp_path: Path, version: str) -> None:
    machine = imported(tmp_path, XML.replace('"2.0"', f'"{version}"'))
    assert [node.id for node in machine.nodes] == [0, 2, 4, 7]
    assert [node.cpus for node in machine.nodes] == [(0, 1, 2, 3), (4, 5), (), ()]
    assert [node.cores for node in machine.nodes] == [2, 2, 0, 0]
    assert [node.threads_per_core for node in machine.nodes] == [2, 1, 1, 1]
    assert [node.group for node in machine.nodes] == ["package1", "package0", "package1", None]
    assert [node.memory_bytes for node in machine.nodes] == [2 << 20, 0, 1 << 20, 4 << 20]
    assert [node.memory_kind for node in machine.nodes] == ["DRAM", "DRAM", "HBM", "unknown"]
    assert [node.side_cache_bytes for node in machine.nodes] == [(1 << 20,), (), (), ()]
    assert [node.clock_Hz for node in machine.nodes] == [2.5e9, 3e9, None, None]
    (cache,) = machine.nodes[0].caches
    assert (cache.level, cache.size_bytes, cache.shared_by_cores) == (3, 6 << 20, 2)
    assert cache.ways == 12
    assert machine.slit is not None
    slit = machine.slit.tolist()
    assert slit == [[10, 20, 15, 17], [21, 10, 25, 27], [15, 25, 10, 30], [18, 28, 31, 10]]


@pytest.mark.parametrize("told", ["", 'cache_associativity="0"', 'cache_associativity="-1"'])
def test_ways_that_hwloc_does_not_know(tmp_path: Path, told: str) -> None:
    machine = imported(tmp_path, XML.replace('cache_associativity="12"', told))
    assert [cache.ways for cache in machine.nodes[0].caches] == [None]


def test_memory_attributes(tmp_path: Path) -> None:
    """Bandwidths are in MiB/s; the initiator that covers a node's CPUs best counts."""
    machine = imported(tmp_path, XML)
    bandwidth, latency = machine.bandwidth_Bps, machine.latency_ns
    assert bandwidth[0, 2] == 90_000 * 2**20
    rows = known(machine.description.pair_bandwidth)
    assert known(rows[0][2]).low == 90_000e6
    assert bandwidth[0, 0] == 2**20
    assert latency[1, 3] == pytest.approx(250)
    assert [latency[0, 0], latency[1, 0]] == pytest.approx([80, 80])
    assert (latency == latency).sum() == 3  # no other value is known


def test_a_side_cache_among_the_cpu_caches(tmp_path: Path) -> None:
    """So hwloc writes the part of a Xeon Phi's fast memory that is used as a cache."""
    text = XML.replace('gp_index="11"', 'gp_index="11" subtype="MemorySideCache"')
    machine = imported(tmp_path, text)
    assert machine.nodes[0].caches == ()
    assert [node.side_cache_bytes for node in machine.nodes] == [(1 << 20, 6 << 20), (), (), ()]


@pytest.mark.parametrize("unknown", ['cache_size="0"', ""])
def test_caches_of_unknown_size_are_left_out(tmp_path: Path, unknown: str) -> None:
    """As virtual machines have them; what is left is a machine file."""
    assert imported(tmp_path, XML).nodes[0].caches
    machine = imported(tmp_path, re.sub(r'cache_size="\d+"', unknown, XML))
    assert not any(node.caches or node.side_cache_bytes for node in machine.nodes)
    text = machine_yaml(machine.description)
    assert parse_yaml(text, "x.yaml").read_as(MachineDescription) == machine.description


def test_in_utf_16_and_compressed(tmp_path: Path) -> None:
    import gzip

    plain = imported(tmp_path, XML).as_json()
    wide = XML.replace("UTF-8", "UTF-16").encode("utf-16")
    assert imported(tmp_path, wide).as_json() == plain
    assert imported(tmp_path, gzip.compress(XML.encode()), "machine.xml.gz").as_json() == plain


DOCTYPE = '<!DOCTYPE topology SYSTEM "hwloc2.dtd">'
ENTITIES = [
    '<!DOCTYPE topology [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    '<!DOCTYPE topology [<!ENTITY % x SYSTEM "http://127.0.0.1/x.dtd"> %x;]>',
    '<!DOCTYPE topology [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">]>',
    '<!DOCTYPE topology SYSTEM "hwloc2.dtd" [<!ATTLIST object cpuset CDATA "0x1">]>',
    "<!DOCTYPE topology []>",
]


@pytest.mark.parametrize("doctype", ENTITIES)
def test_entities_are_refused(tmp_path: Path, doctype: str) -> None:
    told = refused(tmp_path, XML.replace(DOCTYPE, doctype).replace("Some CPU", "&x;"))
    assert told.startswith(":2:")
    assert "entities and other declarations" in told


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('version="2.0">', 'version="1.0">', ":LINE: unknown format of hwloc XML: found '1.0'"),
        (' version="2.0">', ">", ":LINE: unknown format of hwloc XML: found '1.0'"),
        ('version="2.0">', 'version="4.0">', ":LINE: unknown format of hwloc XML: found '4.0'"),
        ("</topology>", "</tree>", "damaged or cut off XML: mismatched tag"),
        ('os_index="7"', "", ":LINE: no os_index of a NUMANode: found ''"),
        ('os_index="7"', 'os_index="-1"', ":LINE: no os_index of a NUMANode: found '-1'"),
        ('os_index="7"', 'os_index="0"', ": NUMA node 0 is listed twice"),
        ('type="PU" os_index="5"', 'type="PU" os_index="4"', ":LINE: PU 4 is listed twice"),
        ('local_memory="4194304"', 'local_memory="4 MB"', ":LINE: no local_memory of a NUMANode"),
        ('cpuset="0x0000003f" gp_index="70"', 'cpuset="0x3g"', ":LINE: expected a mask"),
        ('type="NUMANode" os_index', 'type="Group" os_index', ": no NUMA node"),
        ("25 27 15 25 10 30 18 28 31 10", "25", "7 distances between 4 objects: expected 16"),
        ("10 20 15 17 21 10 ", "10 20 15 17 21 x ", "no distance: found 'x'"),
        ('value="90000"', 'value="fast"', ":LINE: no value of a memory attribute: found 'fast'"),
        ("</topology>", "", "damaged or cut off XML: no element found"),
        ("Some CPU", "&undefined;", "damaged or cut off XML"),
        ('encoding="UTF-8"', 'encoding="none-such"', "damaged"),
        ("<cpukind", "<" + "x" * 30 + " a='1' a='2'><cpukind", "duplicate attribute"),
    ],
)
def test_bad_documents_are_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in XML
    text = XML.replace(old, new, 1) if old != 'type="NUMANode" os_index' else XML.replace(old, new)
    told = refused(tmp_path, text.replace(DOCTYPE, "") if "undefined" in new else text)
    line = XML.count("\n", 0, XML.index(old)) + 1
    assert message.replace("LINE", str(line)) in told


def test_another_document_is_told(tmp_path: Path) -> None:
    told = refused(tmp_path, "<?xml version='1.0'?><html/>")
    assert "no hwloc XML: found 'html', expected a 'topology' as the root" in told


@pytest.mark.parametrize(
    ("head", "part", "message"),
    [
        ("", '<object type="Group">', "nested too deeply"),
        ("", '<object type="Group"/>', "more than 150,000 XML elements"),
        ("", "<x/>", "more than 150,000 XML elements"),
        ('<object type="', "x" * 1000, "a tag is too long"),
        ("<!--", "x" * 1000, "a tag is too long"),
        ("<distances2 type='NUMANode'><u64values>", "10 " * 1000, "too large"),
        ("", "text " * 1000, "too large"),
    ],
)
def test_huge_documents_are_refused(tmp_path: Path, head: str, part: str, message: str) -> None:
    size = 70 << 20 if message == "too large" else 8 << 20
    text = '<topology version="2.0">' + head + part * (size // len(part))
    assert message in refused(tmp_path, text)
