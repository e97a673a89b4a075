"""The adaptive placer: its decisions and their times by hand, on synthetic use of parts."""

from collections.abc import Iterator

import numpy as np
import pytest

from numatwin.inputs import InputError
from numatwin.sim.systems.tasks.commands import (
    SAMPLE_S,
    MergeTable,
    MovePart,
    PartitionTable,
    PartUse,
    PlacerCommand,
    PlacerObservation,
    check_placement,
)
from numatwin.sim.systems.tasks.layout import Layout
from numatwin.sim.systems.tasks.placer import AdaptivePlacer, UseHistory
from numatwin.sim.systems.tasks.program import Part, Table

NODES, THREADS, PEAK_BPS = 4, 15, 67.5e9
MOVE_S, PARTITION_S = 59e-6, 109e-6
ROWS = 625_000_000  # of 4 B: 2.5 GB, 610,352 pages


class Shared:
    """A plane in a few lines: tables in use share the workers and the memory of their nodes alike;
    a part that is being moved does nothing; copies take pages × time per page.
    """

    def __init__(self, *tables: Table, used: frozenset[str]) -> None:
        self.used = used
        self.layout = Layout(tables, np.full(NODES, 10**9), MOVE_S, PARTITION_S, list(range(NODES)))
        self.placer = AdaptivePlacer()
        self.ends: dict[int, float] = {}
        self.done: list[tuple[float, PlacerCommand]] = []

    def run(self, until_s: int) -> None:
        for time_s in range(1, until_s):
            for number, end_s in sorted(self.ends.items(), key=lambda one: one[1]):
                if end_s <= time_s:
                    del self.ends[number]
                    self._begin(self.layout.arrived(number, end_s), end_s)
            seen = self.observe(float(time_s))
            for command in check_placement(self.placer.decide(seen), seen, "adaptive"):
                self.done.append((float(time_s), command))
                self._begin(self.layout.order(command, float(time_s)), float(time_s))

    def _begin(self, copies: object, time_s: float) -> None:
        for copy in copies:  # type: ignore[attr-defined]
            self.ends[copy.number] = time_s + copy.pages * copy.page_s

    def observe(self, time_s: float) -> PlacerObservation:
        samples = round(1.0 / SAMPLE_S)
        working = [
            (name, p, part)
            for name, parts in self.layout.parts.items()
            for p, part in enumerate(parts)
            if name in self.used and not part.blocked
        ]
        on = np.bincount([part.node or 0 for *_, part in working], minlength=NODES)
        node_cpu = np.where(on > 0, float(THREADS), 0.0)
        node_Bps = np.where(on > 0, 0.95 * PEAK_BPS, 0.0)
        uses = []
        for name, parts in self.layout.parts.items():
            for p, part in enumerate(parts):
                assert part.node is not None
                share = 1.0 / on[part.node] if (name, p, part) in working else 0.0
                uses.append(
                    PartUse(
                        name,
                        p,
                        part.node,
                        part.rows,
                        part.pages,
                        part.busy,
                        part.targets,
                        np.full(samples, share * node_cpu[part.node]),
                        np.full(samples, share * node_Bps[part.node]),
                    )
                )
        return PlacerObservation(
            time_s,
            tuple(uses),
            np.full(NODES, THREADS),
            np.repeat(node_cpu[:, None], samples, axis=1),
            np.repeat(node_Bps[:, None], samples, axis=1),
            np.full(NODES, PEAK_BPS),
            self.layout.free_pages,
            MOVE_S,
            PARTITION_S,
        )


@pytest.fixture(name="fig10")
def _fig10() -> Shared:
    def whole(name: str, node: int) -> Table:
        return Table(name, (Part(ROWS, node),), 4.0, 0.0)

    cold = Table("TBL4", (Part(ROWS // 2, 2), Part(ROWS // 2, 3)), 4.0, 0.0)
    shared = Shared(
        whole("TBL1", 0),
        whole("TBL2", 0),
        whole("TBL3", 1),
        cold,
        used=frozenset({"TBL1", "TBL2", "TBL3"}),
    )
    shared.run(300)
    return shared


def test_the_order_of_actions_of_figure_10(fig10: Shared) -> None:
    """Cold parts are merged, a table moves from the socket of two, the other one is split."""
    kinds = [type(command) for _, command in fig10.done]
    assert kinds == [MergeTable, MovePart, PartitionTable]
    _, moved = fig10.done[1]
    assert isinstance(moved, MovePart)
    assert moved.table in ("TBL1", "TBL2")
    _, split = fig10.done[2]
    assert isinstance(split, PartitionTable)
    assert split.table == "TBL3"
    assert sorted(part.node for part in fig10.layout.parts["TBL3"] if part.node is not None) == [
        1,
        5 - moved.node,  # the one of sockets 2 and 3 that is left
    ]


def test_its_times_follow_from_pages_and_time_per_page(fig10: Shared) -> None:
    """A part under the same load from the start may be moved once 70% of its look-back is over."""
    pages = fig10.layout.parts["TBL1"][0].pages
    move_s = 2 * pages * MOVE_S
    split_s = move_s + pages * PARTITION_S
    (_, _), (moved_s, _), (partitioned_s, _) = fig10.done
    assert moved_s == np.ceil(0.7 * move_s)
    assert partitioned_s == np.ceil(0.7 * split_s)


def test_queries_that_go_on_halve_the_look_back_of_a_move() -> None:
    """Nobody waits for it: 70% of pages × time per page. Planes are told that queries go on."""
    tables = [Table(name, (Part(ROWS, 0),), 4.0, 0.0) for name in ("a", "b")]
    shared = Shared(*tables, used=frozenset({"a", "b"}))
    shared.placer = AdaptivePlacer(queries_wait=False)
    shared.run(60)
    (moved_s, moved), *_ = shared.done
    pages = shared.layout.parts["a"][0].pages
    assert moved_s == np.ceil(0.7 * pages * MOVE_S)
    assert isinstance(moved, MovePart)
    assert not moved.queries_wait
    with pytest.raises(ValueError, match="queries_wait: expected true or false"):
        AdaptivePlacer(queries_wait="no")  # type: ignore[arg-type]


def test_nothing_is_done_where_all_nodes_are_in_use() -> None:
    tables = [Table(f"t{k}", (Part(ROWS, k),), 4.0, 0.0) for k in range(NODES)]
    shared = Shared(*tables, used=frozenset(f"t{k}" for k in range(NODES)))
    shared.run(300)
    assert shared.done == []


def test_a_move_that_makes_a_memory_hotspot_is_not_done() -> None:
    """Two tables of one node, each of which takes three quarters of a node's memory bandwidth."""
    shared = Shared(
        Table("a", (Part(ROWS, 0),), 4.0, 0.0),
        Table("b", (Part(ROWS, 0),), 4.0, 0.0),
        used=frozenset({"a", "b"}),
    )
    found = shared.observe(1.0)
    hot = tuple(
        PartUse(
            use.table, use.part, use.node, use.rows, use.pages, use.busy, use.targets, use.cpu,
            np.full(len(use.cpu), 0.75 * PEAK_BPS),
        )
        for use in found.parts
    )  # fmt: skip
    placer, moves = AdaptivePlacer(), []
    for time_s in range(1, 200):
        seen = PlacerObservation(
            float(time_s), hot, found.threads, found.node_cpu, found.node_memory_Bps,
            found.memory_peak_Bps, found.free_pages, MOVE_S, PARTITION_S,
        )  # fmt: skip
        moves += [c for c in placer.decide(seen) if isinstance(c, MovePart)]
    assert moves == []


def test_history_counts_time_before_it_began_as_zero() -> None:
    history = UseHistory(10.0)
    history.add(np.full(20, 3.0), np.full(20, 6e9))  # 2 s
    assert history.average(1.0) == pytest.approx((3.0, 6e9))
    assert history.average(4.0) == pytest.approx((1.5, 3e9))
    history.add(np.zeros(200), np.zeros(200))
    assert history.average(10.0) == (0.0, 0.0)


@pytest.mark.parametrize("option", ["eligibility", "imbalance", "saturated"])
@pytest.mark.parametrize("value", [0.0, -1.0, 1.5, float("nan"), "x", True])
def test_options_out_of_range_are_refused(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=option):
        AdaptivePlacer(**{option: value})  # type: ignore[arg-type]


def _wrong() -> Iterator[tuple[object, str]]:
    yield 3, "decide returned int"
    yield [object()], "decide returned a object in its list"
    yield [MovePart("x", 0, 0)], "unknown table 'x'"
    yield [MovePart("a", 1, 0)], "part 1"
    yield [MovePart("a", 0, 4)], "node 4"
    yield [MovePart("a", 0, True)], "node True"
    yield [MovePart("a", 0, 1, "no")], "queries_wait 'no'"  # type: ignore[arg-type]
    yield [MergeTable("a", 0)], "a single part cannot be merged"
    yield [PartitionTable("a", (1,))], "1 nodes for 2 new parts"
    yield [MovePart("a", 0, 1), MovePart("a", 0, 2)], "two commands"


@pytest.mark.parametrize(("commands", "message"), list(_wrong()))
def test_wrong_commands_are_refused(commands: object, message: str) -> None:
    seen = Shared(Table("a", (Part(ROWS, 0),), 4.0, 0.0), used=frozenset({"a"})).observe(1.0)
    with pytest.raises(InputError, match=f"policy P: .*{message}"):
        check_placement(commands, seen, "P")


def test_a_busy_part_takes_no_command() -> None:
    shared = Shared(Table("a", (Part(ROWS, 0),), 4.0, 0.0), used=frozenset({"a"}))
    shared.layout.order(MovePart("a", 0, 1), 0.5)
    with pytest.raises(InputError, match="part 0 is busy"):
        check_placement([MovePart("a", 0, 2)], shared.observe(1.0), "P")
