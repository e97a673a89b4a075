"""Costs of operations on ERIS's data, for any owner: trees, caches, scans.

A unit of work is one operation of the workload's mix. Hyper-threads are taken to share their core's
issue slots without gain or loss.

Overlap of the misses of a batch of keys on a core, as measured in a machine file.

The rule of the cost model is that a step takes as long as its instructions or its misses, whichever
is longer. A batch of a real engine's lookups overlaps less well than that where both are about as
long: each of its passes ends with waiting for its own last misses. What a key of a batch takes was
measured by size of the index (``engines.eris.walk`` of the machine file); what its misses hold of
the core's slots at that size, idle, the cost model knows: together, one curve of the time that a
key takes more than its instructions against the time that its misses hold. Other distributions,
other shares of a cache and slower memory move along this curve.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ....inputs.grouping import by_key
from ....topologies.machine import Machine
from ....workloads.schema import DataObject
from ....workloads.workload import PhaseState, ResolvedOperation
from ...kernel.arrays import Flags, Floats, Ints
from ...machine.caches import hit_rates, last_level_hits, shared_state
from ...machine.costs import LINE_BYTES
from ...machine.demands import Demand, Reads
from ...machine.memory_policy import memory_nodes, zone_list
from ...machine.threads import Workers
from .costs import ErisCosts, InstructionCounts
from .index import (
    WORD_BYTES,
    ArrayTree,
    Hits,
    Popularity,
    Regions,
    placed_regions,
    scattered_regions,
    tree_of,
    with_page_walks,
)
from .partitions import ColumnPartitions, IndexPartitions
from .spec import ErisSystem

Operations = list[ResolvedOperation]
Partitions = Mapping[str, IndexPartitions | ColumnPartitions]

# Steps of a worker's loop.
WALK, SCAN, GENERATE = "walking the index", "scanning", "making keys"
ISSUE, RECEIVE = "making and routing commands", "receiving commands"


class ErisDemands(ABC):
    """Demands of a scenario's workers; all figures come from the cost model.

    ``facts``: what the last demand was made from, by object, for the record. ``shared``: whether
    any worker uses all of an object.
    """

    shared: ClassVar[bool] = False

    def __init__(
        self,
        costs: ErisCosts,
        workers: Workers,
        system: ErisSystem,
        objects: Mapping[str, DataObject],
    ) -> None:
        self.costs, self.workers, self.system, self.objects = costs, workers, system, objects
        self.trees = {
            name: tree_of(
                stored,
                system.inline_values.value,
                native=costs.implementation.array_tree,
                shared=self.shared,
                step_lines=costs.level_lines,
            )
            for name, stored in objects.items()
            if stored.kind == "index"
        }
        self.overlap = overlap_of(costs, system.page_size.value)
        self.core_rate = costs.instructions_per_s[workers.core_node]
        self.worker_rate = costs.instructions_per_s[workers.node]
        self.facts: dict[str, Any] = {}
        n = len(costs.machine.nodes)
        self.reach = costs.tlb_pages(system.page_size.value)
        self.cores_on_nodes = np.maximum(np.bincount(workers.core_node, minlength=n), 1.0)
        machine = costs.machine
        self.has_memory = np.isin(np.arange(n), memory_nodes(machine))
        # Where a node without memory keeps its data: where Linux would put it.
        self.home = np.array(
            [k if has else zone_list(machine, k)[0] for k, has in enumerate(self.has_memory)]
        )
        memory = system.memory
        if memory is not None and memory.policy != "local" and not self.shared:
            self.home = np.full(n, int(memory.shares(costs.machine).argmax()))

    @abstractmethod
    def demand(self, phase: PhaseState, time_s: float, partitions: Partitions) -> Demand:
        """The flows of ``phase``, ``time_s`` after its start, with data where they are now."""

    @abstractmethod
    def bytes_on_nodes(self, name: str, sizes: Floats) -> Floats:
        """(n,) bytes of an object's keys or entries, ``sizes`` (A,) of which each worker has."""

    def stored_bytes(self, name: str) -> float:
        """Bytes of memory per key or entry."""
        stored = self.objects[name]
        return (
            stored.entry_size.value if stored.kind == "column" else self.trees[name].bytes_per_key
        )

    def _by_object(self, phase: PhaseState) -> dict[str, Operations]:
        return by_key((operation.object, operation) for operation in phase.asked)

    def _walk_instructions(self, name: str, operation: ResolvedOperation) -> float:
        counts, tree = self.costs.instructions, self.trees[name]
        if operation.kind == "route":
            return 0.0 if self.shared else counts.gather
        level, entry = counts.tree_level, counts.tree_entry
        if self._changes_tree(name, operation):
            entry = counts.upsert_shared if self.shared else counts.upsert_entry
            if counts.upsert_level is not None and not self.shared:
                level = counts.upsert_level
        steps = tree.levels + (1 if tree.far_bytes else 0)
        return steps * level + entry + self.copied_instructions(name)

    def _changes_tree(self, name: str, operation: ResolvedOperation) -> bool:
        """Whether it is an upsert that writes to the tree. A value out of line is overwritten where
        it lies, and its key only looked up.
        """
        return operation.kind == "upsert" and not self.trees[name].far_bytes

    def copied_instructions(self, name: str) -> float:
        """Of copying a value: what is beyond its first word, by the line."""
        more_bytes = max(self.objects[name].value_size.value - WORD_BYTES, 0.0)
        return more_bytes / LINE_BYTES * self.costs.instructions.flush_line

    def _regions(
        self, name: str, spread: Popularity, keys: Floats, mass: Floats, sharers: Floats
    ) -> Regions:
        """Of an index whose ``keys`` are asked for with ``mass`` (n, Q), with its page table's."""
        regions_of = scattered_regions if spread.scattered else placed_regions
        regions = regions_of(self.trees[name], keys, mass)
        return with_page_walks(regions, self.system.page_size.value, self.reach, sharers)

    def _hits(
        self,
        of_indexes: Sequence[tuple[str, Regions]],
        scanned: Floats,
        *,
        sharers: int,
        buffers: tuple[Floats, Floats] | None = None,
    ) -> list[Hits]:
        """Hit probability of every region of these indexes in the caches of its node.

        ``scanned`` (n,): lines of columns that are scanned again and again. Where these stay in the
        last-level cache they leave the index what is over; else they pass through. Of shared data
        every cache sees whole regions; else they are divided among a node's caches. The last-level
        cache sees what the private ones miss; to an exclusive one their lines are added.
        ``buffers``: lines (n,) that routing uses, and how often (n,): they take room. ``sharers``:
        other last-level caches that may have a line.
        """
        regions = [one for _, one in of_indexes]
        if not regions:
            self.facts = {}
            return []
        costs, n = self.costs, len(self.costs.machine.nodes)
        lines = np.concatenate([r.lines.reshape(n, -1) for r in regions], axis=1)
        rate = np.concatenate([r.rate.reshape(n, -1) for r in regions], axis=1)
        if buffers is not None:
            lines, rate = (
                np.concatenate([part, of_buffers[:, None]], axis=1)
                for part, of_buffers in zip((lines, rate), buffers, strict=True)
            )
        private, last = costs.private_cache, costs.last_cache
        among = np.ones((2, n, 1))
        if not self.shared:
            for part, facts in zip(among, (private, last), strict=True):
                part[:, 0] = facts.instances(self.cores_on_nodes)
        in_private = hit_rates(lines / among[0], rate, private.lines)
        copies = self._private_per_last[:, None] if self.shared else 1.0
        above = (lines / among[1] * (1.0 - (1.0 - in_private) ** copies)).sum(axis=1)
        size = last.lines + np.where(last.exclusive, above, 0.0)
        taken = scanned / among[1, :, 0]
        room = np.where(taken <= size, size - taken, size)
        in_last = last_level_hits(lines / among[1], rate, in_private, room, last.exclusive)
        if buffers is not None:
            in_private, in_last = in_private[:, :-1], in_last[:, :-1]
        widths = np.cumsum([r.lines[0].size for r in regions])[:-1]
        found = [
            (name, r, Hits(a.reshape(r.lines.shape), b.reshape(r.lines.shape)))
            for (name, r), a, b in zip(
                of_indexes,
                np.split(in_private, widths, axis=1),
                np.split(in_last, widths, axis=1),
                strict=True,
            )
        ]
        self._note(found, sharers)
        return [hits for *_, hits in found]

    @property
    def _private_per_last(self) -> Floats:
        """(n,) private caches in use above each last-level cache."""
        costs, cores = self.costs, self.cores_on_nodes
        private, last = costs.private_cache.instances(cores), costs.last_cache.instances(cores)
        return np.asarray(private / last)

    @property
    def _scan_room(self) -> Floats:
        """(n,) lines that a last-level cache keeps of what is scanned again and again; an exclusive
        one with those above it, each of which has others.
        """
        private, last = self.costs.private_cache, self.costs.last_cache
        above = private.lines * self._private_per_last
        return np.asarray(last.lines + np.where(last.exclusive, above, 0.0))

    def _note(self, found: Sequence[tuple[str, Regions, Hits]], sharers: int) -> None:
        """Keeps what the caches hold of each index, as averages over all nodes in use."""
        self.facts = {}
        nodes = np.unique(self.workers.node)
        for name in dict.fromkeys(name for name, *_ in found):
            tree = self.trees[name]
            rows = tree.rows
            operations, hits, shared = 0.0, 0.0, 0.0
            missed, walks = np.zeros(2 * rows), 0.0
            for regions, hit in ((r, h) for of, r, h in found if of == name):
                rate, last = regions.rate[nodes], hit.last[nodes]
                accesses = rate * (1.0 - hit.private[nodes])
                met = (accesses * last)[:, :rows]
                operations += float((rate[:, :rows].sum(axis=(0, 2)) / tree.row_lines).max())
                hits += float(met.sum())
                shared += float((met * shared_state(last[:, :rows], sharers)).sum())
                missed += (accesses * (1.0 - last)).sum(axis=(0, 2))
                walks += float(rate[:, rows:].sum())
            missed, walks = missed / max(operations, 1e-300), walks / max(operations, 1e-300)
            self.facts[name] = {
                "tree_levels": tree.levels,
                "bytes_per_key": tree.bytes_per_key,
                "missed_by_level": missed[:rows].tolist(),
                "lines_missed_per_operation": float(missed.sum()),
                "page_table_lines_missed_per_operation": float(missed[rows:].sum()),
                "page_walks_per_operation": walks,
                "hits_on_shared_or_forward_lines": shared / max(hits, 1e-300),
            }

    def _scanned_lines(
        self,
        name: str,
        scan: ResolvedOperation,
        entries: Floats,
        flushed: Floats | float = 0.0,
        looped: float = 0.0,
    ) -> tuple[Floats, Floats, Floats]:
        """Lines read, instructions, and lines of results that go to memory, of a scan over
        ``entries`` of each worker that holds some.

        Instructions that the plane itself plays: ``flushed``, of handing a scan to another worker;
        ``looped``, of the round in which it is made.
        """
        counts = self.costs.instructions
        entry_bytes = self.objects[name].entry_size.value
        lines = entries * entry_bytes / LINE_BYTES
        per_line = counts.scan_line(scan.result, entry_bytes, scan.selectivity)
        result_bytes = {"sum": 0.0, "bitmap": 1 / 8, "positions": 4.0 * scan.selectivity}
        kept = 0.0 if self.costs.implementation.cached_results else 1.0
        results = kept * entries * result_bytes[scan.result] / LINE_BYTES
        others = max(np.count_nonzero(entries > 0) - 1.0, 0.0)
        handed = others * np.maximum(counts.scan_handed - flushed, 0.0)
        own = max(counts.scan - looped, 0.0)
        fixed = np.where(entries > 0, own + handed, 0.0)
        return lines, fixed + lines * per_line, results

    def _in_last_cache(self, lines: Floats, node: Ints) -> tuple[Floats, Floats]:
        """Of ``lines`` (…) that scans on these nodes (…) find in the last cache: instructions, and
        lines that hold slots of misses: one of the two, see ``ErisCosts.scan_from_last_s``.
        """
        longer_s = self.costs.scan_from_last_s(self.workers.core_node)
        if longer_s is None:
            return 0.0 * lines, lines
        return lines * (longer_s * self.costs.instructions_per_s)[node], 0.0 * lines

    def _hit_s(self, last: Floats, private: Floats, *, stream: bool = False) -> Floats:
        """(C,) time that hits in last-level and private caches hold a core's miss slots."""
        costs, node = self.costs, self.workers.core_node
        mlp = costs.streaming_misses if stream else costs.walk_misses_of(node)
        held = last * costs.last_cache.latency_s[node]
        held = held + private * costs.private_cache.latency_s[node]
        return np.asarray(held / mlp[node])


def walking(operations: Operations) -> Operations:
    """Those that walk down an index."""
    return [operation for operation in operations if operation.kind != "route"]


def some(*reads: Reads) -> tuple[Reads, ...]:
    """Those of ``reads`` that read anything."""
    return tuple(part for part in reads if part.weight.any())


NOTHING_S = 1e-15  # a thousandth of what planes count in
CACHED_MAX = 4


@dataclass(frozen=True)
class Curve:
    """Points (P,): time that a key's misses hold, and what it takes beyond its instructions."""

    held_s: Floats
    more_s: Floats

    def at(self, held_s: Floats) -> Floats:
        """(…,) what a key takes beyond its instructions; beyond the last point, in proportion."""
        found = np.interp(held_s, self.held_s, self.more_s)
        beyond = held_s / self.held_s[-1]
        return np.asarray(np.where(beyond > 1.0, self.more_s[-1] * beyond, found))


@dataclass(frozen=True)
class Overlap:
    """The curves of lookups and of upserts."""

    lookup: Curve
    upsert: Curve

    def slot_factor(self, held_s: Floats, core_s: Floats, upserts: Floats) -> Floats:
        """(…,) factor on ``held_s`` so that the longer of it and ``core_s`` is what a key takes.

        ``upserts`` (…,): the part of the operations that write to the tree.
        """
        more_s = (1.0 - upserts) * self.lookup.at(held_s)
        more_s = more_s + upserts * self.upsert.at(held_s)
        takes_s = core_s + more_s
        found = np.divide(takes_s, held_s, out=np.ones_like(held_s), where=held_s > NOTHING_S)
        # Where misses make nothing longer, they are not longer than the instructions.
        return np.where(more_s > 0, found, np.minimum(found, 1.0))


# Machines hold arrays, which have no hash; none of them changes.
_CACHED: deque[tuple[Machine, InstructionCounts, float, Overlap | None]] = deque(maxlen=CACHED_MAX)


def overlap_of(costs: ErisCosts, page_bytes: float) -> Overlap | None:
    """The curves of the machine as it was measured, None where it was not.

    Those of the machines asked for last are kept: a calibration asks for one machine from many
    scenarios, what-ifs from one scenario again and again.
    """
    costs = costs.unscaled
    for machine, counted, page, known in _CACHED:
        if machine is costs.machine and counted is costs.counted and page == page_bytes:
            return known
    found = _overlap(costs, page_bytes)
    _CACHED.append((costs.machine, costs.counted, page_bytes, found))
    return found


def _overlap(costs: ErisCosts, page_bytes: float) -> Overlap | None:
    walk = costs.facts.walk if costs.facts is not None else ()
    if len(walk) < 2:
        return None
    sizes = [point.keys for point in walk]
    counts = costs.instructions
    level = counts.tree_level
    lookup = _curve(costs, sizes, [point.lookup.value for point in walk], page_bytes, level, 1.0)
    level = counts.tree_level if counts.upsert_level is None else counts.upsert_level
    # What is changed is written back.
    upsert = _curve(costs, sizes, [point.upsert.value for point in walk], page_bytes, level, 2.0)
    return Overlap(lookup, upsert)


def _curve(
    costs: ErisCosts,
    sizes: Sequence[int],
    times: Sequence[float],
    page_bytes: float,
    level: float,
    passed: float,
) -> Curve:
    """Of indexes of these sizes, a key of which took these times; ``level``: instructions of one;
    ``passed``: lines that the memory moves for each that misses.
    """
    from scipy.optimize import isotonic_regression  # slow to load: only where a host was measured

    node = costs.first_node or 0
    levels = np.array([ArrayTree(keys).levels for keys in sizes])
    levels_s = levels * level / costs.instructions_per_s[node]
    takes_s = np.array(times)
    found = [_misses(costs, node, keys, page_bytes) for keys in sizes]
    held, lines = np.array(found).T
    # Levels are instructions, which count elsewhere, and so is all of a key in the first cache.
    near = _in_first_cache(costs, node, sizes)
    core_s = levels_s + float(np.median((takes_s - levels_s)[near]))
    # It loaded the memory itself: what it would take without.
    load = passed * lines * LINE_BYTES / takes_s / costs.memory_Bps[node]
    wait_s = np.array([costs.memory_wait_s(np.full(len(costs.cores), x))[node] for x in load])
    loaded_s = held + lines * wait_s / costs.walk_misses[node]
    takes_s = takes_s * np.divide(held, loaded_s, out=np.ones_like(held), where=loaded_s > 0)
    # More misses never take less: single sizes may have been measured in a bad moment.
    more_s = isotonic_regression(np.maximum(takes_s - core_s, 0.0)).x
    rising = np.maximum.accumulate(held)
    # Points with misses alike: the largest index of them.
    last = np.append(np.diff(rising) > 0, True)
    return Curve(rising[last], more_s[last])


def _in_first_cache(costs: ErisCosts, node: int, sizes: Sequence[int]) -> Flags:
    """Which of these indexes lie in a core's first cache; the smallest one in any case."""
    caches = costs.machine.nodes[node].caches
    room_bytes = caches[0].size_bytes if caches else 0.0
    found = np.array([keys * ArrayTree(keys).bytes_per_key <= room_bytes for keys in sizes])
    found[0] = True
    return found


def _misses(costs: ErisCosts, node: int, keys: int, page_bytes: float) -> tuple[float, float]:
    """Of a lookup by the only core at work: time that its misses hold its slots, idle, and lines
    from memory.
    """
    private, last = costs.private_cache, costs.last_cache
    in_private, in_last, from_memory = _found(
        keys,
        page_bytes,
        float(costs.tlb_pages(page_bytes)[node]),
        float(private.lines[node]),
        float(last.lines[node]),
        bool(last.exclusive[node]),
    )
    held_s = in_private * private.latency_s[node]
    held_s += in_last * last.latency_s[node]
    held_s += from_memory * np.nanmin(costs.idle_s[node])
    return float(held_s / costs.walk_misses[node]), from_memory


@lru_cache(maxsize=4096)
def _found(
    keys: int, page_bytes: float, reach: float, private: float, last: float, exclusive: bool
) -> tuple[float, float, float]:
    """Lines that a lookup by the only core at work finds in its private caches, in the last one,
    and in memory. ``reach``: pages that the TLB knows; of each cache: lines that it has room for.

    Kept, as a calibration asks again and again: it moves latencies, of which this knows nothing.
    """
    regions = with_page_walks(
        placed_regions(ArrayTree(keys), np.full((1, 1), float(keys)), np.ones((1, 1))),
        page_bytes,
        np.array([reach]),
        np.ones(1),
    )
    lines, rate = regions.lines.reshape(1, -1), regions.rate.reshape(1, -1)
    hits = hit_rates(lines, rate, np.array([private]))
    missed = rate * (1.0 - hits)
    room = last + exclusive * float((lines * hits).sum())
    met = last_level_hits(lines, rate, hits, np.array([room]), np.array([exclusive]))
    return (
        float((rate * hits).sum()),
        float((missed * met).sum()),
        float((missed * (1.0 - met)).sum()),
    )
