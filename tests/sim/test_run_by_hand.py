"""Small machines whose throughput can be worked out by hand: one limit at a time."""

from pathlib import Path

import numpy as np
import pytest
from known import known
from small_scenarios import (
    COLUMN_BYTES,
    CORES,
    INSTRUCTIONS_PER_S,
    LATENCY_S,
    LINK,
    LINK_BPS,
    LOOKUP,
    MEMORY_BPS,
    NODE,
    SCAN,
    UPSERT,
    ran,
    small,
    small_file,
)

from numatwin.sim.run.record import Record
from numatwin.sim.run.what_if import flow_plane
from numatwin.sim.systems.eris.costs import INSTRUCTIONS

PLACEMENTS = ["partitioned", "interleaved", "single-ram"]
LINES = COLUMN_BYTES / 64


def use(record: Record, name: str) -> float:
    return next(use.utilisation for use in record.resources if use.name == name)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_scan_held_by_memory(tmp_path: Path, placement: str) -> None:
    """40 GB/s over 8 GB: five scans a second."""
    record = ran(small_file(tmp_path, SCAN, placement))
    assert record.throughput["scan"] == pytest.approx(MEMORY_BPS / COLUMN_BYTES, rel=1e-5)
    assert record.bandwidth_Bps["memory"] == pytest.approx(MEMORY_BPS, rel=1e-5)
    assert use(record, "memory of node 0") == pytest.approx(1.0, rel=1e-5)
    # Beyond, the lines that cores have under way soon hold it.
    assert record.why["scan"].gains[0].resource == "memory bandwidth"
    assert 0.05 < record.why["scan"].gains[0].gain_per_10pct <= 0.1 + 1e-6


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_scan_held_by_its_cores(tmp_path: Path, placement: str) -> None:
    """So many instructions a line, four cores of 8·10^9 a second, memory without end, whose lines
    are all there in time."""
    path = small_file(tmp_path, SCAN, placement)
    record = ran(path, f"{NODE}memory.bandwidth=4000 GB/s", f"{NODE}stream_stall=0")
    per_scan = LINES * INSTRUCTIONS.scan_line_sum
    expected = CORES * INSTRUCTIONS_PER_S / per_scan
    assert record.throughput["scan"] == pytest.approx(expected, rel=1e-9)
    assert use(record, "cores of node 0") == pytest.approx(1.0)
    assert record.why["scan"].gains[0].resource == "core speed"
    assert record.why["scan"].gains[0].gain_per_10pct == pytest.approx(0.1)


def test_lookups_held_by_misses_obey_littles_law(tmp_path: Path) -> None:
    """10^8 keys: four levels and the entry, five lines a lookup, all from memory.

    Each core has ten of them under way for 100 ns each: between any two lookups of a core lie
    5 · 100 ns / 10, and the making of the next key. The walk's instructions overlap with them.
    """
    path = small_file(tmp_path, LOOKUP, "interleaved")
    record = ran(path, f"{NODE}memory.bandwidth=1000000 GB/s")
    make_s = INSTRUCTIONS.generate / INSTRUCTIONS_PER_S
    walk_s = 5 * LATENCY_S / 10
    assert (4 * INSTRUCTIONS.tree_level + INSTRUCTIONS.tree_entry) / INSTRUCTIONS_PER_S < walk_s
    assert record.throughput["lookup"] == pytest.approx(CORES / (make_s + walk_s), rel=1e-4)
    # Little's law: lines under way = lines per second * time of each, a part of the 40 at most.
    under_way = known(record.bandwidth_Bps["memory"]) / 64 * LATENCY_S
    assert use(record, "misses of node 0") == pytest.approx(under_way / 40, rel=1e-4)
    assert record.why["lookup"].demands["walking the index"] == pytest.approx(
        walk_s * 1e9, rel=1e-4
    )


def test_a_short_reorder_window_holds_fewer_misses(tmp_path: Path) -> None:
    """A window of 5 steps of the walk: five lines under way, not ten."""
    path = small_file(tmp_path, LOOKUP, "interleaved")
    window = 5 * INSTRUCTIONS.tree_level
    record = ran(path, f"{NODE}memory.bandwidth=1000000 GB/s", f"{NODE}reorder_window={window}")
    make_s = INSTRUCTIONS.generate / INSTRUCTIONS_PER_S
    expected = CORES / (make_s + 5 * LATENCY_S / 5)
    assert record.throughput["lookup"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("turnaround", [-0.75, 0.25, 0.5, 2.0])
@pytest.mark.parametrize(("operation", "written"), [(LOOKUP, 0), (UPSERT, 1)])
def test_lookups_and_upserts_held_by_memory(
    tmp_path: Path, operation: str, written: int, turnaround: float
) -> None:
    """Five lines are read; an upsert writes the entry's back, which takes the memory as long as
    1 + t lines. Where t is negative, reads hold it: it has the time for a sixth line besides.
    """
    path = small_file(tmp_path, operation, "interleaved")
    record = ran(
        path,
        f"{NODE}memory.bandwidth=4 GB/s",
        f"{NODE}memory.write_turnaround={turnaround}",
        f"{NODE}outstanding_misses=100",
    )
    (found,) = record.throughput.values()
    lines = 5 + written * (1 + turnaround) if turnaround > 0 else 5
    assert found == pytest.approx(4e9 / (lines * 64), rel=1e-5)
    assert record.bandwidth_Bps["memory"] == pytest.approx(found * (5 + written) * 64, rel=1e-5)
    assert use(record, "memory of node 0") == pytest.approx(1.0, rel=1e-5)


def test_a_scan_over_one_link(tmp_path: Path) -> None:
    """Two nodes, all data on node 0. Node 1's lines cross the link in 64 + 8 bytes.

    Node 1: 10 GB/s · 64/72 over 8 GB. Node 0 has the rest of the memory: together five a second.
    Each line needs a request of 8 bytes in the other direction.
    """
    record = ran(small_file(tmp_path, SCAN, "single-ram", nodes=2))
    across = LINK_BPS * 64 / 72 / COLUMN_BYTES
    assert record.throughput["scan"] == pytest.approx(5.0, rel=1e-5)
    links = {use.ends: use for use in record.resources if use.kind == "link"}
    assert links[0, 1].utilisation == pytest.approx(1.0, rel=1e-5)
    assert links[0, 1].Bps == pytest.approx(LINK_BPS, rel=1e-5)
    assert links[1, 0].Bps == pytest.approx(across * LINES * 8, rel=1e-5)


def test_a_link_alone_holds_a_scan(tmp_path: Path) -> None:
    """As above, with no worker on node 0: the link is the limit."""
    path = small_file(tmp_path, SCAN, "single-ram", nodes=2)
    record = ran(path, "system.nodes=[1]", "system.home=0")
    assert record.throughput["scan"] == pytest.approx(LINK_BPS * 64 / 72 / COLUMN_BYTES, rel=1e-5)
    assert record.why["scan"].gains[0].resource == "bandwidth of link links"


def test_partitioned_scans_use_no_link(tmp_path: Path) -> None:
    """Four nodes, each with a quarter of the column in its own memory: 4 · 40 GB/s."""
    record = ran(small_file(tmp_path, SCAN, nodes=4))
    assert record.throughput["scan"] == pytest.approx(4 * MEMORY_BPS / COLUMN_BYTES, rel=1e-5)
    assert record.bandwidth_Bps["links"] == 0


@pytest.mark.parametrize("operations", [LOOKUP, UPSERT, SCAN])
@pytest.mark.parametrize("placement", ["partitioned", "interleaved"])
@pytest.mark.parametrize("protocol", ["directory", "snoop"])
def test_equal_nodes_do_equal_work(
    tmp_path: Path, operations: str, placement: str, protocol: str
) -> None:
    """On a machine that looks alike from each node, all nodes and links are used alike."""
    path = small_file(tmp_path, operations, placement, nodes=4, protocol=protocol)
    rates = flow_plane(small(path)).steady().flows
    assert np.ptp(rates) <= 1e-9 * rates.max()
    record = ran(path)
    for kind in ("cores", "misses", "memory", "link"):
        uses = [use.utilisation for use in record.resources if use.kind == kind]
        assert len(uses) == (12 if kind == "link" else 4)
        assert np.ptp(uses) <= 1e-6


@pytest.mark.parametrize("placement", ["partitioned", "interleaved"])
def test_open_clients_get_what_they_ask_for(tmp_path: Path, placement: str) -> None:
    """Three lookups to one upsert, in all 10,000 a second; everything else is proportional."""
    operations = (
        "{lookup: {kind: lookup, object: index, share: 3}, "
        "upsert: {kind: upsert, object: index, share: 1}}"
    )
    path = small_file(tmp_path, operations, placement, nodes=4)
    records = [
        ran(path, f"workload.clients={{kind: open, arrival_rate: {rate} kHz}}") for rate in (10, 20)
    ]
    for record, asked in zip(records, (1e4, 2e4), strict=True):
        assert record.throughput == pytest.approx({"lookup": 0.75 * asked, "upsert": 0.25 * asked})
        assert record.why["lookup"].resource == "what the clients ask for"
        assert record.why["lookup"].gains[0].gain_per_10pct == 0
    one, two = (record.bandwidth_Bps["memory"] or 0.0 for record in records)
    assert two == pytest.approx(2 * one, rel=1e-6)


def test_open_clients_that_ask_for_too_much_get_what_there_is(tmp_path: Path) -> None:
    path = small_file(tmp_path, LOOKUP, nodes=4)
    most = ran(path).throughput["lookup"]
    record = ran(path, "workload.clients={kind: open, arrival_rate: 1000 GHz}")
    assert record.throughput["lookup"] == pytest.approx(most, rel=1e-6)


@pytest.mark.parametrize("link", ["1 MB/s", "100 MB/s", "1 GB/s"])
def test_slow_links_are_nearly_full_and_never_more(tmp_path: Path, link: str) -> None:
    """Twelve links. Of five lines a lookup, 3/4 cross one, with 8 bytes the other way: 72 + 8.

    Waits before a link grow without bound as it fills up: what is left of it is a few per cent.
    """
    path = small_file(tmp_path, LOOKUP, "interleaved", nodes=4)
    record = ran(path, f"{LINK}bandwidth={link}")
    uses = [use for use in record.resources if use.kind == "link"]
    for use in uses:
        room = 12 * known(use.capacity_Bps) / (80 * 5 * 0.75)
        assert 0.9 < record.throughput["lookup"] / room <= 1 + 1e-6
        assert use.utilisation == pytest.approx(record.throughput["lookup"] / room, rel=1e-4)
