"""Partitions: each key has one owner at any moment, whatever moves; nothing is lost on the way."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.kernel.arrays import Floats, Ints
from numatwin.sim.systems.eris.partitions import (
    ColumnPartitions,
    IndexPartitions,
    PopularityClasses,
    Transfers,
)
from numatwin.workloads.keys import Density, HotRange, PiecewiseKeys, Recorded, Uniform

KEYS_MAX, WORKERS_MAX, CYCLES_MAX = 60, 7, 3


@st.composite
def bounds_lists(draw: st.DrawFn) -> list[Ints]:
    """Bounds of the same keys and workers, one for each cycle; partitions may be empty."""
    keys = draw(st.integers(1, KEYS_MAX))
    workers = draw(st.integers(1, WORKERS_MAX))
    inner = st.lists(st.integers(0, keys), min_size=workers - 1, max_size=workers - 1)
    many = draw(st.lists(inner, min_size=2, max_size=CYCLES_MAX + 1))
    return [np.array([0, *sorted(bounds), keys], dtype=np.int64) for bounds in many]


@st.composite
def distributions(draw: st.DrawFn, keys: int) -> PiecewiseKeys:
    """Any density that is constant in pieces."""
    kind = draw(st.sampled_from(["uniform", "hot", "recorded"]))
    if kind == "hot" and keys > 1:
        first = draw(st.integers(0, keys - 1))
        end = draw(st.integers(first + 1, keys))
        whole = end - first == keys
        return HotRange(keys, first, end, 1.0 if whole else draw(st.floats(0.05, 1.0)))
    if kind == "recorded":
        edges = np.array(sorted({0, keys, *draw(st.lists(st.integers(0, keys), max_size=6))}))
        counts = draw(
            st.lists(st.integers(0, 100), min_size=len(edges) - 1, max_size=len(edges) - 1)
        )
        if any(counts):
            return Recorded(keys, edges[:-1], edges[1:], np.array(counts, dtype=np.float64))
    return Uniform(keys)


def owners_by_bounds(bounds: Ints) -> list[int]:
    """The owner of each key: the one partition that begins at or before it and ends behind it."""
    return [
        next(p for p in range(len(bounds) - 1) if bounds[p] <= key < bounds[p + 1])
        for key in range(int(bounds[-1]))
    ]


def owners_now(parts: IndexPartitions) -> list[list[int]]:
    """All owners that the pieces give to each key; pieces are to end between keys."""
    edges, owners = parts.pieces()
    assert len(edges) == len(owners) + 1
    assert edges[0] == 0
    assert edges[-1] == parts.keys
    assert (np.diff(edges) >= 0).all()
    found: list[list[int]] = [[] for _ in range(parts.keys)]
    for first, end, owner in zip(edges[:-1], edges[1:], owners, strict=True):
        for key in range(int(first), int(end)):
            found[key].append(int(owner))
    return found


def runs(old: list[int], new: list[int]) -> list[tuple[int, int, int, int]]:
    """Runs of keys (first, end) that go from one owner to another: (first, end, source, target)."""
    found: list[tuple[int, int, int, int]] = []
    for key, (source, target) in enumerate(zip(old, new, strict=True)):
        if source == target:
            continue
        if found and found[-1][1:] == (key, source, target):
            found[-1] = (found[-1][0], key + 1, source, target)
        else:
            found.append((key, key + 1, source, target))
    return found


def part_by_part(data: st.DataObject, transfers: Transfers) -> Iterator[None]:
    """Moves whole keys until all have arrived, any number of any transfer at a time."""
    while transfers.under_way.any():
        left = (transfers.volume - transfers.moved).astype(int).tolist()
        amounts = [data.draw(st.integers(0, most)) for most in left]
        if not any(amounts):
            amounts = left
        transfers.advance(np.array(amounts, dtype=np.float64))
        yield


@given(st.data())
def test_every_key_has_one_owner_at_any_moment(data: st.DataObject) -> None:
    """Its old one until it has moved, then its new one; as many have moved as have arrived."""
    first, *cycles = data.draw(bounds_lists())
    parts = IndexPartitions(first)
    assert owners_now(parts) == [[owner] for owner in owners_by_bounds(first)]
    for bounds in cycles:
        old, new = owners_by_bounds(parts.bounds), owners_by_bounds(bounds)
        moving = runs(old, new)
        transfers = parts.rebalance(bounds)
        assert parts.transfers is transfers
        assert transfers.source.tolist() == [source for _, _, source, _ in moving]
        assert transfers.target.tolist() == [target for _, _, _, target in moving]
        assert transfers.volume.tolist() == [end - start for start, end, _, _ in moving]
        assert parts.balancing == bool(moving)
        assert owners_now(parts) == [[owner] for owner in old]
        for _ in part_by_part(data, transfers):
            now = owners_now(parts)
            assert all(len(owners) == 1 for owners in now)
            for (start, end, _, target), moved in zip(moving, transfers.moved, strict=True):
                assert sum(now[key] == [target] for key in range(start, end)) == moved
            fixed = set(range(parts.keys)) - {k for a, b, *_ in moving for k in range(a, b)}
            assert all(now[key] == [old[key]] for key in fixed)
            both = zip(now, old, new, strict=True)
            assert all(owners[0] in (before, after) for owners, before, after in both)
            sizes = np.bincount([owners[0] for owners in now], minlength=parts.workers)
            assert np.array_equal(parts.sizes(), sizes)
        assert not parts.balancing
        assert owners_now(parts) == [[owner] for owner in new]
        assert np.array_equal(parts.bounds, bounds)
        assert np.array_equal(parts.sizes(), np.diff(bounds))


def test_a_part_leaves_where_its_new_owner_is() -> None:
    """0 … 30 … 60 to 0 … 20 … 60: 10 keys go right, from their right end; then to 45: 25 go left.

    Either range stays in one piece.
    """
    parts = IndexPartitions(np.array([0, 30, 60]))
    for to, moved, rest, begins in ((20, 4.0, 6.0, [0, 20, 26, 30]), (45, 5.0, 0, [0, 20, 25, 45])):
        parts.rebalance(np.array([0, to, 60])).advance(np.array([moved]))
        edges, owners = parts.pieces()
        kept = np.diff(edges) > 0
        assert edges[:-1][kept].tolist() == begins
        assert owners[kept].tolist() == [0, 0, 1, 1]
        parts.transfers.advance(np.array([rest]))


def test_a_cycle_waits_for_the_one_before() -> None:
    parts = IndexPartitions(np.array([0, 10, 20]))
    parts.rebalance(np.array([0, 5, 20]))
    with pytest.raises(AssertionError):
        parts.rebalance(np.array([0, 10, 20]))


@given(st.data())
def test_parts_of_keys_keep_all_keys_and_all_accesses(data: st.DataObject) -> None:
    """Rates are real numbers, and so is what has moved: conserved all the same, never below 0."""
    before, after, *_ = data.draw(bounds_lists())
    keys = int(before[-1])
    distribution = data.draw(distributions(keys))
    popularity = PopularityClasses(distribution.density())
    parts = IndexPartitions(before)
    transfers = parts.rebalance(after)
    for _ in range(3):
        in_class, mass = parts.classes(popularity)
        assert (in_class >= 0).all()
        assert (mass >= 0).all()
        assert in_class.sum(axis=1) == pytest.approx(parts.sizes())
        assert in_class.sum(axis=0) == pytest.approx(popularity.keys)
        assert mass.sum(axis=0) == pytest.approx(popularity.mass)
        assert mass.sum() == pytest.approx(1.0)
        assert parts.sizes().sum() == pytest.approx(keys, rel=1e-12)
        edges, owner = parts.pieces()
        expected = np.bincount(owner, weights=distribution.shares(edges), minlength=parts.workers)
        assert parts.shares(distribution, 0.0) == pytest.approx(expected, abs=1e-12)
        assert parts.classes(popularity)[1].sum(axis=1) == pytest.approx(expected, abs=1e-12)
        parts_of = data.draw(
            st.lists(
                st.floats(0, 1), min_size=len(transfers.volume), max_size=len(transfers.volume)
            )
        )
        transfers.advance(np.array(parts_of) * (transfers.volume - transfers.moved))
    transfers.advance(transfers.volume - transfers.moved)
    assert not parts.balancing
    assert parts.shares(distribution, 0.0) == pytest.approx(distribution.shares(after), abs=1e-12)


@given(st.data())
def test_classes_hold_keys_of_about_one_popularity(data: st.DataObject) -> None:
    """Per-key accesses within a class differ by less than STEP; the most popular class is first."""
    distribution = data.draw(distributions(data.draw(st.integers(1, 10**6))))
    density = distribution.density()
    popularity = PopularityClasses(density)
    per_key = density.mass / np.diff(density.breaks)
    assert popularity.keys.sum() == distribution.keys
    assert popularity.mass.sum() == pytest.approx(1.0)
    last = np.inf
    for q in range(popularity.count):
        inside = per_key[popularity.class_of == q]
        assert len(inside)
        if inside.min() > 0:
            assert inside.max() < inside.min() * popularity.STEP * (1 + 1e-12)
        assert inside.max() == 0 or inside.min() > 0
        assert inside.max() < last
        last = inside.min()


def test_keys_that_nobody_asks_for_are_a_class() -> None:
    popularity = PopularityClasses(Density(np.array([0, 10, 40, 100]), np.array([0.0, 1.0, 0.0])))
    assert popularity.keys.tolist() == [30, 70]
    assert popularity.mass.tolist() == [1, 0]


@given(st.floats(1, 1e15), st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_what_is_left_within_rounding_has_arrived(volume: float, steps: list[float]) -> None:
    """A transfer that was told to end in so many steps of time ends."""
    one = np.zeros(1, np.int64)
    transfers = Transfers(one, one, np.array([volume]), np.zeros(1))
    total = sum(steps)
    for part in steps:
        assert transfers.moved[0] <= volume
        if total:
            transfers.advance(np.array([volume * (part / total)]))
    assert transfers.under_way[0] == (total == 0)


@st.composite
def columns(draw: st.DrawFn) -> tuple[Floats, Floats, Ints]:
    """Whole entries before and after, as many in all; the node of each worker, in rising order."""
    most = draw(st.sampled_from([5, 1000]))  # of few entries, often just one is left over
    before = draw(st.lists(st.integers(0, most), min_size=1, max_size=10))
    cuts = draw(
        st.lists(st.integers(0, sum(before)), min_size=len(before) - 1, max_size=len(before) - 1)
    )
    after = np.diff([0, *sorted(cuts), sum(before)])
    node = draw(st.lists(st.integers(0, 3), min_size=len(before), max_size=len(before)))
    return np.array(before, dtype=np.float64), after.astype(np.float64), np.sort(node)


@given(columns(), st.data())
def test_columns_keep_their_entries(case: tuple[Floats, Floats, Ints], data: st.DataObject) -> None:
    """All of them at any moment; first as they were, in the end as wanted."""
    before, after, node = case
    parts = ColumnPartitions(before.copy())
    transfers = parts.rebalance(after.copy(), node)
    assert np.array_equal(parts.sizes(), before)
    assert parts.balancing == (not np.array_equal(before, after))
    for _ in part_by_part(data, transfers):
        sizes = parts.sizes()
        assert sizes.sum() == before.sum()
        assert (sizes >= np.minimum(before, after)).all()
        assert (sizes <= np.maximum(before, after)).all()
    assert np.array_equal(parts.sizes(), after)


@given(columns())
def test_columns_move_no_more_than_they_must(case: tuple[Floats, Floats, Ints]) -> None:
    """Who gives takes nothing; within a node goes what can, and only the rest leaves it."""
    before, after, node = case
    transfers = ColumnPartitions(before.copy()).rebalance(after, node)
    change = after - before
    assert transfers.volume.sum() == np.maximum(change, 0).sum()
    assert (change[transfers.source] < 0).all()
    assert (change[transfers.target] > 0).all()
    linked = node[transfers.source] == node[transfers.target]
    for position in np.unique(node):
        here = change[node == position]
        could = min(np.maximum(here, 0).sum(), np.maximum(-here, 0).sum())
        stays = linked & (node[transfers.source] == position)
        assert transfers.volume[stays].sum() == could


def test_columns_same_node_first_by_hand() -> None:
    """Workers 0 and 1 on node 0, 2 and 3 on node 1. 0 has 30 too many, 3 has 5 too many.

    1 lacks 10 and gets them from 0; 2 lacks 25: 5 from 3, its neighbour, 20 from 0.
    """
    parts = ColumnPartitions(np.array([50.0, 10, 0, 30]))
    transfers = parts.rebalance(np.array([20.0, 20, 25, 25]), np.array([0, 0, 1, 1]))
    rows = zip(transfers.source, transfers.target, transfers.volume, strict=True)
    assert [tuple(row) for row in rows] == [(0, 1, 10), (3, 2, 5), (0, 2, 20)]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8), st.data())
def test_columns_of_parts_of_entries(before: list[float], data: st.DataObject) -> None:
    """A policy may ask for sizes between two whole numbers: less than an entry is not moved.

    What is less than one entry a worker changes hands at once; the sum stays.
    """
    sizes = np.array(before)
    weights = data.draw(st.lists(st.floats(0.01, 1), min_size=len(sizes), max_size=len(sizes)))
    after = np.array(weights) / sum(weights) * sizes.sum()
    parts = ColumnPartitions(sizes)
    transfers = parts.rebalance(after, np.zeros(len(sizes), np.int64))
    for share in (0.0, 0.3, 1.0):
        transfers.advance(share * transfers.volume)
        assert parts.sizes().sum() == pytest.approx(sizes.sum())
        assert parts.sizes().min() >= -1e-6
        if share == 0.0:
            assert np.abs(parts.sizes() - sizes).max() <= len(sizes)
    assert parts.sizes() == pytest.approx(after)
