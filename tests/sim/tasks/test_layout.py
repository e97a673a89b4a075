"""Where table parts lie: moves, partitioning and merges lose nothing and tell what they did."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.systems.tasks.commands import MergeTable, MovePart, PartitionTable
from numatwin.sim.systems.tasks.layout import PAGE_BYTES, Copy, Layout
from numatwin.sim.systems.tasks.program import Part, Table

MOVE_S, PARTITION_S = 59e-6, 109e-6


def table(name: str, *parts: Part, bytes_per_row: float = 4.0, fixed_bytes: float = 0.0) -> Table:
    return Table(name, parts, bytes_per_row, fixed_bytes)


def layout(*tables: Table, nodes: int = 4, pages: int = 10**9) -> Layout:
    return Layout(
        tables, np.full(nodes, pages, dtype=np.int64), MOVE_S, PARTITION_S, list(range(nodes))
    )


def test_pages_of_a_part_are_its_rows_and_its_dictionary() -> None:
    of = layout(table("t", Part(1_000_000, 0), fixed_bytes=100.0))
    assert of.parts["t"][0].pages == -(-4_000_100 // PAGE_BYTES)


def test_a_move_blocks_its_part_until_it_has_arrived() -> None:
    of = layout(table("t", Part(1_000, 0), Part(500, 1)))
    (copy,) = of.order(MovePart("t", 0, 2), 1.0)
    first, second = of.parts["t"]
    assert (copy.source, copy.target, copy.page_s) == (0, 2, MOVE_S)
    assert (first.blocked, first.busy, first.targets) == (True, True, (2,))
    assert (second.blocked, second.busy) == (False, False)
    assert of.arrived(copy.number, 3.0) == ()
    first, _ = of.parts["t"]
    assert (first.node, first.blocked, first.busy, first.targets) == (2, False, False, ())
    assert [event.text for event in of.events] == [
        "move part 0 of t to node 2 begins",
        "move part 0 of t to node 2",
    ]
    assert of.events[-1].details["took_s"] == 2.0


def test_queries_may_go_on_during_a_move() -> None:
    """Also while a half moves that was split off."""
    of = layout(table("t", Part(1_000, 0)), table("u", Part(1_000, 1)))
    (copy,) = of.order(MovePart("t", 0, 2, queries_wait=False), 0.0)
    assert (of.parts["t"][0].blocked, of.parts["t"][0].busy) == (False, True)
    of.arrived(copy.number, 1.0)
    assert (of.parts["t"][0].node, of.parts["t"][0].busy) == (2, False)
    (copy,) = of.order(PartitionTable("u", (1, 3), queries_wait=False), 1.0)
    (move,) = of.arrived(copy.number, 2.0)
    assert [(part.blocked, part.busy) for part in of.parts["u"]] == [(False, False), (False, True)]
    of.arrived(move.number, 3.0)
    assert [part.node for part in of.parts["u"]] == [1, 3]


def test_partitioning_splits_on_the_node_then_moves_what_lies_elsewhere() -> None:
    of = layout(table("t", Part(1_001, 1)))
    (copy,) = of.order(PartitionTable("t", (1, 3)), 0.0)
    assert (copy.source, copy.target, copy.page_s) == (1, 1, PARTITION_S)
    assert not of.parts["t"][0].blocked  # queries go on
    assert of.parts["t"][0].targets == (1, 3)
    (move,) = of.arrived(copy.number, 5.0)
    assert [part.rows for part in of.parts["t"]] == [501, 500]
    assert (move.part, move.source, move.target) == (1, 1, 3)
    assert [part.blocked for part in of.parts["t"]] == [False, True]
    of.arrived(move.number, 6.0)
    assert [part.node for part in of.parts["t"]] == [1, 3]


def test_a_merge_waits_for_all_its_copies() -> None:
    of = layout(table("t", Part(600, 2), Part(400, 3)))
    here, there = of.order(MergeTable("t", 2), 0.0)
    of.arrived(there.number, 1.0)
    assert len(of.parts["t"]) == 2
    of.arrived(here.number, 2.0)
    merged = of.parts["t"][-1]
    assert len(of.parts["t"]) == 1
    assert (merged.rows, merged.node) == (1_000, 2)


def test_what_finds_no_room_is_refused_and_the_record_says_so() -> None:
    of = layout(table("t", Part(4_096, 0)), pages=6)  # 4 pages of 6
    full = layout(table("t", Part(4_096, 0)), table("u", Part(4_096, 1)), pages=6)
    assert of.order(MovePart("t", 0, 1), 0.0)
    assert full.order(MovePart("t", 0, 1), 0.0) == ()
    assert full.events[-1].kind == "refused"
    assert "node 1 has no room" in full.events[-1].text
    assert not full.parts["t"][0].busy


@given(st.data())
def test_rows_and_pages_are_kept_whatever_is_ordered(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(1, 4))
    tables = [
        table(
            f"t{k}",
            *(
                Part(data.draw(st.integers(2, 10_000)), data.draw(st.integers(0, nodes - 1)))
                for _ in range(data.draw(st.integers(1, 3)))
            ),
            fixed_bytes=data.draw(st.floats(0, 1e4)),
        )
        for k in range(2)
    ]
    of = layout(*tables, nodes=nodes)
    rows = {name: sum(p.rows for p in parts) for name, parts in of.parts.items()}
    for step in range(data.draw(st.integers(1, 12))):
        arrives: bool = data.draw(st.booleans())
        if of.copies and arrives:
            copy: Copy = data.draw(st.sampled_from(of.copies))
            of.arrived(copy.number, float(step))
        else:
            name = data.draw(st.sampled_from(["t0", "t1"]))
            parts = of.parts[name]
            if any(part.busy for part in parts):
                continue
            node = data.draw(st.integers(0, nodes - 1))
            kind = data.draw(st.sampled_from(["move", "partition", "merge"]))
            if kind == "move":
                of.order(MovePart(name, data.draw(st.integers(0, len(parts) - 1)), node), step)
            elif kind == "partition" and min(part.rows for part in parts) >= 2:
                wanted = tuple(data.draw(st.integers(0, nodes - 1)) for _ in range(2 * len(parts)))
                of.order(PartitionTable(name, wanted), step)
            elif kind == "merge" and len(parts) > 1:
                of.order(MergeTable(name, node), step)
        of.check()
        assert (of.used_pages() >= 0).all()
    while of.copies:
        of.arrived(of.copies[0].number, 99.0)
    of.check()
    assert {name: sum(p.rows for p in parts) for name, parts in of.parts.items()} == rows
    assert of.sent_pages == of.arrived_pages
    assert not any(part.busy or part.blocked for parts in of.parts.values() for part in parts)


def test_a_lost_row_is_noticed() -> None:
    of = layout(table("t", Part(10, 0)))
    of.parts["t"] = (of.parts["t"][0].__class__(9, 0, 1),)
    with pytest.raises(AssertionError, match="rows of table 't'"):
        of.check()
