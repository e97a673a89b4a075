"""What an entry demands of the machine: instructions, lines read in order, accesses at random.

Lines that are read in order come from memory, and prefetchers fetch them ahead. An access at random
to a structure finds its line in the core's own cache, in the last-level cache, or in memory, as
Che's approximation says of a structure of this size that is used evenly: what an entry of this
stage uses competes for the caches; what other stages use, and lines that stream through, do not.
Each last-level cache has a copy of its own of what all threads share, and as many private
structures as threads use it. Page walks are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...machine.caches import hit_rates
from ...machine.costs import LINE_BYTES, CacheFacts, CostModel
from .program import EntryCost, MemoryUse, Place

Floats = npt.NDArray[np.float64]

PLACES: tuple[Place, ...] = ("part", "local", "interleaved")


@dataclass(frozen=True)
class InOrder:
    """Bytes per entry that are read, and written, one after the other."""

    place: Place
    read_bytes: float = 0.0
    written_bytes: float = 0.0


@dataclass(frozen=True)
class AtRandom:
    """``count`` accesses per entry, each to any line of a structure of ``structure_bytes``.

    ``own``: each thread has one of its own. ``written``: the line is changed, too.
    """

    place: Place
    count: float
    structure_bytes: float
    own: bool = False
    written: bool = False


class EntryCosts:
    """Costs of entries on a machine with ``workers`` (n,) on its nodes."""

    def __init__(self, costs: CostModel, workers: npt.NDArray[np.int64]) -> None:
        self.costs, self.workers = costs, workers
        cores = np.minimum(workers, costs.cores)
        self._core_node = np.repeat(np.arange(len(workers)), cores.astype(np.int64))
        self._cores = cores
        self._threads = np.divide(workers, cores, out=np.ones_like(cores), where=cores > 0)
        self._with_workers = np.flatnonzero(workers)

    def of(
        self,
        instructions: float,
        in_order: Sequence[InOrder] = (),
        at_random: Sequence[AtRandom] = (),
    ) -> EntryCost:
        """The cost of an entry that does all this."""
        costs, n = self.costs, len(self.workers)
        at_random = [access for access in at_random if access.count > 0]
        memory, last = self._found(at_random)
        accesses = sum(access.count for access in at_random)
        slots = costs.random_misses_of(self._core_node, max(instructions, 1.0) / max(accesses, 1.0))
        uses = {place: [0.0, 0.0] for place in PLACES}
        streamed = 0.0
        for run in in_order:
            # A line is fetched before it is written.
            lines = (run.read_bytes + run.written_bytes) / LINE_BYTES
            uses[run.place][0] += lines
            uses[run.place][1] += run.written_bytes / LINE_BYTES
            streamed += lines
        random = 0.0
        for access, missed in zip(at_random, memory, strict=True):
            uses[access.place][0] += missed
            uses[access.place][1] += missed * access.written
            random += missed
        return EntryCost(
            instructions_s=costs.core_s(instructions),
            separate_s=last * costs.last_cache.latency_s / slots,
            misses_at_once=_together(streamed, costs.streaming_misses, random, slots, n),
            memory=tuple(
                MemoryUse(place, read, written) for place, (read, written) in uses.items() if read
            ),
        )

    def _found(self, at_random: Sequence[AtRandom]) -> tuple[list[float], Floats]:
        """Accesses of each structure that go to memory, on average over nodes with workers; (n,)
        accesses that find their line in the last-level cache."""
        n = len(self.workers)
        if not at_random:
            return [], np.zeros(n)
        private = self._hits(at_random, self.costs.private_cache)
        last = np.maximum(self._hits(at_random, self.costs.last_cache), private)
        counts = np.array([access.count for access in at_random])
        missed = ((1.0 - last) * counts)[self._with_workers].mean(axis=0)
        return [float(each) for each in missed], np.asarray(((last - private) * counts).sum(axis=1))

    def _hits(self, at_random: Sequence[AtRandom], cache: CacheFacts) -> Floats:
        """(n, R) part of the accesses to each structure that find their line in such caches."""
        threads = np.maximum(np.minimum(cache.sharers, self._cores), 1.0) * self._threads
        lines = np.stack(
            [
                np.ceil(access.structure_bytes / LINE_BYTES)
                * (threads if access.own else np.ones_like(threads))
                for access in at_random
            ],
            axis=1,
        )
        rate = np.tile([access.count for access in at_random], (len(threads), 1))
        return hit_rates(lines, rate, cache.lines)


def _together(
    streamed: float, stream_slots: Floats, random: float, random_slots: Floats, n: int
) -> Floats:
    """(n,) lines under way of an entry that reads both: each kind for as long as it takes alone."""
    total = streamed + random
    if not total:
        return np.ones(n)
    return np.asarray(total / (streamed / stream_slots + random / random_slots))
