"""What an entry demands of the machine: instructions, lines read in order, accesses at random.

Lines that are read in order come from memory, and prefetchers fetch most of them ahead. An access
at random to a structure finds its line in the core's own cache, in the last-level cache, or in
memory, as Che's approximation says of structures that are used evenly. A core's own cache is that
of the stage that runs there, the last-level cache is shared by all stages (``cache_sharing.py``).
Page walks are not counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import expm1, log1p

import numpy as np

from ....workloads.query_graphs import ColumnOf
from ...kernel.arrays import Floats, Ints
from ...machine.caches import CacheFacts, hit_rates
from ...machine.costs import LINE_BYTES, CostModel
from .cache_sharing import AtRandom, CacheSurvey, StageUse, used_where
from .program import EntryCost, LoopCost, MemoryUse, Part, Place, Table

PLACES: tuple[Place, ...] = ("part", "local", "interleaved")


@dataclass(frozen=True)
class InOrder:
    """Bytes per entry that are read, and written, one after the other."""

    place: Place
    read_bytes: float = 0.0
    written_bytes: float = 0.0


@dataclass
class Demands:
    """What a loop demands for an entry, added up.

    ``ipc``: its instructions per cycle; ``at_once``: random accesses that it has under way. As the
    machine says where they are None. ``mapped``: what it writes is mapped before, and unmapped.
    ``page_faults``: of pages that it touches first besides.
    """

    instructions: float = 0.0
    in_order: list[InOrder] = field(default_factory=list)
    at_random: list[AtRandom] = field(default_factory=list)
    ipc: float | None = None
    at_once: float | None = None
    mapped: bool = False
    page_faults: float = 0.0

    @property
    def random(self) -> list[AtRandom]:
        """Those that it makes at all."""
        return [access for access in self.at_random if access.count > 0]

    def more(self, instructions: float, *uses: InOrder | AtRandom) -> "Demands":
        """Adds to it; itself."""
        self.instructions += instructions
        for use in uses:
            if isinstance(use, InOrder):
                self.in_order.append(use)
            else:
                self.at_random.append(use)
        return self


class EntryCosts:
    """Costs of entries on a machine with ``workers`` (n,) on its nodes.

    ``survey``: of the stages that share the last-level caches, all of which are added before any
    cost is asked for; a stage that is not there has these caches for itself.
    """

    def __init__(self, costs: CostModel, workers: Ints, survey: CacheSurvey | None = None) -> None:
        self.costs, self.workers, self.workers_in_all = costs, workers, int(workers.sum())
        cores = np.minimum(workers, costs.cores)
        self._core_node = np.repeat(np.arange(len(workers)), cores.astype(np.int64))
        self._cores = cores
        self._threads = np.divide(workers, cores, out=np.ones_like(cores), where=cores > 0)
        self._private = self._sharing(costs.private_cache)
        self._last = self._sharing(costs.last_cache)
        self.survey = survey or CacheSurvey(self._last)
        self._places: dict[tuple[Part, ...] | None, tuple[Floats, Floats]] = {}
        self._in_order: dict[tuple[float, float | None, tuple[InOrder, ...]], EntryCost] = {}

    @cached_property
    def _last_hits(self) -> Mapping[str, Floats]:
        """(n, R) part of a stage's accesses that hit in last-level caches, by the stage's key."""
        return self.survey.hits(self.costs.last_cache)

    @cached_property
    def _line_s(self) -> Floats:
        """(n,) latency of a line that is read in order."""
        return self.survey.line_s(self.costs)

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
        """The cost of an entry that does all this in one loop; ``use``: of its stage."""
        return self.of_loops((Demands(instructions, [*in_order], [*at_random]),), use)

    def of_loops(self, loops: Sequence[Demands], use: StageUse | None = None) -> EntryCost:
        """The cost of an entry that goes through these loops, one after the other."""
        if use is None:
            use = StageUse("", 1.0, *self.used_where(None))
        if len(loops) > 1 or loops[0].random:
            return self._worked_out(loops, use)
        # It is the same of all stages that do this.
        (loop,) = loops
        key = loop.instructions, loop.ipc, tuple(loop.in_order)
        if key not in self._in_order:
            self._in_order[key] = self._worked_out(loops, use)
        return self._in_order[key]

    def _worked_out(self, loops: Sequence[Demands], use: StageUse) -> EntryCost:
        memory, last = self._found([access for loop in loops for access in loop.random], use)
        first, costs = 0, []
        for loop in loops:
            end = first + len(loop.random)
            costs.append(self._of_loop(loop, memory[first:end], last[:, first:end].sum(axis=1)))
            first = end
        return costs[0] if len(costs) == 1 else _one_after_other(costs)

    def _of_loop(self, loop: Demands, memory: Sequence[float], last: Floats) -> EntryCost:
        """``memory``: misses of each of its random accesses; ``last`` (n,): those that hit in the
        last-level cache."""
        costs, n, at_random = self.costs, len(self.workers), loop.random
        accesses = sum(access.count for access in at_random)
        distance = max(loop.instructions, 1.0) / max(accesses, 1.0)
        slots = costs.random_misses_of(self._core_node, 1.0 if loop.at_once else distance)
        if loop.at_once:
            slots = np.minimum(slots, loop.at_once)
        uses = {place: [0.0, 0.0] for place in PLACES}
        streamed = 0.0
        for run in loop.in_order:
            # A line is fetched before it is written.
            lines = (run.read_bytes + run.written_bytes) / LINE_BYTES
            uses[run.place][0] += lines
            uses[run.place][1] += run.written_bytes / LINE_BYTES
            streamed += lines
        instructions_s = costs.core_s(loop.instructions, loop.ipc)
        separate_s = last * costs.last_cache.latency_s / slots
        if streamed and costs.stream_uncovered.any():
            each_s = costs.uncovered_s(instructions_s / streamed, self._line_s)
            separate_s = separate_s + streamed * each_s
        random = 0.0
        for access, missed in zip(at_random, memory, strict=True):
            uses[access.place][0] += missed
            uses[access.place][1] += missed * access.written
            random += missed
        kept = sum(np.ceil(access.structure_bytes / LINE_BYTES) for access in at_random)
        warm = np.minimum(kept, costs.private_cache.lines)
        return EntryCost(
            instructions_s=instructions_s,
            separate_s=separate_s,
            misses_at_once=_together(streamed, costs.streaming_misses, random, slots, n),
            memory=tuple(
                MemoryUse(place, read, written) for place, (read, written) in uses.items() if read
            ),
            warm_lines=warm,
            warm_s=warm * costs.last_cache.latency_s / slots,
        )

    def _found(self, at_random: Sequence[AtRandom], use: StageUse) -> tuple[list[float], Floats]:
        """Accesses of each structure that go to memory, on average over the nodes where the stage
        is used; (n, R) accesses that find their line in the last-level cache."""
        if not at_random:
            return [], np.zeros((len(self.workers), 0))
        private = self._hits(at_random, self.costs.private_cache, self._private)
        found = self._last_hits.get(use.key)
        if found is None:
            found = self._hits(at_random, self.costs.last_cache, self._last)
        # On other nodes, where a task may be stolen to, as on average.
        found = np.where(use.nodes[:, None] > 0, found, use.nodes @ found)
        last = np.maximum(found, private)
        counts = np.array([access.count for access in at_random])
        missed = use.nodes @ ((1.0 - last) * counts)
        return [float(each) for each in missed], np.asarray((last - private) * counts)

    def _hits(self, at_random: Sequence[AtRandom], cache: CacheFacts, threads: Floats) -> Floats:
        """(n, R) part of the accesses to each structure that find their line in such caches, each
        shared by ``threads`` (n,)."""
        names = [access.name or str(r) for r, access in enumerate(at_random)]
        column = {name: r for r, name in enumerate(dict.fromkeys(names))}
        lines = np.empty((len(threads), len(column)))
        rate = np.zeros_like(lines)
        for access, name in zip(at_random, names, strict=True):
            size = np.ceil(access.structure_bytes / LINE_BYTES)
            lines[:, column[name]] = size * threads if access.own else size
            rate[:, column[name]] += access.count
        return hit_rates(lines, rate, cache.lines)[:, [column[name] for name in names]]

    def _sharing(self, cache: CacheFacts) -> Floats:
        """(n,) threads that share a cache."""
        cores = np.maximum(np.minimum(cache.sharers, self._cores), 1.0)
        return np.asarray(cores * self._threads)


def _one_after_other(loops: Sequence[EntryCost]) -> EntryCost:
    """Of an entry that goes through all of these."""
    lines = np.array([sum(use.read for use in loop.memory) for loop in loops])
    held = sum(each / loop.misses_at_once for each, loop in zip(lines, loops, strict=True))
    uses = {
        place: [
            sum(getattr(use, what) for loop in loops for use in loop.memory if use.place == place)
            for what in ("read", "written")
        ]
        for place in PLACES
    }
    return EntryCost(
        instructions_s=np.asarray(sum(loop.instructions_s for loop in loops)),
        separate_s=np.asarray(sum(loop.separate_s for loop in loops)),
        misses_at_once=lines.sum() / held if lines.sum() else loops[0].misses_at_once,
        memory=tuple(MemoryUse(place, *use) for place, use in uses.items() if use[0]),
        # Each loop finds what the others have left.
        warm_lines=np.max([_known(loop.warm_lines) for loop in loops], axis=0),
        warm_s=np.max([_known(loop.warm_s) for loop in loops], axis=0),
        loops=tuple(
            LoopCost(loop.instructions_s, loop.misses_at_once, loop.memory) for loop in loops
        ),
    )


def _known(values: Floats | None) -> Floats:
    assert values is not None
    return values


def _together(
    streamed: float, stream_slots: Floats, random: float, random_slots: Floats, n: int
) -> Floats:
    """(n,) lines under way of an entry that reads both: each kind for as long as it takes alone."""
    total = streamed + random
    if not total:
        return np.ones(n)
    if not random:
        return stream_slots  # to the last bit: the machine knows streams by it
    return np.asarray(total / (streamed / stream_slots + random / random_slots))


SLOT_BYTES = 8.0  # a key, a sum, a count, or a position and a pointer in a hash table
LOAD_FACTOR = 0.5  # of hash tables: half of the slots are taken
LINE_BITS = 512.0


@dataclass(frozen=True)
class Results:
    """What an operator passes on: ``entries`` in all, once the ``stages`` at these positions are
    done, which lie in caches where they are ``cached``.

    ``table``: the name of the table whose parts they come from, None where from none any more.
    ``bytes``: of an entry, as it is read; ``finding``: instructions that this takes. ``made``:
    columns whose values are at hand in order.
    """

    entries: float
    stages: tuple[int, ...]
    table: str | None
    bytes: float
    made: frozenset[ColumnOf] = frozenset()
    finding: float = 0.0
    cached: bool = False


def lines_per_entry(bits: float, density: float) -> tuple[float, float]:
    """Lines of an index vector per entry taken from it in order: those next to one that is read
    too, and those that stand alone.

    Of rows with ``bits`` each, the part ``density`` is taken, all over the vector. A line holds
    r = 512 / bits rows, and is read with probability p = 1 - (1 - density)^r: p / (density r) lines
    an entry. The line before it is read as well with probability p, so that a prefetcher sees a
    stream.
    """
    rows = LINE_BITS / bits
    if density <= 0.0:
        return 0.0, 1.0
    read = 1.0 if density >= 1.0 else -expm1(rows * log1p(-density))
    lines = min(read / (density * rows), 1.0)
    return lines * read, lines * (1.0 - read)


def found_of(groups: float, entries: float) -> float:
    """How many of so many groups some of the entries are in, if each is in any of them."""
    return -groups * expm1(-entries / groups)


def table_bytes(entries: float, slots: int) -> float:
    """Of a hash table with so many entries of so many slots."""
    return max(entries, 1.0) * SLOT_BYTES * slots / LOAD_FACTOR
