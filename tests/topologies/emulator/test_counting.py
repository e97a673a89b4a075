"""What is handed to the counting plugin, and what is read of it, without a guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from numatwin.emulator import BEGIN, END, counted_region, mark_code
from numatwin.inputs import InputError
from numatwin.topologies import load_machine, machine_names
from numatwin.topologies.emulator.caches import (
    last_shape_of,
    played_caches,
    processor_nodes,
    shape_of,
)
from numatwin.topologies.emulator.counting import plugin_settings, reported_memory, run_counted
from numatwin.topologies.emulator.guest_machine import NODES_MAX, GuestMachine, guest_machine
from numatwin.topologies.emulator.plugin_build import SOURCES, plugin_interface
from numatwin.topologies.emulator.traffic import read_counts, snoop_domains

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("size_bytes", "shape"),
    [
        (32 * KIB, (64, 8)),
        (48 * KIB, (64, 12)),
        (1.25 * MIB, (2048, 10)),
        (512, (1, 8)),
    ],
)
def test_ways_make_sets_a_power_of_two(size_bytes: float, shape: tuple[int, int]) -> None:
    assert shape_of(size_bytes, 64) == shape


@pytest.mark.parametrize(
    ("size_bytes", "shape"),
    [
        (6 * MIB, (77 * 64, 20)),
        (14 * MIB, (179 * 64, 20)),
        (1_258_304, (512, 38)),
        (0.75 * MIB, (512, 24)),
        (30 * KIB, (16, 30)),
        (512, (1, 20)),
    ],
)
def test_a_last_level_has_the_ways_of_a_server(size_bytes: float, shape: tuple[int, int]) -> None:
    sets, ways = last_shape_of(size_bytes, 64)
    assert (sets, ways) == shape
    if size_bytes > 512:
        assert sets * ways * 64 == pytest.approx(size_bytes, rel=1 / 32)


def test_a_last_level_too_small_for_those_above_is_played_with_the_size_of_all() -> None:
    node = load_machine("amd-8n-ht").nodes[0]
    assert node.exclusive
    assert node.bytes_above_last_cache == 8 * MIB
    exclusive, inclusive = (played_caches(guest_of(name)) for name in ("amd-8n-ht", "intel-4s-qpi"))
    assert (exclusive.exclusive, inclusive.exclusive) == (True, False)
    assert exclusive.levels[-1].lines * 64 == pytest.approx(14 * MIB, rel=1 / 32)
    assert inclusive.levels[-1].lines * 64 == pytest.approx(24 * MIB, rel=1 / 32)


def guest_of(name: str, scale: float | None = None) -> GuestMachine:
    return guest_machine(load_machine(name), scale=scale, memory_bytes=8 << 30)


@pytest.mark.parametrize("name", machine_names())
def test_every_machine_s_caches_and_processors(name: str) -> None:
    machine = load_machine(name)
    if len(machine.nodes) > NODES_MAX:
        pytest.skip("no guest holds it")
    guest = guest_machine(machine, memory_bytes=128 * MIB * len(machine.nodes))
    caches = played_caches(guest)
    nodes = processor_nodes(guest)
    assert len(nodes) >= guest.processors
    assert set(nodes) == {k for k, node in enumerate(guest.machine.nodes) if node.threads}
    for level in caches.levels:
        assert len(level.instance) == len(nodes)
        assert max(level.instance) + 1 == level.instances
        for cache in range(level.instances):
            users = {nodes[cpu] for cpu, one in enumerate(level.instance) if one == cache}
            assert len(users) == 1  # no cache is shared between nodes
    sharers = [len(nodes) / level.instances for level in caches.levels]
    assert sharers == sorted(sharers)
    text = plugin_settings(guest, caches, Path("counts"))
    assert text.count("\ncpu ") == len(nodes)
    assert text.count("\nlevel ") == len(caches.levels)


def test_cores_share_as_the_machine_file_tells() -> None:
    """Two cores of a module share 2 MiB, the four modules 6 MiB, which cannot include theirs."""
    guest = guest_machine(load_machine("amd-8n-ht"), nodes=2, memory_bytes=1 << 30)
    first, second, last = played_caches(guest).levels
    assert first.instance == tuple(range(16))
    assert second.instance == tuple(cpu // 2 for cpu in range(16))
    assert last.instance == (0,) * 8 + (1,) * 8
    assert second.lines * 64 == 2 * MIB
    assert last.lines * 64 == pytest.approx((6 + 4 * 2) * MIB, rel=1 / 32)
    assert any("cannot include" in note for note in played_caches(guest).notes)


def test_where_qemu_reports_memory() -> None:
    """QEMU 7.2 reports node k at twice its offset, 9 and later where the guest sees it."""
    guest = guest_of("opteron-4n")
    sizes = guest.memory_bytes
    assert sizes == (2 << 30,) * 4
    gib = 1 << 30
    assert reported_memory(guest, (7, 2)) == [
        (0, 2 * gib, 0), (4 * gib, 6 * gib, 1), (8 * gib, 10 * gib, 2), (12 * gib, 14 * gib, 3)
    ]  # fmt: skip
    physical = reported_memory(guest, (10, 0))
    assert sum(end - first for first, end, _ in physical) == sum(sizes)
    assert physical[0][0] == 0
    with pytest.raises(InputError, match=r"QEMU 8\.1"):
        reported_memory(guest, (8, 1))
    assert [plugin_interface(v) for v in ((7, 2), (9, 0), (9, 1), (10, 0))] == [1, 2, 3, 3]


def test_snoop_domains() -> None:
    assert snoop_domains(load_machine("amd-8n-ht")) == (0,) * 8
    assert snoop_domains(load_machine("intel-4s-qpi")) == (1,) * 4
    groups = snoop_domains(load_machine("sgi-uv2000-64n"))
    assert groups[:4] == (1, 1, 2, 2)


def test_marks_are_those_of_the_header() -> None:
    header = (SOURCES / "numatwin.emulator.h").read_text()
    assert ".byte 0x0f, 0x1f, 0x80, " in header
    assert mark_code(BEGIN) == b"\x0f\x1f\x80\x01\x00\x74\x6e\xc3"
    assert mark_code(END)[3] == 2
    with counted_region(), counted_region():  # does nothing here
        pass


COUNTS = """numatwin-traffic 1
nodes 2
levels 2
span command 1
reads_user 0 1 100
found 0 1 30
found 0 2 20
crossings 0 0 4
read_misses_user 0 1 20
memory_reads 0 1 20
unknown 0 0 0
end
"""


def test_counts_are_read(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_text(COUNTS)
    (counts,) = read_counts(path, 2, 2, 2).values()
    assert counts.accesses.tolist() == [[0, 100], [0, 0]]
    assert counts.found.tolist() == [[54, 30, 20], [0, 0, 0]]  # 104 lines were looked for
    assert counts.broken_laws(1) == []


def test_counts_that_do_not_add_up_are_named(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_text(COUNTS.replace("memory_reads 0 1 20", "memory_reads 0 1 10"))
    (counts,) = read_counts(path, 2, 2, 2).values()
    assert counts.broken_laws(1) == ["misses are lines from memory and from caches: 20 and 10"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        COUNTS.replace("end\n", ""),
        COUNTS.replace("nodes 2", "nodes 3"),
        COUNTS.replace("found", "lost"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "counts"
    path.write_text(text)
    with pytest.raises(InputError, match="counts"):
        read_counts(path, 2, 2, 2)


def test_nothing_is_counted_without_a_command() -> None:
    with pytest.raises(InputError, match="needs a command"):
        run_counted(load_machine("opteron-4n"), [])
