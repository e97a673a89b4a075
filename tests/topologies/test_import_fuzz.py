"""Importers on damaged and senseless input: only an InputError may come out, soon, of one line."""

import bz2
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saved_trees import NODE, TREE, tar_bytes, write_folder
from test_import_hwloc import XML
from test_import_text import MLC, NUMACTL

from numatwin.inputs import InputError, parse_yaml
from numatwin.topologies import (
    MachineDescription,
    build_machine,
    load_machine,
    machine_from_document,
)
from numatwin.topologies.export import machine_yaml
from numatwin.topologies.importers import import_machine

WHOLE = {
    "hwloc": XML.encode(),
    "numactl": NUMACTL.encode(),
    "mlc": MLC.encode(),
    "sysfs": tar_bytes(TREE).rstrip(b"\0") + bytes(1024),
    "packed": bz2.compress(tar_bytes(TREE)),
}
YAML = machine_yaml(load_machine("epyc-2s-cxl").description)

NUMBERS = (b"-1", b"0", b"1e999999", b"99999999999999999999999", b"0-65535", b"0xf...f", b"\xff")


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """``whole`` with a few parts cut out, doubled, moved, or replaced."""
    data = whole
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 200)))
        match draw(st.sampled_from(("cut", "end", "twice", "bytes", "number", "move"))):
            case "cut":
                data = data[:start] + data[end:]
            case "end":
                data = data[:start]
            case "twice":
                data = data[:end] + data[start:]
            case "bytes":
                data = data[:start] + draw(st.binary(max_size=20)) + data[end:]
            case "number":
                data = data[:start] + draw(st.sampled_from(NUMBERS)) + data[start + 1 :]
            case "move":
                data = data[:start] + data[end:] + data[start:end]
    return data


def import_or_refuse(path: Path) -> None:
    """Imports the file: the machine exports and loads again, or one line refuses it."""
    try:
        description = import_machine(path)
    except InputError as failure:
        told = str(failure)
        assert told.isprintable()
        return
    build_machine(description)
    text = machine_yaml(description)
    assert parse_yaml(text, "x.yaml").read_as(MachineDescription) == description


@pytest.mark.parametrize("kind", WHOLE)
@given(data=st.data())
def test_damaged_files(kind: str, data: st.DataObject) -> None:
    content = data.draw(damaged(WHOLE[kind]))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(content)
        import_or_refuse(path)
        assert os.listdir(folder) == ["x"]


TEXTS = st.one_of(st.sampled_from(sorted(set(TREE.values()))), st.text(max_size=30))


@given(changes=st.dictionaries(st.sampled_from(sorted(TREE)), TEXTS, max_size=4))
def test_damaged_trees(changes: dict[str, str]) -> None:
    files = {path: text.encode("utf-8", "replace").decode() for path, text in changes.items()}
    with TemporaryDirectory() as folder:
        import_or_refuse(write_folder(Path(folder) / "saved", TREE | files))


@given(data=st.data())
def test_damaged_machine_files(data: st.DataObject) -> None:
    try:
        machine_from_document(parse_yaml(data.draw(damaged(YAML.encode())), "x.yaml"))
    except InputError as failure:
        told = str(failure)
        assert told.startswith("x.yaml")
        assert told.isprintable()


def _nodes() -> st.SearchStrategy[dict[int, tuple[int, int]]]:
    """Node ids, each with its CPUs (how many) and MiB of memory."""
    return st.dictionaries(
        st.integers(0, 900),
        st.tuples(st.integers(0, 4), st.integers(0, 2**20)),
        min_size=1,
        max_size=6,
    ).filter(lambda nodes: any(cpus or memory for cpus, memory in nodes.values()))


@given(nodes=_nodes(), data=st.data())
def test_a_machine_survives_each_format(
    nodes: dict[int, tuple[int, int]], data: st.DataObject
) -> None:
    """Ids, CPUs, memory and SLIT, written in each format, read back the same."""
    ids = sorted(nodes)
    rows = data.draw(
        st.lists(
            st.lists(st.integers(0, 255), min_size=len(ids), max_size=len(ids)),
            min_size=len(ids),
            max_size=len(ids),
        )
    )
    cpus: dict[int, list[int]] = {}
    for node in ids:
        first = sum(map(len, cpus.values()))
        cpus[node] = list(range(first, first + nodes[node][0]))
    memory = {node: nodes[node][1] << 20 for node in ids}
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "numactl").write_text(_numactl(cpus, memory, rows))
        (folder / "hwloc").write_text(_hwloc(cpus, memory, rows))
        write_folder(folder / "sysfs", _sysfs(cpus, memory, rows))
        for kind in ("numactl", "hwloc", "sysfs"):
            machine = build_machine(import_machine(folder / kind))
            assert [node.id for node in machine.nodes] == ids
            assert [list(node.cpus) for node in machine.nodes] == list(cpus.values())
            # hwloc leaves sizes of 0 out, so it is not known whether all are 0.
            if kind != "hwloc" or any(memory.values()):
                assert [node.memory_bytes for node in machine.nodes] == list(memory.values())
            assert machine.slit is not None
            assert machine.slit.tolist() == rows


def _numactl(cpus: dict[int, list[int]], memory: dict[int, int], rows: list[list[int]]) -> str:
    lines = [f"available: {len(cpus)} nodes ({','.join(map(str, cpus))})"]
    for node, own in cpus.items():
        lines.append(f"node {node} cpus: {' '.join(map(str, own))}".rstrip())
        lines.append(f"node {node} size: {memory[node] >> 20} MB")
    lines += ["node distances:", "node " + " ".join(f"{node:3}" for node in cpus)]
    for node, row in zip(cpus, rows, strict=True):
        lines.append(f"{node:3}: " + " ".join(f"{value:3}" for value in row))
    return "\n".join(lines)


def _mask(cpus: list[int]) -> str:
    return f"{sum(1 << cpu for cpu in cpus):#x}"


def _hwloc(cpus: dict[int, list[int]], memory: dict[int, int], rows: list[list[int]]) -> str:
    everything = [cpu for own in cpus.values() for cpu in own]
    lines = [f'<topology version="3.0"><object type="Machine" cpuset="{_mask(everything)}">']
    for node, own in cpus.items():
        size = f' local_memory="{memory[node]}"' if memory[node] else ""
        lines.append(f'<object type="NUMANode" os_index="{node}" cpuset="{_mask(own)}"{size}/>')
    lines += [f'<object type="PU" os_index="{cpu}"/>' for cpu in everything]
    lines.append('</object><distances2 type="NUMANode" kind="5" indexing="os">')
    lines.append(f"<indexes>{' '.join(map(str, cpus))}</indexes>")
    lines += [f"<u64values>{' '.join(map(str, row))} </u64values>" for row in rows]
    return "\n".join([*lines, "</distances2></topology>"])


def _sysfs(
    cpus: dict[int, list[int]], memory: dict[int, int], rows: list[list[int]]
) -> dict[str, str]:
    files = {f"{NODE}/possible": ",".join(map(str, cpus))}
    for node, row in zip(cpus, rows, strict=True):
        files |= {
            f"{NODE}/node{node}/cpulist": ",".join(map(str, cpus[node])),
            f"{NODE}/node{node}/meminfo": f"Node {node} MemTotal: {memory[node] >> 10} kB",
            f"{NODE}/node{node}/distance": " ".join(map(str, row)),
        }
    return files


NONSENSE: dict[str, Callable[[], tuple[bytes, bytes]]] = {
    "random": lambda: (b"", os.urandom(1 << 20)),
    "zeros": lambda: (b"", bytes(1 << 20)),
    "blank lines": lambda: (b"", b"\n" * (1 << 20)),
    "lines of numactl": lambda: (b"", b"node 0 free: 1 MB\n" * 58_000),
    "one line of numactl": lambda: (b"node 0 cpus: ", b"0-65535," * (1 << 17)),
    "lines of mlc": lambda: (b"Measuring idle latencies\nNuma node 0 1\n", b"0 1 1\n" * 170_000),
    "headings of mlc": lambda: (b"", b"Measuring idle latencies (in ns)...\n" * 29_000),
    "wide xml": lambda: (b'<topology version="2.0">', b'<object type="Group"/>' * 47_000),
    "deep xml": lambda: (b'<topology version="2.0">', b'<object type="Group">' * 49_000),
    "long attribute": lambda: (b'<topology version="', b"2" * (1 << 20)),
}


@pytest.mark.parametrize("name", NONSENSE)
@pytest.mark.parametrize("size", [7 << 20, 100 << 20], ids=["7 MiB", "100 MiB"])
def test_nonsense_is_refused_soon(tmp_path: Path, name: str, size: int) -> None:
    """In 2 s of processor time and 256 MiB, of 100 MB as of what is within the limits of a text."""
    head, part = NONSENSE[name]()
    path = tmp_path / "nonsense"
    with open(path, "wb") as stream:
        stream.write(head)
        for _ in range(size // len(part)):
            stream.write(part)
    started = time.process_time()
    with pytest.raises(InputError):
        import_machine(path)
    assert time.process_time() - started < 2
    assert os.listdir(tmp_path) == ["nonsense"]
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            import_machine(path)
        assert tracemalloc.get_traced_memory()[1] < 256 << 20
    finally:
        tracemalloc.stop()
