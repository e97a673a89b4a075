"""Cache misses and hits of an operation on an index: a walk down the prefix tree.

Geometry of the order-preserving prefix trees: cache lines per level, bytes, levels.

A node holds 2^prefix_bits pointers of 8 bytes; the last level points to (key, value) entries that
lie densely. Keys fill a dense domain, so a level has as many slots as the level below has nodes.
Values that are larger than an entry may hold lie elsewhere, one beside the other, each in whole
words of 8 bytes; the entry has a pointer to its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....workloads.keys import Density, KeyDistribution
from ....workloads.schema import DataObject
from ....workloads.workload import ResolvedOperation
from ...kernel.arrays import Floats
from ...machine.caches import hit_rates
from .partitions import PopularityClasses

PAGE_ENTRY_BYTES = 8.0


def tree_of(
    stored: DataObject,
    inline_bytes: float,
    *,
    native: bool = False,
    shared: bool = False,
    step_lines: float = 1.0,
) -> "PrefixTree":
    """The tree of an index of the workload: that of ERIS, or of the native engine (a partition's,
    or the one that all threads share).

    Values above ``inline_bytes`` lie out of line, in whole words.
    """
    assert stored.keys is not None
    value_bytes, far_bytes = stored.value_size.value, 0.0
    if value_bytes > inline_bytes:
        words_bytes = math.ceil(value_bytes / WORD_BYTES) * float(WORD_BYTES)
        far_bytes = block_bytes(value_bytes) if native else words_bytes
        value_bytes = float(POINTER_BYTES)
    entry_bytes = stored.key_size.value + value_bytes
    shape = stored.keys, stored.prefix_bits, entry_bytes, far_bytes, step_lines
    if not native:
        return PrefixTree(*shape)
    return BucketTree(*shape) if shared else ArrayTree(*shape, value_bytes)


def block_bytes(value_bytes: float) -> float:
    """What a value out of line takes in the native engine: a block of one of its size classes
    (engine_native/memory/manager.hpp); 0 where it is a word in the tree."""
    if value_bytes <= WORD_BYTES:
        return 0.0
    if value_bytes <= 48:
        return math.ceil(value_bytes / 16) * 16.0
    if value_bytes <= 4096:
        return math.ceil(value_bytes / LINE_BYTES) * float(LINE_BYTES)
    step = 2.0 ** (math.ceil(math.log2(value_bytes)) - 3)
    return math.ceil(value_bytes / step) * step


@dataclass(frozen=True)
class Popularity:
    """How the operations on one index spread over its keys: by place, or by rank.

    ``weight``: their share of all operations. ``scattered``: the distribution of hot keys that lie
    all over the domain, so that every partition has its part of each class; None for keys by place.
    """

    classes: PopularityClasses
    weight: float
    scattered: KeyDistribution | None


def popularities(operations: Sequence[ResolvedOperation], time_s: float) -> list[Popularity]:
    """Of operations on one index: those by place as one mixture, each scattered one of its own."""
    placed: list[tuple[float, Density]] = []
    scattered: list[tuple[float, Density, KeyDistribution]] = []
    for operation in operations:
        keys = operation.keys
        assert keys is not None
        density = keys.density(time_s)
        if not keys.scattered:
            placed.append((operation.share, density))
            continue
        # Operations with one and the same distribution have their hot keys in common.
        for k, (share, known, _) in enumerate(scattered):
            if all(map(np.array_equal, (known.breaks, known.mass), (density.breaks, density.mass))):
                scattered[k] = (share + operation.share, known, keys)
                break
        else:
            scattered.append((operation.share, density, keys))
    found = [
        Popularity(PopularityClasses(density), share, keys) for share, density, keys in scattered
    ]
    if placed:
        weight = sum(share for share, _ in placed)
        found.append(Popularity(PopularityClasses(_mixture(placed)), weight, None))
    return found


def hottest_line(spread: Popularity, keys_per_line: float) -> float:
    """Share of the accesses that goes to the entries of the most popular cache line."""
    classes = spread.classes
    per_key = float(classes.per_key.max())
    # Scattered, its neighbours are any keys; by place they are as popular, if there are so many.
    class_keys = 1.0 if spread.scattered else float(classes.keys[0])
    return min(per_key * min(max(keys_per_line, 1.0), max(class_keys, 1.0)), 1.0)


def _mixture(parts: list[tuple[float, Density]]) -> Density:
    breaks = np.unique(np.concatenate([density.breaks for _, density in parts]))
    mass = np.zeros(len(breaks) - 1)
    for share, density in parts:
        per_key = density.mass / np.diff(density.breaks)
        piece = np.searchsorted(density.breaks, breaks[:-1], side="right") - 1
        mass += share * per_key[piece] * np.diff(breaks)
    return Density(breaks, mass / mass.sum())


@dataclass(frozen=True)
class Regions:
    """Lines of a tree that are used alike: ``lines`` and ``rate`` (n, rows, Q).

    Rows: the tree's levels, root first, then the entries, then values out of line if there are any;
    then, in the same order, the entries of the page table for each of these, read when the
    translation buffer does not know the page. ``row_lines`` (rows / 2,): lines that an operation
    touches together, which ``lines`` and ``rate`` count one by one.
    """

    lines: Floats
    rate: Floats
    row_lines: Floats


def placed_regions(tree: "PrefixTree", keys: Floats, mass: Floats) -> Regions:
    """Regions of the contiguous ``keys`` (n, Q), asked for with ``mass`` (n, Q)."""
    lines = np.moveaxis(tree.level_lines(keys), 0, 1)
    return Regions(lines, np.broadcast_to(mass[:, None, :], lines.shape), tree.row_lines)


def scattered_regions(tree: "PrefixTree", keys: Floats, mass: Floats) -> Regions:
    """Regions of ``keys`` (n, Q) that lie at random, the most popular class first.

    Several keys share a line. The line belongs to the class of its most popular key: of the lines
    of a level, exp(-keys per line) hold none of the keys placed so far.
    """
    level_lines = np.moveaxis(tree.level_lines(keys.sum(axis=1)), 0, 1)[:, :, None]  # (n, L, 1)
    keys_so_far = np.cumsum(keys, axis=1)[:, None, :]
    per_line = np.divide(keys_so_far, level_lines, out=np.zeros(np.broadcast_shapes(
        keys_so_far.shape, level_lines.shape)), where=level_lines > 0)  # fmt: skip
    free_after = np.exp(-per_line)
    free_after[:, :, -1] = 0.0
    free_before = np.concatenate(
        [np.ones_like(free_after[:, :, :1]), free_after[:, :, :-1]], axis=2
    )
    claimed = free_before - free_after
    colder = np.maximum(mass.sum(axis=1)[:, None] - np.cumsum(mass, axis=1), 0.0)
    rate = mass[:, None, :] * free_before + claimed * colder[:, None, :]
    return Regions(level_lines * claimed, rate, tree.row_lines)


def with_page_walks(regions: Regions, page_bytes: float, reach: Floats, sharers: Floats) -> Regions:
    """``regions``, each line counted, and the page-table lines behind them.

    ``reach`` (n,): pages that a core's translation buffer knows; ``sharers`` (n,): cores that the
    regions are divided among, 1 where each core uses them all.
    """
    each, rate = regions.row_lines[:, None], regions.rate
    lines = regions.lines * each
    pages = lines * (LINE_BYTES / page_bytes)
    per_core = np.maximum(pages / sharers[:, None, None], np.minimum(lines, 1.0))
    known = hit_rates(
        per_core.reshape(len(lines), -1), rate.reshape(len(lines), -1), reach
    ).reshape(lines.shape)
    table = np.maximum(pages * (PAGE_ENTRY_BYTES / LINE_BYTES), np.minimum(lines, 1.0))
    return Regions(
        np.concatenate([lines, table], axis=1),
        np.concatenate([rate * each, rate * (1.0 - known)], axis=1),
        regions.row_lines,
    )


@dataclass(frozen=True)
class Hits:
    """Hit probability of each region, (n, rows, Q): in the private cache, and of what misses that
    one, in the last-level cache.
    """

    private: Floats
    last: Floats


@dataclass(frozen=True)
class Walk:
    """What one operation's walk finds, on average, per class: arrays (n, Q), lines per operation.

    ``misses``: lines from memory; ``hits``, ``private_hits``: from the last-level cache, and from
    the private one before it; ``written_misses``: those of the misses that are of what an upsert
    writes.
    """

    misses: Floats
    hits: Floats
    private_hits: Floats
    written_misses: Floats


def walk_of(regions: Regions, hits: Hits, tree: "PrefixTree", *, scattered: bool) -> Walk:
    """The walk over a tree.

    Classes of scattered keys share lines: their walks are averaged into one class.
    """
    rate, private, last, rows = regions.rate, hits.private, hits.last, tree.rows
    missed = (1.0 - private) * (1.0 - last)
    found = (1.0 - private) * last
    # The operations of a class all read one line of each level, or so many together.
    per_class = rate[:, :rows] / regions.row_lines[:, None]
    each = per_class.sum(axis=2, keepdims=True) if scattered else per_class
    each = each.max(axis=1, keepdims=True)

    def count(part: Floats) -> Floats:
        part = (rate * part).sum(axis=2, keepdims=True) if scattered else rate * part
        counted: Floats = np.divide(part, each, out=np.zeros_like(part), where=each > 0)
        return counted

    misses = count(missed)
    return Walk(
        misses.sum(axis=1),
        count(found).sum(axis=1),
        count(private).sum(axis=1),
        misses[:, list(tree.written_rows)].sum(axis=1),
    )


POINTER_BYTES = 8
LINE_BYTES = 64
WORD_BYTES = 8


def lines_of(size_bytes: float) -> float:
    """Cache lines that an item touches, on average: those of a size lie one beside the other.

    Its first byte is at any multiple of what its size and a line's have in common, as likely at one
    as at another.
    """
    size = max(round(size_bytes), 1)
    return 1.0 + (size - math.gcd(size, LINE_BYTES)) / LINE_BYTES


@dataclass(frozen=True)
class PrefixTree:
    """The tree over a domain of ``keys`` dense keys.

    ``prefix_bits``: bits of the key that one level consumes; ``entry_bytes``: key and value, or key
    and pointer; ``far_bytes``: of a value that lies out of line, 0 where entries hold them;
    ``step_lines``: cache lines that a step down a level touches.
    """

    keys: int
    prefix_bits: int = 8
    entry_bytes: float = 16.0
    far_bytes: float = 0.0
    step_lines: float = 1.0

    @property
    def levels(self) -> int:
        """Levels of nodes that distinguish all keys of the domain."""
        return max(1, -(-(max(self.keys - 1, 1)).bit_length() // self.prefix_bits))

    @property
    def rows(self) -> int:
        """Levels, entries, and values that lie out of line."""
        return self.levels + (2 if self.far_bytes else 1)

    @property
    def written_rows(self) -> tuple[int, ...]:
        """Rows of which an upsert writes a line."""
        return (self.rows - 1,)

    @property
    def row_lines(self) -> Floats:
        """(rows,) cache lines of each row that an operation touches."""
        found = np.ones(self.rows)
        found[: self.levels] = self.step_lines
        found[self.levels] = lines_of(self._row_bytes)
        if self.far_bytes:
            found[-1] = lines_of(self.far_bytes)
        return found

    @property
    def _row_bytes(self) -> float:
        """Of an entry, as it lies beside others."""
        return self.entry_bytes

    @property
    def written_bytes(self) -> float:
        """Of what an upsert writes, as it lies beside others of the kind."""
        return self.far_bytes or self.entry_bytes

    @property
    def pair_bytes(self) -> float:
        """Of key and value."""
        return self.entry_bytes + (self.far_bytes - POINTER_BYTES if self.far_bytes else 0.0)

    @property
    def bytes_per_key(self) -> float:
        """Memory per key: slots of all levels, the entry, a value that lies out of line."""
        return (
            float(self.level_slots(np.array([float(self.keys)])).sum())
            * POINTER_BYTES
            / max(self.keys, 1)
            + self.entry_bytes
            + self.far_bytes
        )

    def level_slots(self, keys: Floats) -> Floats:
        """(levels, …) slots in use per level, root first, for contiguous ranges of ``keys``."""
        below = 2.0 ** (self.prefix_bits * np.arange(self.levels - 1, -1, -1))
        shape = (self.levels, *([1] * np.ndim(keys)))
        return np.asarray(np.maximum(keys / below.reshape(shape), np.minimum(keys, 1.0)))

    def level_lines(self, keys: Floats) -> Floats:
        """(rows, …) cache lines per level, root first, then of entries, then of values out of line.

        Of a row of which each operation touches several together (``row_lines``), these are one.
        """
        slots = self.level_slots(keys) * (POINTER_BYTES / LINE_BYTES)
        return self._with_entries(slots, keys, self._row_bytes)

    def _with_entries(self, levels: Floats, keys: Floats, row_bytes: float) -> Floats:
        each = np.asarray(keys, dtype=np.float64)[None]
        rows = [
            levels / self.step_lines,
            each * (row_bytes / LINE_BYTES / self.row_lines[self.levels]),
        ]
        if self.far_bytes:
            rows.append(each * (self.far_bytes / LINE_BYTES / self.row_lines[-1]))
        some = np.minimum(np.asarray(keys, dtype=np.float64), 1.0)
        return np.asarray(np.maximum(np.concatenate(rows), some))


@dataclass(frozen=True)
class ArrayTree(PrefixTree):
    """The native engine's tree of dense keys (engine_native/storage/prefix_tree.hpp).

    The last level holds no pointers: an array of values stands for ``2^leaf_bits`` neighbouring
    keys, behind a head of whole lines with a bit for each that is there.
    """

    value_bytes: float = 8.0

    @property
    def _row_bytes(self) -> float:
        return self.value_bytes

    @property
    def leaf_bits(self) -> int:
        """Bits of the key that an array of values stands for."""
        return min(max(self.prefix_bits, 6), 10)

    @property
    def head_bytes(self) -> float:
        """Of an array: 16 bytes, and a bit for each key, in whole lines."""
        return float(-(-(16 + 2**self.leaf_bits // 8) // LINE_BYTES) * LINE_BYTES)

    @property
    def levels(self) -> int:
        """Levels of nodes, and the arrays."""
        above = max((max(self.keys - 1, 1)).bit_length() - self.leaf_bits, 0)
        return 1 + -(-above // self.prefix_bits)

    @property
    def bytes_per_key(self) -> float:
        """Memory per key: slots of all levels, heads and values."""
        keys = float(max(self.keys, 1))
        lines = self.level_lines(np.array([keys]))[:, 0] * self.row_lines
        return float(lines.sum()) * LINE_BYTES / keys

    def level_slots(self, keys: Floats) -> Floats:
        """(levels, …) slots in use per level of nodes, then heads."""
        below = self.leaf_bits + self.prefix_bits * np.arange(self.levels - 2, -2, -1.0)
        below[-1] = self.leaf_bits
        parts = 2.0 ** below.reshape(self.levels, *([1] * np.ndim(keys)))
        return np.asarray(np.maximum(keys / parts, np.minimum(keys, 1.0)))

    def level_lines(self, keys: Floats) -> Floats:
        """(rows, …) likewise: levels, heads, values or pointers to them, values out of line."""
        lines = self.level_slots(keys) * (POINTER_BYTES / LINE_BYTES)
        lines[-1] *= self.head_bytes / POINTER_BYTES
        return self._with_entries(lines, keys, self._row_bytes)


@dataclass(frozen=True)
class BucketTree(PrefixTree):
    """The native engine's shared tree of dense keys (engine_native/storage/shared_tree.hpp).

    A bucket of full cache lines holds the pairs of up to 16 neighbouring keys, each in a line that
    a hash chooses, or in one behind it where that is full. A slot of a node links it, and has a
    lock, which an upsert takes.
    """

    # Of 16 neighbouring keys in four lines (test_prefix_tree plays it).
    FULL_BUCKET_LINES: ClassVar[float] = 1.08

    @property
    def slot_bits(self) -> int:
        """Bits of the key that a bucket stands for: a node begins with 16 slots, or all it can."""
        if self.prefix_bits <= 4:
            return 4 // self.prefix_bits * self.prefix_bits
        return self.prefix_bits - 4 if self.prefix_bits <= 8 else 0

    @property
    def levels(self) -> int:
        """Levels of nodes above the buckets."""
        bits = max(self.keys - 1, 1).bit_length()
        return max(1, -(-max(bits, 1) // self.prefix_bits) - self.slot_bits // self.prefix_bits)

    @property
    def written_rows(self) -> tuple[int, ...]:
        """The slot with the lock, and the pair; or the value out of line, which needs no lock."""
        return (self.rows - 1,) if self.far_bytes else (self.levels - 1, self.rows - 1)

    @property
    def row_lines(self) -> Floats:
        """(rows,) likewise; a pair is in one line, but some are behind it."""
        found = super().row_lines
        found[self.levels] = self.FULL_BUCKET_LINES if self.slot_bits == 4 else 1.0
        return found

    @property
    def _row_bytes(self) -> float:
        return max(self.entry_bytes, LINE_BYTES / 2.0**self.slot_bits)

    def level_slots(self, keys: Floats) -> Floats:
        """(levels, …) slots in use per level of nodes; the lowest have two words of head to 16."""
        above = self.prefix_bits * (self.slot_bits // self.prefix_bits + 1)
        below = above + self.prefix_bits * np.arange(self.levels - 2, -2, -1.0)
        below[-1] = self.slot_bits
        parts = 2.0 ** below.reshape(self.levels, *([1] * np.ndim(keys)))
        slots = np.maximum(keys / parts, np.minimum(keys, 1.0))
        slots[-1] *= 1.0 + 2.0 / 2.0 ** min(self.prefix_bits, 4)
        return np.asarray(slots)
