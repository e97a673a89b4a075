"""The prefix tree's geometry against a tree that is built node by node, and ERIS's own figures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.sim.systems.eris.index import LINE_BYTES, POINTER_BYTES, BucketTree, PrefixTree

ENTRY_BYTES = 16


def slots_by_building(first: int, end: int, levels: int, bits: int) -> list[int]:
    """Slots in use per level, root first, of a tree into which the keys are put one by one.

    A slot of the last level is a key's; one further up leads to the node below it.
    """
    used: list[set[int]] = [set() for _ in range(levels)]
    for key in range(first, end):
        for level in range(levels):
            used[level].add(key >> bits * (levels - 1 - level))
    return [len(slots) for slots in used]


def lines_by_building(first: int, end: int, levels: int, bits: int) -> list[int]:
    """Cache lines in use per level and of the entries, for the tree above; nodes are aligned."""
    used: list[set[tuple[int, int]]] = [set() for _ in range(levels + 1)]
    for key in range(first, end):
        for level in range(levels):
            slot = key >> bits * (levels - 1 - level)
            node, at = slot >> bits, slot & (2**bits - 1)
            used[level].add((node, at * POINTER_BYTES // LINE_BYTES))
        used[levels].add((0, key * ENTRY_BYTES // LINE_BYTES))
    return [len(lines) for lines in used]


@pytest.mark.parametrize(
    ("keys", "bits", "levels"),
    [(1, 8, 1), (2, 8, 1), (256, 8, 1), (257, 8, 2), (65_536, 8, 2), (65_537, 8, 3),
     (10**9, 8, 4), (2**32, 8, 4), (2**32 + 1, 8, 5), (32 * 10**9, 8, 5),
     (16, 4, 1), (17, 4, 2), (10**9, 16, 2), (8, 1, 3)],
)  # fmt: skip
def test_levels_tell_all_keys_apart(keys: int, bits: int, levels: int) -> None:
    assert PrefixTree(keys, bits).levels == levels
    assert levels == 1 or 2 ** (bits * (levels - 1)) < keys
    assert keys <= 2 ** (bits * levels)


@settings(max_examples=60)
@given(st.integers(1, 5000), st.integers(2, 8))
def test_slots_of_a_built_tree(keys: int, bits: int) -> None:
    """Means are exact but for the last, partly filled node of a level: one slot at most."""
    tree = PrefixTree(keys, bits)
    built = np.array(slots_by_building(0, keys, tree.levels, bits))
    slots = tree.level_slots(np.array([float(keys)]))[:, 0]
    assert slots.shape == (tree.levels,)
    assert slots[-1] == keys
    assert (slots <= built).all()
    assert (built - slots < 1).all()


@settings(max_examples=60)
@given(st.data())
def test_lines_of_a_range_of_a_built_tree(data: st.DataObject) -> None:
    """A range may cut the first and the last of its lines: two lines at most above the mean."""
    keys, bits = data.draw(st.integers(1, 5000)), data.draw(st.integers(3, 8))
    first = data.draw(st.integers(0, keys - 1))
    end = data.draw(st.integers(first + 1, keys))
    tree = PrefixTree(keys, bits, ENTRY_BYTES)
    built = np.array(lines_by_building(first, end, tree.levels, bits))
    lines = tree.level_lines(np.array([float(end - first)]))[:, 0]
    assert lines.shape == (tree.levels + 1,)
    assert (lines >= 1).all()
    assert (built - lines > -1).all()
    assert (built - lines < 2).all()


def test_a_full_tree_by_hand() -> None:
    """65,536 keys: a root of 256 slots in 32 lines, 65,536 slots in 8,192; entries in 16,384."""
    tree = PrefixTree(65_536)
    assert tree.level_slots(np.array([65_536.0]))[:, 0].tolist() == [256, 65_536]
    assert tree.level_lines(np.array([65_536.0]))[:, 0].tolist() == [32, 8_192, 16_384]
    assert tree.bytes_per_key * 65_536 == (256 + 65_536) * 8 + 65_536 * 16


def test_no_keys_take_no_room() -> None:
    tree = PrefixTree(1000)
    assert tree.level_slots(np.zeros(1)).sum() == 0
    assert tree.level_lines(np.zeros(1)).sum() == 0


@given(st.integers(1, 10**12), st.integers(3, 16), st.lists(st.floats(0, 1), min_size=1))
def test_more_keys_never_take_fewer_lines(keys: int, bits: int, parts: list[float]) -> None:
    """Ranges are worked out at once, and each as if it were alone."""
    tree = PrefixTree(keys, bits, ENTRY_BYTES)
    some = np.sort(np.array(parts)) * keys
    lines = tree.level_lines(some)
    assert lines.shape == (tree.levels + 1, len(parts))
    assert (np.diff(lines, axis=1) >= 0).all()
    alone = np.stack([tree.level_lines(part[None])[:, 0] for part in some], axis=1)
    assert np.array_equal(lines, alone)


def test_memory_of_the_published_indexes() -> None:
    """ERIS: 10^9 keys take about 25 GB, 32·10^9 about 0.8 TB."""
    assert 10**9 * PrefixTree(10**9).bytes_per_key == pytest.approx(25e9, rel=0.05)
    assert 32 * 10**9 * PrefixTree(32 * 10**9).bytes_per_key == pytest.approx(0.8e12, rel=0.05)


def home_line(lines: int, key: int) -> int:
    """Of a bucket of so many lines, the one where a key is looked for first."""
    return (key * 0x9E3779B97F4A7C15 % 2**64 >> 1) * lines >> 63


def lines_searched(keys: list[int]) -> list[int]:
    """Lines that a look-up of each key reads, once all are in a bucket that grew with them."""
    inside: list[list[int]] = [[]]

    def put(key: int) -> bool:
        count = len(inside)
        for tried in range(count):
            line = inside[(home_line(count, key) + tried) % count]
            if len(line) < 4:
                line.append(key)
                return True
        return False

    for key in keys:
        if not put(key):
            moved = [one for line in inside for one in line]
            inside = [[] for _ in range(2 * len(inside))]
            for one in (*moved, key):
                assert put(one)
    count = len(inside)
    place = {key: at for at, line in enumerate(inside) for key in line}
    return [(place[key] - home_line(count, key)) % count + 1 for key in keys]


def test_a_full_bucket_is_searched_in_so_many_lines() -> None:
    random = np.random.default_rng(1)
    first = random.integers(10**9 // 16, size=4000) * 16
    found = [lines for at in first.tolist() for lines in lines_searched([*range(at, at + 16)])]
    assert np.mean(found) == pytest.approx(BucketTree.FULL_BUCKET_LINES, abs=0.01)


@pytest.mark.parametrize(
    ("bits", "in_a_bucket", "levels"), [(8, 16, 3), (6, 4, 4), (4, 16, 5), (3, 8, 6), (16, 1, 2)]
)
def test_the_shared_tree_of_dense_keys(bits: int, in_a_bucket: int, levels: int) -> None:
    """2^20 keys, and one more bit of them in use: what a look-up of the engine's goes through."""
    tree = BucketTree(2**20 + 1, bits, 16.0)
    assert 2**tree.slot_bits == in_a_bucket
    assert tree.levels == levels
    lines = tree.level_lines(np.array([2.0**20]))[:, 0] * tree.row_lines
    pairs_per_line = min(in_a_bucket, 4)
    assert lines[-1] == pytest.approx(2**20 / pairs_per_line)
    # The lowest nodes: a slot of 8 B for each bucket, and 16 B of head for each node.
    slots = 2**20 / in_a_bucket
    node_slots = min(2**bits, 16)
    assert lines[-2] == pytest.approx(slots * (1 + 2 / node_slots) / 8)
    assert tree.written_rows == (levels - 1, levels)
