"""Demands of ERIS itself: every worker owns partitions, commands travel to the data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...workloads.workload import PhaseState, ResolvedOperation
from ..costs import LINE_BYTES
from ..demands import Demand, Reads, Routing, Step, TransferDemand
from ..sums import group_sums
from .index import (
    Popularity,
    Regions,
    Walk,
    placed_regions,
    popularities,
    scattered_regions,
    walk_of,
    with_page_walks,
)
from .partitions import ColumnPartitions, IndexPartitions
from .parts import SCAN, WALK, ErisDemands, Partitions, some

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# A node of the partition table's CSB+-tree: a cache line with 7 bounds and a pointer.
TABLE_FANOUT = 8


class PartitionedDemands(ErisDemands):
    """One flow of all workers, held by the one that has most to do."""

    def demand(self, phase: PhaseState, time_s: float, partitions: Partitions) -> Demand:
        """One flow over all workers: a command goes to the one that owns its key or entries."""
        costs, workers = self.costs, self.workers
        n = len(costs.machine.nodes)
        local = np.zeros((n, n))
        local[np.arange(n), self.home] = 1.0
        instructions, hits, private, misses = (np.zeros(workers.count) for _ in range(4))
        streamed, dirty = np.zeros(workers.count), np.zeros(workers.count)
        executed = np.zeros(workers.count)
        walks = self._walks(phase, time_s, partitions)
        scanned, scan_hits = np.zeros(workers.count), np.zeros(workers.count)
        fits = self._scans_fit(phase, partitions)
        for name, operations in self._by_object(phase).items():
            part = partitions[name]
            if isinstance(part, ColumnPartitions):
                for scan in operations:
                    lines, done, results = self._scanned_lines(name, scan, part.sizes())
                    scanned += scan.share * done
                    missed, met = np.where(fits, 0.0, lines), np.where(fits, lines, 0.0)
                    streamed += scan.share * (missed + results)
                    scan_hits += scan.share * met
                    dirty += scan.share * results
                continue
            for mass, walk in walks[name]:
                on = walk_rows(walk, workers.node)
                misses += (mass * on.misses).sum(axis=1)
                hits += (mass * on.hits).sum(axis=1)
                private += (mass * on.private_hits).sum(axis=1)
                upserts = sum(o.share for o in operations if o.kind == "upsert")
                share = upserts / sum(o.share for o in operations)
                dirty += share * (mass * on.entry_misses).sum(axis=1)
            for operation in operations:
                owned = self._owned(operation, time_s, part)
                executed += operation.share * owned
                instructions += operation.share * owned * self._walk_instructions(name, operation)
        walk_reads = some(Reads(self._per_core(misses), local))
        walk_step = self._step(WALK, instructions, hits, private, walk_reads)
        streams = some(Reads(self._per_core(streamed), local, stream=True))
        scan_step = self._step(SCAN, scanned, scan_hits, 0.0 * hits, streams, stream=True)
        return Demand(
            flow_of=np.zeros(n, dtype=np.int64),
            steps=tuple(s for s in (walk_step, scan_step) if s.core_s.any()),
            writes=some(Reads(self._per_core(dirty), local)),
            batch=self.system.batch,
            routing=self._routing(executed),
        )

    def _routing(self, executed: Floats) -> Routing | None:
        """Routing of the commands that each worker executes (A,), per unit; None without any."""
        commands = float(executed.sum())
        if commands == 0:
            return None
        system, counts = self.system, self.costs.instructions
        per_flush = system.buffer_commands
        lines = system.command_size.value / LINE_BYTES
        answer = system.result_size.value / LINE_BYTES
        levels = table_levels(self.workers.count)
        flushes = (1 + (answer > 0)) / per_flush
        instructions = (
            counts.generate
            + levels * counts.route_level
            + counts.route_split
            + flushes * counts.flush_fixed
            + (lines + answer) * counts.flush_line
            + (counts.receive + counts.route_split if answer else 0.0)
        )
        return Routing(
            executed=self._per_core(executed) / commands,
            issue_s=self.costs.core_s(commands * instructions),
            receive_s=self.costs.core_s(commands * counts.receive),
            lines=commands * lines,
            answer_lines=commands * answer,
            # A flush reserves room in the incoming buffer, and takes its writer off again.
            atomics=commands * 2.0 * flushes,
        )

    def _owned(self, operation: ResolvedOperation, time_s: float, part: IndexPartitions) -> Floats:
        """(A,) share of an operation's keys that each worker owns."""
        assert operation.keys is not None
        return part.shares(operation.keys, time_s)

    def accesses(
        self, phase: PhaseState, time_s: float, partitions: Partitions
    ) -> dict[str, Floats]:
        """(A,) commands per unit of work that each worker executes, by object."""
        found = {}
        for name, operations in self._by_object(phase).items():
            part = partitions[name]
            if isinstance(part, ColumnPartitions):
                # A scan's command goes to everyone who has entries.
                each = (part.sizes() > 0).astype(float)
                found[name] = sum(o.share for o in operations) * each
            else:
                owned = [o.share * self._owned(o, time_s, part) for o in operations]
                found[name] = np.sum(owned, axis=0)
        return found

    def _walks(
        self, phase: PhaseState, time_s: float, partitions: Partitions
    ) -> dict[str, list[tuple[Floats, Walk]]]:
        """Per index: of each way to spread, (A, Q) accesses per unit of work, and the walk."""
        n = len(self.costs.machine.nodes)
        pending: list[tuple[str, Popularity, Floats, Regions]] = []
        for name, operations in self._by_object(phase).items():
            part = partitions[name]
            if isinstance(part, ColumnPartitions):
                continue
            for spread in popularities(operations, time_s):
                classes = spread.classes
                if spread.scattered:
                    keys = (part.sizes() / part.keys)[:, None] * classes.keys
                    mass = part.shares(spread.scattered, time_s)[:, None] * classes.mass
                else:
                    keys, mass = part.classes(classes)
                regions_of = scattered_regions if spread.scattered else placed_regions
                on_node = np.zeros((2, n, classes.count))
                np.add.at(on_node[0], self.workers.node, keys)
                np.add.at(on_node[1], self.workers.node, spread.weight * mass)
                regions = with_page_walks(
                    regions_of(self.trees[name], on_node[0], on_node[1]),
                    self.system.page_size.value,
                    self.reach,
                    self.cores_on_nodes,
                )
                accesses = spread.weight * (
                    mass.sum(axis=1, keepdims=True) if spread.scattered else mass
                )
                pending.append((name, spread, accesses, regions))
        found: dict[str, list[tuple[Floats, Walk]]] = {}
        scanned = self._scanned(phase, partitions)
        hits = self._hits([regions for *_, regions in pending], scanned, shared=False)
        noted = [
            (name, regions, hit) for (name, *_, regions), hit in zip(pending, hits, strict=True)
        ]
        self._note(noted, sharers=0)
        for (name, spread, accesses, regions), hit in zip(pending, hits, strict=True):
            rows = self.trees[name].levels + 1
            walk = walk_of(regions, hit, rows, scattered=spread.scattered is not None)
            found.setdefault(name, []).append((accesses, walk))
        return found

    def transfer(self, name: str, source: Ints, target: Ints) -> TransferDemand:
        """Copies from workers ``source`` to workers ``target`` (T,) on other nodes.

        An index is flattened by its owner, streamed, and rebuilt by the target; a column is copied
        by the target, a line at a time.
        """
        counts, stored = self.costs.instructions, self.objects[name]
        if stored.kind == "column":
            flat = stored.entry_size.value / LINE_BYTES
            per_unit = (0.0, flat * counts.flush_line, 0.0, flat, flat)
        else:
            tree = self.trees[name]
            whole, flat = tree.bytes_per_key / LINE_BYTES, tree.entry_bytes / LINE_BYTES
            per_unit = (counts.flatten_key, counts.rebuild_key, whole, flat, whole)
        at_source, at_target, read, moved, written = (
            np.full(len(source), part) for part in per_unit
        )
        core, rate = self.workers.core, self.core_rate
        nodes = self.workers.node
        return TransferDemand(
            source=core[source],
            target=core[target],
            source_home=self.home[nodes[source]],
            target_home=self.home[nodes[target]],
            source_s=at_source / rate[core[source]],
            target_s=at_target / rate[core[target]],
            source_lines=read,
            lines=moved,
            written_lines=written,
        )

    def transfer_bytes(self, name: str) -> float:
        """Bytes that cross the machine per key or entry of a copy."""
        stored = self.objects[name]
        if stored.kind == "column":
            return stored.entry_size.value
        return self.trees[name].entry_bytes

    def _scans_fit(self, phase: PhaseState, partitions: Partitions) -> npt.NDArray[np.bool_]:
        """(A,) whether all that is scanned on a worker's node stays in its caches: all or nothing,
        as scans go round.
        """
        last = self.costs.last_cache
        room = last.lines * last.instances(self.cores_on_nodes)
        return np.asarray((self._scanned(phase, partitions) <= room)[self.workers.node])

    def _scanned(self, phase: PhaseState, partitions: Partitions) -> Floats:
        """(n,) lines of all that is scanned on each node."""
        scanned = np.zeros(self.workers.count)
        for name in self._by_object(phase):
            part = partitions[name]
            if isinstance(part, ColumnPartitions):
                scanned += part.sizes() * self.stored_bytes(name) / LINE_BYTES
        return self._on_nodes(scanned)

    def _on_nodes(self, per_worker: Floats) -> Floats:
        n = len(self.costs.machine.nodes)
        return group_sums(self.workers.node, per_worker, n)

    def _per_core(self, per_worker: Floats) -> Floats:
        workers = self.workers
        return group_sums(workers.core, per_worker, workers.cores)

    def _step(
        self,
        name: str,
        instructions: Floats,
        hits: Floats,
        private: Floats,
        reads: tuple[Reads, ...],
        *,
        stream: bool = False,
    ) -> Step:
        """A step from instructions and cache hits (A,) per worker."""
        core_s = self._per_core(instructions) / self.core_rate
        hit_s = self._hit_s(self._per_core(hits), self._per_core(private), stream=stream)
        return Step(name, core_s, hit_s, reads)

    def bytes_on_nodes(self, name: str, sizes: Floats) -> Floats:
        """See ErisDemands."""
        n = len(self.costs.machine.nodes)
        return group_sums(self.home[self.workers.node], sizes * self.stored_bytes(name), n)


def walk_rows(walk: Walk, rows: Ints) -> Walk:
    """The walk of each worker's node: arrays (A, Q)."""
    return Walk(
        walk.misses[rows], walk.hits[rows], walk.private_hits[rows], walk.entry_misses[rows]
    )


def table_levels(partitions: int) -> int:
    """Levels of the partition table's tree over so many partitions."""
    levels, room = 1, TABLE_FANOUT
    while room < partitions:
        levels, room = levels + 1, room * TABLE_FANOUT
    return levels
