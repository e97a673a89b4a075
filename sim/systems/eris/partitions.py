"""Partitions of an index or a column with their owners, and the transfers that change them.

While a balancing cycle runs, a range that changes hands belongs to its new owner as far as it has
been moved. Every key or entry has one owner at any time.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....workloads.keys import Density, KeyDistribution
from ...kernel.arrays import Flags, Floats, Ints
from ...kernel.sums import group_sums


@dataclass
class Transfers:
    """T parts that change hands: ``volume`` (T,) keys or entries from worker ``source`` to
    ``target`` (T,), of which ``moved`` (T,) have arrived.
    """

    source: Ints
    target: Ints
    volume: Floats
    moved: Floats

    @property
    def under_way(self) -> Flags:
        """(T,) which ones still have something to move."""
        return self.moved < self.volume

    def advance(self, amounts: Floats) -> None:
        """``amounts`` (T,) more have arrived; what is left within rounding has arrived too."""
        moved = self.moved + amounts
        self.moved = np.where(moved >= self.volume * (1.0 - 1e-9), self.volume, moved)


NO_TRANSFERS = Transfers(
    np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, float), np.zeros(0, float)
)


class _Changing:
    """Partitions, and the parts of them that change hands."""

    transfers = NO_TRANSFERS

    @property
    def balancing(self) -> bool:
        """Whether a cycle is under way."""
        return bool(self.transfers.under_way.any())


class IndexPartitions(_Changing):
    """Key ranges of one index over the workers, one partition each, in order."""

    def __init__(self, bounds: Ints) -> None:
        self.bounds = bounds
        self.workers = len(bounds) - 1
        self._edges, self._owner = bounds, np.arange(self.workers)
        self._next = self._owner
        self._moving = np.zeros(0, dtype=np.int64)

    @property
    def keys(self) -> int:
        """Keys of the index."""
        return int(self.bounds[-1])

    def rebalance(self, bounds: Ints) -> Transfers:
        """Starts a cycle towards ``bounds`` (A+1,); its transfers, none of them moved."""
        assert not self.balancing
        old = self.bounds
        edges = np.union1d(old, bounds)
        # The last partition that begins at or before an edge: empty ones own nothing.
        self._edges = edges
        self._owner = np.searchsorted(old, edges[:-1], side="right") - 1
        self._next = np.searchsorted(bounds, edges[:-1], side="right") - 1
        self._moving = np.flatnonzero(self._owner != self._next)
        self.bounds = bounds
        volume = np.diff(edges)[self._moving].astype(np.float64)
        self.transfers = Transfers(
            self._owner[self._moving], self._next[self._moving], volume, np.zeros(len(volume))
        )
        return self.transfers

    def pieces(self) -> tuple[Floats, Ints]:
        """(S+1,) edges of ranges with one owner each, as of now, and (S,) owners."""
        if not self.balancing:
            return self.bounds.astype(np.float64), np.arange(self.workers)
        first = self._edges[:-1].astype(np.float64)
        owner, moving, t = self._owner.copy(), self._moving, self.transfers
        # A part that goes to the left leaves at its left end, so that its new owner's range grows
        # without a gap; one that goes to the right at its right end.
        leftward = t.target < t.source
        split = np.where(leftward, first[moving] + t.moved, first[moving] + t.volume - t.moved)
        owner[moving] = np.where(leftward, t.target, t.source)
        rest = np.where(leftward, t.source, t.target)
        edges = np.concatenate([first, split])
        owners = np.concatenate([owner, rest])
        # Pieces may be empty: of those with one edge, the order is that of their ranges.
        part = np.repeat([0, 1], [len(first), len(moving)])
        order = np.lexsort((part, np.concatenate([np.arange(len(first)), moving]), edges))
        return np.append(edges[order], float(self.keys)), owners[order]

    def moved_ranges(self, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """(T,) first keys and ends of what each transfer moves from ``before`` to ``after`` (T,)
        moved: a part that goes to the left leaves at its left end.
        """
        t = self.transfers
        first = self._edges[:-1][self._moving].astype(np.float64)
        end = first + t.volume
        leftward = t.target < t.source
        return (
            np.where(leftward, first + before, end - after),
            np.where(leftward, first + after, end - before),
        )

    def sizes(self) -> Floats:
        """(A,) keys of each worker, as of now."""
        edges, owner = self.pieces()
        return group_sums(owner, np.diff(edges), self.workers)

    def shares(self, keys: KeyDistribution, time_s: float) -> Floats:
        """(A,) share of the accesses that falls to each worker, as of now."""
        edges, owner = self.pieces()
        return group_sums(owner, keys.shares(edges, time_s), self.workers)

    def classes(self, popularity: "PopularityClasses") -> tuple[Floats, Floats]:
        """(A, Q) keys, and mass of accesses, of each worker in each class of popularity."""
        edges, owner = self.pieces()
        breaks = popularity.breaks
        cuts = np.union1d(edges, breaks)
        width = np.diff(cuts)
        of = owner[np.searchsorted(edges, cuts[:-1], side="right") - 1]
        piece = np.searchsorted(breaks, cuts[:-1], side="right") - 1
        cell = of * popularity.count + popularity.class_of[piece]
        size = self.workers * popularity.count
        shape = (self.workers, popularity.count)
        keys = group_sums(cell, width, size).reshape(shape)
        mass = group_sums(cell, width * popularity.per_key[piece], size)
        return keys, mass.reshape(shape)


class PopularityClasses:
    """Pieces of a density, grouped into classes whose keys are asked for about equally often.

    Within a class the accesses per key differ by less than ``STEP``, so that caches need to tell
    only a few classes apart.
    """

    STEP = 1.25

    def __init__(self, density: Density) -> None:
        self.breaks = density.breaks.astype(np.float64)
        self.per_key: Floats = density.mass / np.diff(self.breaks)
        used = self.per_key > 0
        step = np.full(len(self.per_key), -(10**6), dtype=np.int64)
        step[used] = np.round(np.log(self.per_key[used]) / np.log(self.STEP)).astype(np.int64)
        # The most popular class first.
        _, inverse = np.unique(-step, return_inverse=True)
        self.class_of: Ints = inverse.reshape(-1).astype(np.int64)
        self.count = int(self.class_of.max()) + 1

    @cached_property
    def keys(self) -> Floats:
        """(Q,) keys of each class."""
        return group_sums(self.class_of, np.diff(self.breaks), self.count)

    @cached_property
    def mass(self) -> Floats:
        """(Q,) share of the accesses that goes to each class."""
        mass = self.per_key * np.diff(self.breaks)
        return group_sums(self.class_of, mass, self.count)


class ColumnPartitions(_Changing):
    """Entries of one column over the workers; only how many each has matters."""

    def __init__(self, sizes: Floats) -> None:
        self._sizes = sizes
        self.workers = len(sizes)

    def rebalance(self, sizes: Floats, node: Ints) -> Transfers:
        """Starts a cycle towards ``sizes`` (A,); ``node`` (A,): of each worker.

        Who has too much gives to who has too little, first within its node, where entries change
        hands without a copy, then in the order of workers.
        """
        assert not self.balancing
        surplus = self._sizes - sizes
        found: list[tuple[int, int, float]] = []
        for position in np.unique(node):
            found += _match(surplus, np.flatnonzero(node == position))
        found += _match(surplus, np.arange(self.workers))
        self.transfers = Transfers(
            np.array([source for source, _, _ in found], dtype=np.int64),
            np.array([target for _, target, _ in found], dtype=np.int64),
            np.array([volume for _, _, volume in found]),
            np.zeros(len(found)),
        )
        self._sizes = sizes.astype(np.float64)
        return self.transfers

    def sizes(self) -> Floats:
        """(A,) entries of each worker, as of now."""
        t = self.transfers
        left = t.volume - t.moved
        more = group_sums(t.source, left, self.workers)
        less = group_sums(t.target, left, self.workers)
        return np.asarray(self._sizes + more - less)


def _match(surplus: Floats, workers: Ints) -> list[tuple[int, int, float]]:
    """Transfers (source, target, entries) among ``workers``; takes them off ``surplus``."""
    found = []
    donors = [int(w) for w in workers if surplus[w] >= 1]
    recipients = [int(w) for w in workers if surplus[w] <= -1]
    while donors and recipients:
        source, target = donors[0], recipients[0]
        volume = float(min(surplus[source], -surplus[target]))
        found.append((source, target, volume))
        surplus[source] -= volume
        surplus[target] += volume
        if surplus[source] < 1:
            donors.pop(0)
        if surplus[target] > -1:
            recipients.pop(0)
    return found
