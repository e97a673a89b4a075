"""What ERIS's operations demand: partitioned over its workers, or shared by all of them.

A unit of work is one operation of the workload's mix. Hyper-threads are taken to share their core's
issue slots without gain or loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...workloads.schema import DataObject
from ...workloads.workload import PhaseState, ResolvedOperation
from ..caches import hit_rates, shared_state
from ..costs import LINE_BYTES, CostModel
from ..demands import Demand, Reads, Routing, Step, TransferDemand
from ..sums import group_sums
from ..system import ErisSystem
from .index import (
    Hits,
    Popularity,
    Regions,
    Walk,
    place_classes,
    placed_regions,
    popularities,
    scattered_regions,
    tree_of,
    walk_of,
    with_page_walks,
)
from .partitions import ColumnPartitions, IndexPartitions
from .workers import Workers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Operations = list[ResolvedOperation]
Partitions = Mapping[str, IndexPartitions | ColumnPartitions]

# A node of the partition table's CSB+-tree: a cache line with 7 bounds and a pointer.
TABLE_FANOUT = 8

SHARED_FLOWS_MAX = 128

WALK, SCAN, GENERATE = "walking the index", "scanning", "making keys"


class ErisDemands:
    """Demands of one scenario's workers; all figures come from the cost model.

    ``facts``: what the last demand was made from, by object, for the record.
    """

    def __init__(
        self,
        costs: CostModel,
        workers: Workers,
        system: ErisSystem,
        objects: Mapping[str, DataObject],
    ) -> None:
        self.costs, self.workers, self.system, self.objects = costs, workers, system, objects
        self.trees = {
            name: tree_of(stored) for name, stored in objects.items() if stored.kind == "index"
        }
        self.core_rate = costs.instructions_per_s[workers.core_node]
        self.facts: dict[str, Any] = {}
        n = len(costs.machine.nodes)
        self._reach = costs.tlb_pages(system.page_size.value)
        self._cores_on_nodes = np.maximum(np.bincount(workers.core_node, minlength=n), 1.0)
        nodes = costs.machine.nodes
        has_memory = np.array([not node.memory_bytes <= 0 for node in nodes])
        distance = np.where(has_memory[None, :], costs.latency_s, np.inf)
        # Where a node without memory keeps its data: the nearest one with.
        self.home = np.where(has_memory, np.arange(len(nodes)), np.argmin(distance, axis=1))
        self.has_memory = has_memory

    # -- partitioned: ERIS itself -----------------------------------------------------------------

    def partitioned(self, phase: PhaseState, time_s: float, partitions: Partitions) -> Demand:
        """One flow over all workers: a command goes to the one that owns its key or entries.

        ``time_s``: since the phase's start.
        """
        costs, workers = self.costs, self.workers
        n = len(costs.machine.nodes)
        local = np.zeros((n, n))
        local[np.arange(n), self.home] = 1.0
        instructions, hits, private, misses = (np.zeros(workers.count) for _ in range(4))
        streamed, dirty = np.zeros(workers.count), np.zeros(workers.count)
        executed = np.zeros(workers.count)
        walks = self._walks(phase, time_s, partitions)
        scanned, scan_hits = np.zeros(workers.count), np.zeros(workers.count)
        for name, operations in self._by_object(phase).items():
            part = partitions[name]
            if isinstance(part, ColumnPartitions):
                for scan in operations:
                    lines, done, results = self._scanned_lines(name, scan, part.sizes())
                    scanned += scan.share * done
                    missed, met = self._scan_hits(lines, self._on_nodes(lines))
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
        written = np.zeros(n)
        np.add.at(written, self.home[workers.node], dirty * LINE_BYTES)
        walk_reads = _some(Reads(self._per_core(misses)[None], local))
        walk_step = self._step(WALK, instructions, hits, private, walk_reads)
        streams = _some(Reads(self._per_core(streamed)[None], local, stream=True))
        scan_step = self._step(SCAN, scanned, scan_hits, 0.0 * hits, streams, stream=True)
        return Demand(
            rates={name: operation.share for name, operation in phase.operations.items()},
            steps=tuple(s for s in (walk_step, scan_step) if s.core_s.any()),
            written_bytes=written[None],
            cap=np.array([np.inf]),
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
        return part.shares(place_classes(operation.keys, time_s))

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
                    share = part.sizes() / part.keys
                    keys, mass = share[:, None] * classes.keys, share[:, None] * classes.mass
                else:
                    keys, mass = part.classes(classes)
                regions_of = scattered_regions if spread.scattered else placed_regions
                on_node = np.zeros((2, n, classes.count))
                np.add.at(on_node[0], self.workers.node, keys)
                np.add.at(on_node[1], self.workers.node, spread.weight * mass)
                regions = with_page_walks(
                    regions_of(self.trees[name], on_node[0], on_node[1]),
                    self.system.page_size.value,
                    self._reach,
                    self._cores_on_nodes,
                )
                accesses = spread.weight * (
                    mass.sum(axis=1, keepdims=True) if spread.scattered else mass
                )
                pending.append((name, spread, accesses, regions))
        found: dict[str, list[tuple[Floats, Walk]]] = {}
        hits = self._hits([regions for *_, regions in pending], shared=False)
        for (name, spread, accesses, regions), hit in zip(pending, hits, strict=True):
            rows = self.trees[name].levels + 1
            walk = walk_of(regions, hit, rows, scattered=spread.scattered)
            found.setdefault(name, []).append((accesses, walk))
            self._note(name, regions, hit, sharers=0)
        return found

    # -- shared: the baselines --------------------------------------------------------------------

    def shared(self, phase: PhaseState, time_s: float) -> Demand:
        """A flow for each node in use: its workers do whole operations on data that all share.

        On more than ``SHARED_FLOWS_MAX`` nodes one flow of all: nodes are taken to be equally fast.
        """
        costs, workers = self.costs, self.workers
        n, generate = len(costs.machine.nodes), costs.instructions.generate
        in_use = np.unique(workers.node)
        lines = np.tile(self.shared_homes, (n, 1))
        instructions, misses, hits, private, dirty = self._shared_index(
            phase, time_s, len(in_use) - 1
        )
        scanned, streamed, stored, asked = np.zeros(n), np.zeros(n), np.zeros(n), 0.0
        for name, operations in self._by_object(phase).items():
            if self.objects[name].kind != "column":
                asked += sum(o.share for o in operations)
                continue
            for scan in operations:
                entries = np.array([float(self.objects[name].entries or 0)])
                read, done, results = self._scanned_lines(name, scan, entries)
                scanned += scan.share * done
                streamed += scan.share * read
                stored += scan.share * results
        # (F, C) the part of a node's work that each of its cores does.
        share = (workers.core_node == in_use[:, None]) / self._cores_on_nodes[in_use, None]
        nodes = np.ones((1, len(in_use))) / len(in_use)  # of one flow, should there be too many
        if len(in_use) > SHARED_FLOWS_MAX:
            share = nodes @ share
        else:
            nodes = np.eye(len(in_use))
        node = workers.core_node
        none = np.zeros_like(share)
        own = np.eye(n)[self.home]
        steps = (
            Step(GENERATE, share * asked * generate / self.core_rate, none, ()),
            Step(
                WALK,
                share * instructions[node] / self.core_rate,
                share * self._hit_s(hits[node], private[node]),
                _some(Reads(share * misses[node], lines)),
            ),
            Step(
                SCAN,
                share * scanned[node] / self.core_rate,
                none,
                _some(
                    Reads(share * streamed[node], lines, stream=True),
                    Reads(share * stored[node], own, stream=True),
                ),
            ),
        )
        written = dirty[in_use, None] * lines[in_use] + stored[in_use, None] * own[in_use]
        return Demand(
            rates={name: o.share for name, o in phase.operations.items()},
            steps=tuple(step for step in steps if step.core_s.any()),
            written_bytes=LINE_BYTES * nodes @ written,
            cap=np.full(len(share), np.inf),
        )

    @cached_property
    def shared_homes(self) -> Floats:
        """(n,) part of the shared data that lies on each node; the sum is 1."""
        machine = self.costs.machine
        homes = np.zeros(len(machine.nodes))
        if self.system.placement == "single-ram":
            homes[self.system.home_position(machine)] = 1.0
            return homes
        in_use = np.unique(self.workers.node)
        able = in_use[self.has_memory[in_use]]
        homes[able if len(able) else np.flatnonzero(self.has_memory)] = 1.0
        return np.asarray(homes / homes.sum())

    def _shared_index(
        self, phase: PhaseState, time_s: float, others: int
    ) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """(n,) instructions, misses, hits in last and private caches, and dirty lines, per unit of
        work done on each node.
        """
        n = len(self.costs.machine.nodes)
        instructions, misses, hits, private, dirty = (np.zeros(n) for _ in range(5))
        pending: list[tuple[str, Operations, Popularity, Regions]] = []
        for name, operations in self._by_object(phase).items():
            if self.objects[name].kind != "index":
                continue
            for operation in operations:
                instructions += operation.share * self._walk_instructions(
                    name, operation, shared=True
                )
            for spread in popularities(operations, time_s):
                keys = np.tile(spread.classes.keys, (n, 1))
                mass = np.tile(spread.weight * spread.classes.mass, (n, 1))
                regions_of = scattered_regions if spread.scattered else placed_regions
                regions = with_page_walks(
                    regions_of(self.trees[name], keys, mass),
                    self.system.page_size.value,
                    self._reach,
                    np.ones(n),
                )
                pending.append((name, operations, spread, regions))
        found = self._hits([regions for *_, regions in pending], shared=True)
        for (name, operations, spread, regions), hit in zip(pending, found, strict=True):
            rows = self.trees[name].levels + 1
            upserts = sum(o.share for o in operations if o.kind == "upsert")
            upserts /= sum(o.share for o in operations)
            # An entry that another node has written since is not found in the own caches: with
            # accesses at one rate from each node, the own one is first with this probability.
            for own in (hit.private, hit.last):
                own[:, rows - 1] /= 1.0 + others * upserts
            walk = walk_of(regions, hit, rows, scattered=spread.scattered)
            mass = spread.weight * (np.ones(1) if spread.scattered else spread.classes.mass)
            misses += walk.misses @ mass
            hits += walk.hits @ mass
            private += walk.private_hits @ mass
            dirty += upserts * walk.entry_misses @ mass
            self._note(name, regions, hit, sharers=others)
        return instructions, misses, hits, private, dirty

    # -- transfers --------------------------------------------------------------------------------

    def transfer(self, name: str, source: Ints, target: Ints) -> TransferDemand:
        """Copies from workers ``source`` to workers ``target`` (T,) on other nodes.

        An index is flattened by its owner, streamed, and rebuilt by the target; a column is copied
        by the target, a line at a time.
        """
        counts, stored = self.costs.instructions, self.objects[name]
        if stored.kind == "column":
            moved = stored.entry_size.value / LINE_BYTES
            per_unit = (0.0, moved * counts.flush_line, 0.0, moved, moved)
        else:
            tree = self.trees[name]
            whole, flat = tree.bytes_per_key / LINE_BYTES, tree.entry_bytes / LINE_BYTES
            per_unit = (counts.flatten_key, counts.rebuild_key, whole, flat, whole)
        at_source, at_target, *lines = (np.full(len(source), part) for part in per_unit)
        core, rate = self.workers.core, self.core_rate
        source, target = core[source], core[target]
        return TransferDemand(
            source, target, at_source / rate[source], at_target / rate[target], *lines
        )

    def transfer_bytes(self, name: str) -> float:
        """Bytes that cross the machine per key or entry of a copy."""
        stored = self.objects[name]
        if stored.kind == "column":
            return stored.entry_size.value
        return self.trees[name].entry_bytes

    def stored_bytes(self, name: str) -> float:
        """Bytes of memory per key or entry."""
        stored = self.objects[name]
        return (
            stored.entry_size.value if stored.kind == "column" else self.trees[name].bytes_per_key
        )

    # -- parts of both ----------------------------------------------------------------------------

    def _by_object(self, phase: PhaseState) -> dict[str, Operations]:
        found: dict[str, Operations] = {}
        for operation in phase.operations.values():
            found.setdefault(operation.object, []).append(operation)
        return found

    def _walk_instructions(
        self, name: str, operation: ResolvedOperation, *, shared: bool = False
    ) -> float:
        counts, tree = self.costs.instructions, self.trees[name]
        if operation.kind == "lookup":
            entry = counts.tree_entry
        else:
            entry = counts.upsert_shared if shared else counts.upsert_entry
        return tree.levels * counts.tree_level + entry

    def _hits(self, regions: Sequence[Regions], *, shared: bool) -> list[Hits]:
        """Hit probability of every region in the caches of its node.

        ``shared``: every cache sees whole regions; else they are divided among a node's caches. The
        last-level cache sees what the private ones miss.
        """
        if not regions:
            return []
        costs, n = self.costs, len(self.costs.machine.nodes)
        lines = np.concatenate([r.lines.reshape(n, -1) for r in regions], axis=1)
        rate = np.concatenate([r.rate.reshape(n, -1) for r in regions], axis=1)
        among = 1.0 if shared else costs.private_cache.instances[:, None]
        private = hit_rates(lines / among, rate, costs.private_cache.lines)
        last_lines = costs.last_cache.lines * costs.last_cache.instances
        last = hit_rates(lines, rate * (1.0 - private), last_lines)
        widths = np.cumsum([r.lines[0].size for r in regions])[:-1]
        return [
            Hits(a.reshape(r.lines.shape), b.reshape(r.lines.shape))
            for r, a, b in zip(
                regions,
                np.split(private, widths, axis=1),
                np.split(last, widths, axis=1),
                strict=True,
            )
        ]

    def _note(self, name: str, regions: Regions, hits: Hits, *, sharers: int) -> None:
        """Keeps what the caches hold of an index, as averages over all nodes in use."""
        nodes, rows = np.unique(self.workers.node), self.trees[name].levels + 1
        rate, private, last = regions.rate[nodes], hits.private[nodes], hits.last[nodes]
        asked = rate * (1.0 - private)
        found = asked * last
        in_tree = found[:, :rows]
        shared = in_tree * shared_state(last[:, :rows], sharers)
        operations = rate[:, :rows].sum(axis=(0, 2)).max()
        per_row = (asked - found).sum(axis=(0, 2)) / max(operations, 1e-300)
        self.facts[name] = {
            "tree_levels": self.trees[name].levels,
            "bytes_per_key": self.trees[name].bytes_per_key,
            "missed_by_level": per_row[:rows].tolist(),
            "lines_missed_per_operation": float(per_row.sum()),
            "page_table_lines_missed_per_operation": float(per_row[rows:].sum()),
            "page_walks_per_operation": float(rate[:, rows:].sum() / max(operations, 1e-300)),
            "hits_on_shared_or_forward_lines": float(shared.sum() / max(in_tree.sum(), 1e-300)),
        }

    def _scanned_lines(
        self, name: str, scan: ResolvedOperation, entries: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Lines read, instructions, and lines of results, of a scan over ``entries``."""
        entry_bytes = self.objects[name].entry_size.value
        lines = entries * entry_bytes / LINE_BYTES
        per_line = self.costs.instructions.scan_line(scan.result, entry_bytes, scan.selectivity)
        result_bytes = {"sum": 0.0, "bitmap": 1 / 8, "positions": 4.0 * scan.selectivity}
        results = entries * result_bytes[scan.result] / LINE_BYTES
        return lines, lines * per_line, results

    def _scan_hits(self, lines: Floats, on_node: Floats) -> tuple[Floats, Floats]:
        """Lines that a repeated scan misses, and hits: all or nothing, as it goes round."""
        last = self.costs.last_cache
        fits = (on_node <= last.lines * last.instances)[self.workers.node]
        return np.where(fits, 0.0, lines), np.where(fits, lines, 0.0)

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
        return Step(name, core_s[None], hit_s[None], reads)

    def _hit_s(self, last: Floats, private: Floats, *, stream: bool = False) -> Floats:
        """(C,) time that hits in last-level and private caches hold a core's miss slots."""
        costs, node = self.costs, self.workers.core_node
        mlp = costs.streaming_misses if stream else costs.random_misses
        held = last * costs.last_cache.latency_s[node]
        held = held + private * costs.private_cache.latency_s[node]
        return np.asarray(held / mlp[node])


def _some(*reads: Reads) -> tuple[Reads, ...]:
    return tuple(part for part in reads if part.weight.any())


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
