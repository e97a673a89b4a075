"""Geometry of the order-preserving prefix trees: cache lines per level, bytes, levels.

A node holds 2^prefix_bits pointers of 8 bytes; the last level points to (key, value) entries that
lie densely. Keys fill a dense domain, so a level has as many slots as the level below has nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

POINTER_BYTES = 8
LINE_BYTES = 64


@dataclass(frozen=True)
class PrefixTree:
    """The tree over a domain of ``keys`` dense keys.

    ``prefix_bits``: bits of the key that one level consumes; ``entry_bytes``: key and value.
    """

    keys: int
    prefix_bits: int = 8
    entry_bytes: float = 16.0

    @property
    def levels(self) -> int:
        """Levels of nodes that tell the domain's keys apart."""
        return max(1, -(-(max(self.keys - 1, 1)).bit_length() // self.prefix_bits))

    @property
    def bytes_per_key(self) -> float:
        """Memory per key: slots of all levels and the entry."""
        return (
            float(self.level_slots(np.array([float(self.keys)])).sum())
            * POINTER_BYTES
            / max(self.keys, 1)
            + self.entry_bytes
        )

    def level_slots(self, keys: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(levels, …) slots in use per level, root first, for contiguous ranges of ``keys``."""
        below = 2.0 ** (self.prefix_bits * np.arange(self.levels - 1, -1, -1))
        shape = (self.levels, *([1] * np.ndim(keys)))
        return np.asarray(np.maximum(keys / below.reshape(shape), np.minimum(keys, 1.0)))

    def level_lines(self, keys: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(levels + 1, …) cache lines per level, root first, the entries last."""
        slots = self.level_slots(keys) * (POINTER_BYTES / LINE_BYTES)
        entries = np.asarray(keys, dtype=np.float64)[None] * (self.entry_bytes / LINE_BYTES)
        some = np.minimum(np.asarray(keys, dtype=np.float64), 1.0)
        return np.asarray(np.maximum(np.concatenate([slots, entries]), some))


@dataclass(frozen=True)
class ArrayTree(PrefixTree):
    """The native engine's tree of dense keys (engine_native/storage/prefix_tree.hpp).

    The last level holds no pointers: an array of values stands for ``2^leaf_bits`` neighbouring
    keys, behind a head of whole lines with a bit for each that is there.
    """

    value_bytes: float = 8.0

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
        return float(self.level_lines(np.array([keys])).sum()) * LINE_BYTES / keys

    def level_slots(self, keys: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(levels, …) slots in use per level of nodes, then heads."""
        below = self.leaf_bits + self.prefix_bits * np.arange(self.levels - 2, -2, -1.0)
        below[-1] = self.leaf_bits
        parts = 2.0 ** below.reshape(self.levels, *([1] * np.ndim(keys)))
        return np.asarray(np.maximum(keys / parts, np.minimum(keys, 1.0)))

    def level_lines(self, keys: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(levels + 1, …) cache lines per level, root first, then heads, the values last."""
        lines = self.level_slots(keys) * (POINTER_BYTES / LINE_BYTES)
        lines[-1] *= self.head_bytes / POINTER_BYTES
        values = np.asarray(keys, dtype=np.float64)[None] * (self.value_bytes / LINE_BYTES)
        some = np.minimum(np.asarray(keys, dtype=np.float64), 1.0)
        return np.asarray(np.maximum(np.concatenate([lines, values]), some))
