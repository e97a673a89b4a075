"""Values are read and written as large as they are, in their entries or out of line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_scenarios import LOOKUP, NODE, UPSERT, ran, rate, small, small_file

from numatwin.inputs import InputError
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.what_if import flow_plane
from numatwin.sim.systems.eris.index import LINE_BYTES, lines_of, tree_of
from numatwin.workloads.schema import DataObject

KEYS, SLOW_BPS = 1_000_000, 4e9
FEW = f"workload.objects.index.keys={KEYS}"


def of(value: str, inline: str = "8 B") -> tuple[str, ...]:
    return (FEW, f"workload.objects.index.value_size={value}", f"system.inline_values={inline}")


@given(st.integers(1, 3000))
def test_lines_of_items_that_lie_one_beside_the_other(size: int) -> None:
    """Counted, item by item, over as many as it takes until they begin a line again."""
    touched = [
        (first + size - 1) // LINE_BYTES - first // LINE_BYTES + 1
        for first in range(0, size * LINE_BYTES, size)
    ]
    assert lines_of(size) == pytest.approx(sum(touched) / len(touched), rel=1e-12)


# Where native, blocks of the native engine's size classes.
@pytest.mark.parametrize(
    ("native", "value", "far"),
    [(False, "8 B", 0), (False, "9 B", 16), (False, "1000 B", 1000),
     (True, "8 B", 0), (True, "9 B", 16), (True, "49 B", 64), (True, "1000 B", 1024),
     (True, "4097 B", 5120)],
)  # fmt: skip
def test_what_is_larger_than_a_word_lies_out_of_line(native: bool, value: str, far: int) -> None:
    stored = DataObject(kind="index", keys=KEYS, value_size=value)
    small, inline = (tree_of(stored, bound, native=native) for bound in (8.0, 5000.0))
    assert (small.far_bytes, inline.far_bytes) == (far, 0)
    bare = tree_of(DataObject(kind="index", keys=KEYS), 8.0, native=native)
    assert small.bytes_per_key == pytest.approx(bare.bytes_per_key + far, rel=1e-3)
    more = stored.value_size.value - 8
    assert inline.bytes_per_key == pytest.approx(bare.bytes_per_key + more, rel=1e-3)
    assert small.rows == bare.rows + (far > 0)


def missed(record: Record) -> float:
    """Lines that an operation gets from memory, those of page tables included."""
    return float(record.model["index"]["lines_missed_per_operation"])


@pytest.mark.parametrize("placement", ["partitioned", "single-ram"])
def test_large_values_fill_the_memory_controller(tmp_path: Path, placement: str) -> None:
    """No caches, one node: 1,000 B are 1 + (1000 - 8) / 64 = 16.5 lines, beside those of the tree;
    an upsert writes these back, too. 4 GB/s are all there is."""
    slow = (f"{NODE}memory.bandwidth={SLOW_BPS / 1e9:g} GB/s", f"{NODE}memory.write_turnaround=0")
    settings = (*of("1000 B"), *slow)
    lookup = ran(small_file(tmp_path, LOOKUP, placement), *settings)
    bare = ran(small_file(tmp_path, LOOKUP, placement), FEW)
    assert missed(lookup) - missed(bare) == pytest.approx(16.5)
    expected = SLOW_BPS / LINE_BYTES / missed(lookup)
    assert lookup.throughput["lookup"] == pytest.approx(expected, rel=0.01)
    upsert = rate(small_file(tmp_path, UPSERT, placement), *settings)
    assert upsert == pytest.approx(SLOW_BPS / LINE_BYTES / (missed(lookup) + 16.5), rel=0.01)


@pytest.mark.parametrize("placement", ["partitioned", "interleaved", "single-ram"])
@pytest.mark.parametrize("operation", [LOOKUP, UPSERT])
@pytest.mark.parametrize("inline", ["8 B", "2000 B"])
def test_the_larger_the_slower(tmp_path: Path, placement: str, operation: str, inline: str) -> None:
    path = small_file(tmp_path, operation, placement, nodes=2)
    sizes = ("8 B", "64 B", "256 B", "1000 B", "2000 B")
    rates = [rate(path, *of(size, inline)) for size in sizes]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 4 * rates[-1]


@pytest.mark.parametrize("placement", ["partitioned", "single-ram"])
def test_values_out_of_line_are_overwritten_where_they_lie(tmp_path: Path, placement: str) -> None:
    """An upsert looks their keys up: what it takes to change a tree does not matter."""
    costs = ("upsert_entry", "upsert_shared", "upsert_level")
    quick, slow = (
        [f"machine.engines.eris.{cost}={time}" for cost in costs] for time in ("1 ns", "1 us")
    )
    path = small_file(tmp_path, UPSERT, placement)
    far, near = (of("64 B", inline) for inline in ("8 B", "64 B"))
    assert rate(path, *far, *slow) == pytest.approx(rate(path, *far, *quick))
    assert rate(path, *near, *slow) < 0.1 * rate(path, *near, *quick)


def test_only_values_in_a_shared_tree_need_the_lock_of_their_slot() -> None:
    stored = DataObject(kind="index", keys=KEYS, value_size="64 B")
    near, far = (tree_of(stored, inline, native=True, shared=True) for inline in (64.0, 8.0))
    assert near.written_rows == (near.levels - 1, near.rows - 1)
    assert far.written_rows == (far.rows - 1,)


def test_out_of_line_costs_one_line_more_than_in_the_entry(tmp_path: Path) -> None:
    """64 B with a pointer to them: entry and value; with the key they are 72 B, or two lines."""
    path = small_file(tmp_path, LOOKUP)
    far, near = (missed(ran(path, *of("64 B", inline))) for inline in ("8 B", "64 B"))
    bare = missed(ran(path, FEW))
    assert far - bare == pytest.approx(1.0, abs=0.6)
    assert near - bare == pytest.approx(0.125 + 0.75, abs=0.6)


@pytest.mark.parametrize("value", ["8 B", "100 B", "1000 B"])
def test_flows_and_events_agree(value: str) -> None:
    settings = (
        "workload.objects.index.keys=10_000_000",
        f"workload.objects.index.value_size={value}",
    )
    flow = run_scenario(load_scenario("eris-fig8-intel", settings=settings))
    # Buffers of all pairs have filled up after 6 ms.
    brief = (*settings, "horizon=12 ms", "statistics.replications=1", "statistics.warm_up=6 ms")
    event = run_scenario(load_scenario("eris-fig8-intel", plane="event", settings=brief))
    assert event.throughput["lookup"] == pytest.approx(flow.throughput["lookup"], rel=0.1)


def test_the_reference_plays_the_same_values() -> None:
    settings = (
        *("workload.objects.index.keys=10_000_000", "workload.objects.index.value_size=1000 B"),
        *("horizon=100 us", "system.threads=1", "system.nodes=4", "system.buffer_commands=16"),
        *("statistics.replications=1", "statistics.warm_up=0 s"),
    )
    event, reference = (
        run_scenario(load_scenario("eris-fig8-amd", plane=plane, settings=settings))
        for plane in ("event", "reference")
    )
    assert event.throughput == reference.throughput
    small = run_scenario(
        load_scenario("eris-fig8-amd", plane="event", settings=(settings[0], *settings[2:]))
    )
    assert event.throughput["lookup"] < 0.7 * small.throughput["lookup"]


def test_moved_partitions_take_their_values_along(tmp_path: Path) -> None:
    def moved_bytes(*settings: str) -> float:
        plane = flow_plane(small(small_file(tmp_path, LOOKUP, nodes=2), *settings))
        return float(plane.demands.transfer_bytes("index"))

    assert moved_bytes(FEW) == 16.0
    assert moved_bytes(*of("1000 B")) == moved_bytes(*of("1000 B", "1000 B")) == 1008.0


def test_values_need_their_room(tmp_path: Path) -> None:
    """60 GB of values beside a tree and a column of 8 GB, in 64 GiB."""
    path = small_file(tmp_path, LOOKUP)
    keys = "workload.objects.index.keys=60_000_000"
    assert rate(path, keys, of("900 B")[1]) > 0
    with pytest.raises(InputError, match="the data do not fit into machine 'small'") as caught:
        run_scenario(small(path, keys, of("1000 B")[1]))
    workload_line = path.read_text().splitlines().index("workload:") + 1
    assert str(caught.value).startswith(f"{path}:{workload_line}:1: ")
