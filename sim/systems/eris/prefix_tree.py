"""Geometry of the order-preserving prefix trees: cache lines per level, bytes, levels.

A node holds 2^prefix_bits pointers of 8 bytes; the last level points to (key, value) entries that
lie densely. Keys fill a dense domain, so a level has as many slots as the level below has nodes.
Values that are larger than an entry may hold lie elsewhere, one beside the other, each in whole
words of 8 bytes; the entry has a pointer to its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

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
    def row_lines(self) -> npt.NDArray[np.float64]:
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

    def level_slots(self, keys: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(levels, …) slots in use per level, root first, for contiguous ranges of ``keys``."""
        below = 2.0 ** (self.prefix_bits * np.arange(self.levels - 1, -1, -1))
        shape = (self.levels, *([1] * np.ndim(keys)))
        return np.asarray(np.maximum(keys / below.reshape(shape), np.minimum(keys, 1.0)))

    def level_lines(self, keys: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(rows, …) cache lines per level, root first, then of entries, then of values out of line.

        Of a row of which each operation touches several together (``row_lines``), these are one.
        """
        slots = self.level_slots(keys) * (POINTER_BYTES / LINE_BYTES)
        return self._with_entries(slots, keys, self._row_bytes)

    def _with_entries(
        self, levels: npt.NDArray[np.float64], keys: npt.NDArray[np.float64], row_bytes: float
    ) -> npt.NDArray[np.float64]:
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

    def level_slots(self, keys: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(levels, …) slots in use per level of nodes, then heads."""
        below = self.leaf_bits + self.prefix_bits * np.arange(self.levels - 2, -2, -1.0)
        below[-1] = self.leaf_bits
        parts = 2.0 ** below.reshape(self.levels, *([1] * np.ndim(keys)))
        return np.asarray(np.maximum(keys / parts, np.minimum(keys, 1.0)))

    def level_lines(self, keys: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
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
    def row_lines(self) -> npt.NDArray[np.float64]:
        """(rows,) likewise; a pair is in one line, but some are behind it."""
        found = super().row_lines
        found[self.levels] = self.FULL_BUCKET_LINES if self.slot_bits == 4 else 1.0
        return found

    @property
    def _row_bytes(self) -> float:
        return max(self.entry_bytes, LINE_BYTES / 2.0**self.slot_bits)

    def level_slots(self, keys: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(levels, …) slots in use per level of nodes; the lowest have two words of head to 16."""
        above = self.prefix_bits * (self.slot_bits // self.prefix_bits + 1)
        below = above + self.prefix_bits * np.arange(self.levels - 2, -2, -1.0)
        below[-1] = self.slot_bits
        parts = 2.0 ** below.reshape(self.levels, *([1] * np.ndim(keys)))
        slots = np.maximum(keys / parts, np.minimum(keys, 1.0))
        slots[-1] *= 1.0 + 2.0 / 2.0 ** min(self.prefix_bits, 4)
        return np.asarray(slots)
