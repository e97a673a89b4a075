"""What an entry demands of the machine: instructions, lines read in order, accesses at random.

Lines that are read in order come from memory, and prefetchers fetch them ahead. An access at random
to a structure finds its line in the core's own cache, in the last-level cache, or in memory, as
Che's approximation says of structures that are used evenly. A core's own cache is that of the stage
that runs there, the last-level cache is shared by all stages (``cache_sharing.py``). Page walks are
not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...machine.cache_facts import CacheFacts
from ...machine.caches import hit_rates
from ...machine.costs import LINE_BYTES, CostModel
from .cache_sharing import AtRandom, CacheSurvey, StageUse, used_where
from .program import EntryCost, MemoryUse, Part, Place, Table

Floats = npt.NDArray[np.float64]

PLACES: tuple[Place, ...] = ("part", "local", "interleaved")


@dataclass(frozen=True)
class InOrder:
    """Bytes per entry that are read, and written, one after the other."""

    place: Place
    read_bytes: float = 0.0
    written_bytes: float = 0.0


class EntryCosts:
    """Costs of entries on a machine with ``workers`` (n,) on its nodes.

    ``last_hits``: of accesses in last-level caches, (n, R), by the stage's key, from a survey of
    all stages; a stage that is not there has these caches for itself. ``survey``: all stages are
    added to it, and what those cost that access anything at random is not worked out yet.
    """

    def __init__(
        self,
        costs: CostModel,
        workers: npt.NDArray[np.int64],
        last_hits: Mapping[str, Floats] | None = None,
        survey: CacheSurvey | None = None,
    ) -> None:
        self.costs, self.workers, self.last_hits = costs, workers, last_hits or {}
        self.survey, self.workers_in_all = survey, int(workers.sum())
        cores = np.minimum(workers, costs.cores)
        self._core_node = np.repeat(np.arange(len(workers)), cores.astype(np.int64))
        self._cores = cores
        self._threads = np.divide(workers, cores, out=np.ones_like(cores), where=cores > 0)
        self._private = self._sharing(costs.private_cache)
        self._last = self._sharing(costs.last_cache)
        self._places: dict[tuple[Part, ...] | None, tuple[Floats, Floats]] = {}
        self._in_order: dict[tuple[float, tuple[InOrder, ...]], EntryCost] = {}

    def new_survey(self) -> CacheSurvey:
        """An empty survey of these last-level caches."""
        return CacheSurvey(self.costs.last_cache, self._last)

    def used_where(self, table: Table | None) -> tuple[Floats, Floats]:
        """As the function of that name says, with these workers; not to be changed."""
        parts = None if table is None else table.parts
        if parts not in self._places:
            self._places[parts] = used_where(table, self.workers)
        return self._places[parts]

    def of(
        self,
        instructions: float,
        in_order: Sequence[InOrder] = (),
        at_random: Sequence[AtRandom] = (),
        use: StageUse | None = None,
    ) -> EntryCost:
        """The cost of an entry that does all this; ``use``: of the stage that it is one of."""
        at_random = [access for access in at_random if access.count > 0]
        if use is None:
            use = StageUse("", 1.0, *self.used_where(None))
        if self.survey is not None:
            self.survey.add(use, instructions, at_random)
            if at_random:
                return _LATER
        if at_random:
            return self._worked_out(instructions, in_order, at_random, use)
        # It is the same of all stages that do this.
        key = instructions, tuple(in_order)
        if key not in self._in_order:
            self._in_order[key] = self._worked_out(instructions, in_order, (), use)
        return self._in_order[key]

    def _worked_out(
        self,
        instructions: float,
        in_order: Sequence[InOrder],
        at_random: Sequence[AtRandom],
        use: StageUse,
    ) -> EntryCost:
        costs, n = self.costs, len(self.workers)
        memory, last = self._found(at_random, use)
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
        kept = sum(np.ceil(access.structure_bytes / LINE_BYTES) for access in at_random)
        warm = np.minimum(kept, costs.private_cache.lines)
        return EntryCost(
            instructions_s=costs.core_s(instructions),
            separate_s=last * costs.last_cache.latency_s / slots,
            misses_at_once=_together(streamed, costs.streaming_misses, random, slots, n),
            memory=tuple(
                MemoryUse(place, read, written) for place, (read, written) in uses.items() if read
            ),
            warm_lines=warm,
            warm_s=warm * costs.last_cache.latency_s / slots,
        )

    def _found(self, at_random: Sequence[AtRandom], use: StageUse) -> tuple[list[float], Floats]:
        """Accesses of each structure that go to memory, on average over the nodes where the stage
        is used; (n,) accesses that find their line in the last-level cache."""
        n = len(self.workers)
        if not at_random:
            return [], np.zeros(n)
        private = self._hits(at_random, self.costs.private_cache, self._private)
        found = self.last_hits.get(use.key)
        if found is None:
            found = self._hits(at_random, self.costs.last_cache, self._last)
        # On other nodes, where a task may be stolen to, as on average.
        found = np.where(use.nodes[:, None] > 0, found, use.nodes @ found)
        last = np.maximum(found, private)
        counts = np.array([access.count for access in at_random])
        missed = use.nodes @ ((1.0 - last) * counts)
        return [float(each) for each in missed], np.asarray(((last - private) * counts).sum(axis=1))

    def _hits(self, at_random: Sequence[AtRandom], cache: CacheFacts, threads: Floats) -> Floats:
        """(n, R) part of the accesses to each structure that find their line in such caches, each
        shared by ``threads`` (n,)."""
        lines = np.empty((len(threads), len(at_random)))
        rate = np.empty_like(lines)
        for r, access in enumerate(at_random):
            size = np.ceil(access.structure_bytes / LINE_BYTES)
            lines[:, r] = size * threads if access.own else size
            rate[:, r] = access.count
        return hit_rates(lines, rate, cache.lines)

    def _sharing(self, cache: CacheFacts) -> Floats:
        """(n,) threads that share a cache."""
        cores = np.maximum(np.minimum(cache.sharers, self._cores), 1.0)
        return np.asarray(cores * self._threads)


# Stands for a cost that is worked out once all stages are known.
_LATER = EntryCost(np.zeros(0), np.zeros(0), np.zeros(0), ())


def _together(
    streamed: float, stream_slots: Floats, random: float, random_slots: Floats, n: int
) -> Floats:
    """(n,) lines under way of an entry that reads both: each kind for as long as it takes alone."""
    total = streamed + random
    if not total:
        return np.ones(n)
    return np.asarray(total / (streamed / stream_slots + random / random_slots))
