"""What is handed to the counting plugin, and what is read of it, without a guest."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from played_caches import Played, Shape
from refusals import told_by

from numatwin.emulator import BEGIN, END, counted_region, mark_code
from numatwin.topologies import build_machine, load_machine, machine_names
from numatwin.topologies.emulator.counting import (
    LAST_WAYS,
    SOURCES,
    Counting,
    played_caches,
    plugin_interface,
    plugin_settings,
    processor_nodes,
    reported_memory,
    run_counted,
    shape_of,
    shape_with,
)
from numatwin.topologies.emulator.guest_machine import NODES_MAX, GuestMachine, guest_machine
from numatwin.topologies.emulator.traffic import read_counts, snoop_domains

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("size_bytes", "shape"),
    [(32 * KIB, (64, 8)), (48 * KIB, (64, 12)), (1.25 * MIB, (2048, 10)), (512, (1, 8))],
)
def test_ways_make_sets_a_power_of_two(size_bytes: float, shape: tuple[int, int]) -> None:
    assert shape_of(size_bytes, 64, 8) == shape


@pytest.mark.parametrize(
    ("size_bytes", "shape"),
    [
        (6 * MIB, (77 * 64, 20)),
        (14 * MIB, (179 * 64, 20)),
        (1_258_304, (992, 20)),
        (0.75 * MIB, (608, 20)),
        (30 * KIB, (24, 20)),
        (512, (1, 20)),
    ],
)
def test_a_last_level_has_the_ways_of_a_server(size_bytes: float, shape: tuple[int, int]) -> None:
    sets, ways = shape_with(LAST_WAYS, size_bytes, 64)
    assert (sets, ways) == shape
    if size_bytes > 512:
        assert sets * ways * 64 == pytest.approx(size_bytes, rel=1 / 32)


@given(st.integers(1, 300), st.integers(16, 1 << 20))
def test_told_ways_are_kept_and_sizes_to_a_part_in_32(ways: int, sets: int) -> None:
    size_bytes = 64.0 * sets * min(ways, 255) + 17
    found_sets, found_ways = shape_with(ways, size_bytes, 64)
    assert found_ways == min(ways, 255)
    assert found_sets * found_ways * 64 == pytest.approx(size_bytes, rel=1 / 32)
    if sets & (sets - 1) == 0:
        assert shape_with(ways, size_bytes - 17, 64) == (sets, found_ways)


def with_ways(*ways: int | None) -> GuestMachine:
    """intel-4s-qpi, whose levels have these."""
    description = load_machine("intel-4s-qpi").description
    kinds = {
        name: kind.model_copy(
            update={
                "caches": tuple(
                    cache.model_copy(update={"ways": told})
                    for cache, told in zip(kind.caches, ways, strict=True)
                )
            }
        )
        for name, kind in description.node_types.items()
    }
    machine = build_machine(description.model_copy(update={"node_types": kinds}))
    return guest_machine(machine, memory_bytes=8 << 30)


def test_ways_of_the_machine_file_are_simulated_and_others_said_to_be_assumed() -> None:
    told, some, wide = (
        played_caches(with_ways(*ways)) for ways in ((8, 8, 24), (4, None, None), (8, 8, 300))
    )
    assert [(level.sets, level.ways) for level in told.levels] == [
        (64, 8), (512, 8), (16384, 24)
    ]  # fmt: skip
    assert told.notes == ("replacement is LRU",)
    assert some.levels[0].ways == 4
    assert "8 ways of L2, 20 ways of L3 are assumed" in some.notes
    assert wide.levels[-1].ways == 255
    assert "L3 is simulated with 255 ways instead of 300" in wide.notes


@pytest.mark.parametrize("ways", [2, 8, 16])
def test_lines_of_one_set_conflict_where_they_are_more_than_its_ways(ways: int) -> None:
    """Of one set of the first level, in turn: as many as it has ways are found again and again;
    of one more, none is, as the one wanted next is the one that was used least recently.
    """
    first, *below = played_caches(with_ways(ways, 16, 24)).levels
    shape = Shape(
        1, 1, tuple((1, level.sets, level.ways) for level in (first, *below)), node_mib=64
    )
    for lines, missed in ((ways, ways), (ways + 1, 10 * (ways + 1))):
        played = Played(shape)
        for _ in range(10):
            played.read(0, *(k * first.sets * 64 for k in range(lines)))
        found = played.counts()["found"]
        assert found[0, 3] == lines  # from memory, once
        assert found.get((0, 1), 0) == missed - lines


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
    text = plugin_settings(guest, caches, Path("counts"), Counting())
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
    assert "QEMU 8.1" in told_by(reported_memory, guest, (8, 1))
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
    assert "counts" in told_by(read_counts, path, 2, 2, 2)


def test_nothing_is_counted_without_a_command() -> None:
    assert "needs a command" in told_by(run_counted, load_machine("opteron-4n"), [])
