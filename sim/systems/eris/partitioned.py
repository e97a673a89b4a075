"""Demands of ERIS itself: every worker owns partitions, commands travel to the data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ....workloads.workload import PhaseState, ResolvedOperation
from ...kernel.arrays import Floats, Ints
from ...kernel.sums import group_sums
from ...machine.costs import LINE_BYTES
from ...machine.demands import Demand, Exchange, Gathered, Reads, Step, TransferDemand
from .index import Popularity, Regions, Walk, popularities, walk_of
from .partitions import ColumnPartitions, IndexPartitions
from .parts import ISSUE, RECEIVE, SCAN, WALK, ErisDemands, Partitions, some, walking
from .routing import (
    flush_square,
    flushes_per_command,
    part_headers,
    passed_on_per_flush,
    retries,
    routing_costs,
    takers_wait,
    under_one_header,
)
from .spec import ErisSystem

Part = TypeVar("Part", IndexPartitions, ColumnPartitions)

# Of who flushes, one for each of two atomic operations on the target's buffer.
FLUSH_WAITS = 2.0


@dataclass(frozen=True)
class CommandDemands:
    """What each command demands of the worker that executes it; arrays (O, A), in the order of the
    phase's operations. Of a scan: per line that it reads.

    ``core_s``: instructions; ``hit_s``: what caches deliver, slots of a core; ``lines``: what
    memory delivers, ``slots`` at a time for a core, none in longer than ``line_max_s``;
    ``memory_lines``: what the controller reads and writes, ``written`` how many of them it writes.
    ``scan_lines``: of a whole scan; 0 for operations by key.
    """

    core_s: Floats
    hit_s: Floats
    lines: Floats
    slots: Floats
    line_max_s: Floats
    memory_lines: Floats
    written: Floats
    scan_lines: Floats


@dataclass
class Walked:
    """What the commands of a unit of work on indexes find; arrays (A,), by worker.

    ``commands``, ``upserts`` that write to a tree among them; ``instructions``; lines from the last
    cache, ``private`` ones, and from memory (``misses``); ``dirty``: those that are written back.
    """

    commands: Floats
    upserts: Floats
    instructions: Floats
    hits: Floats
    private: Floats
    misses: Floats
    dirty: Floats


class PartitionedDemands(ErisDemands):
    """One flow of all workers, held by the one that has most to do."""

    def demand(self, phase: PhaseState, time_s: float, partitions: Partitions) -> Demand:
        """One flow over all workers: a command goes to the one that owns its key or entries."""
        costs, workers = self.costs, self.workers
        n = len(costs.machine.nodes)
        local = np.zeros((n, n))
        local[np.arange(n), self.home] = 1.0
        streamed, dirty, scanned, scan_hits = np.zeros((4, workers.count))
        missed, met = self._scan_sources(phase, partitions)
        for name, operations, part in self._on(ColumnPartitions, phase, partitions):
            for scan in operations:
                lines, done, results = self._scanned_lines(name, scan, part.sizes())
                longer, hit = self._in_last_cache(met * lines, workers.node)
                scanned += scan.share * (done + longer)
                streamed += scan.share * (missed * lines + results)
                scan_hits += scan.share * hit
                dirty += scan.share * results
        walks = self._walks(phase, time_s, partitions)
        walked = self._walked(phase, time_s, partitions, walks)
        executed, misses = walked.commands, walked.misses
        dirty += walked.dirty
        slot_factor = self._slot_factors(walked)
        on_core = self._per_core(misses)
        walk_step = self._step(
            WALK,
            walked.instructions,
            slot_factor * walked.hits,
            slot_factor * walked.private,
            some(Reads(on_core, local)),
        )
        per_core = np.divide(
            self._per_core(slot_factor * misses),
            on_core,
            out=np.ones_like(on_core),
            where=on_core > 0,
        )
        walk_step = replace(walk_step, slot_factor=per_core)
        streams = some(Reads(self._per_core(streamed), local, stream=True))
        scan_step = self._step(SCAN, scanned, scan_hits, 0.0 * scan_hits, streams, stream=True)
        return Demand(
            flow_of=np.zeros(n, dtype=np.int64),
            steps=tuple(s for s in (walk_step, scan_step) if s.core_s.any()),
            writes=some(Reads(self._per_core(dirty), local)),
            batch=self.system.batch,
            miss_instructions=costs.counted.tree_level,
            exchange=self._exchange(executed, phase) if executed.any() else None,
        )

    def _walked(
        self,
        phase: PhaseState,
        time_s: float,
        partitions: Partitions,
        walks: Mapping[str, list[tuple[Floats, Walk]]],
    ) -> Walked:
        """All commands of a unit of work, executed."""
        workers = self.workers
        found = Walked(*np.zeros((7, workers.count)))
        for name, operations, part in self._on(IndexPartitions, phase, partitions):
            for mass, walk in walks.get(name, ()):
                misses, hits, private, written = found_by(mass, walk, workers.node)
                found.misses += misses
                found.hits += hits
                found.private += private
                upserts = sum(o.share for o in operations if o.kind == "upsert")
                found.dirty += upserts / sum(o.share for o in walking(operations)) * written
            for operation in operations:
                owned = operation.share * self._owned(operation, time_s, part)
                found.commands += owned
                if self._changes_tree(name, operation):
                    found.upserts += owned
                found.instructions += owned * self._walk_instructions(name, operation)
        return found

    def _held_s(self, walked: Walked) -> Floats:
        """(A,) time that what was found holds a worker's slots, idle."""
        costs, node = self.costs.unscaled, self.workers.node
        held_s = walked.hits * costs.last_cache.latency_s[node]
        held_s += walked.private * costs.private_cache.latency_s[node]
        held_s += walked.misses * costs.idle_s[node, self.home[node]]
        return np.asarray(held_s / costs.walk_misses_of(self.workers.core_node)[node])

    def _slot_factors(self, walked: Walked) -> Floats:
        """(A,) factor on the time that misses hold a worker's slots; see ``Overlap``."""
        ones = np.ones(self.workers.count)
        if self.overlap is None:
            return ones
        commands = walked.commands
        each = np.divide(1.0, commands, out=np.zeros_like(ones), where=commands > 0)
        rate = self.costs.unscaled.instructions_per_s[self.workers.node]
        core_s = walked.instructions / rate
        return self.overlap.slot_factor(
            self._held_s(walked) * each, core_s * each, walked.upserts * each
        )

    def commands(self, phase: PhaseState, time_s: float, partitions: Partitions) -> CommandDemands:
        """What a command of each operation demands of each worker, on present partitions."""
        costs, workers = self.costs, self.workers
        node, order = workers.node, list(phase.operations.values())
        home = self.home[node]
        shape = (len(order), workers.count)
        found = CommandDemands(*(np.zeros(shape) for _ in range(8)))
        found.line_max_s[:] = np.inf
        random = costs.walk_misses_of(workers.core_node)[node]
        stream = costs.streaming_misses[node]
        last_s, private_s = costs.last_cache.latency_s[node], costs.private_cache.latency_s[node]
        walks = self._walks(phase, time_s, partitions)
        missed, met = self._scan_sources(phase, partitions)
        # Waits for lines of the other's of who flushes and who takes, and instructions.
        waits = FLUSH_WAITS + costs.read_waits
        flushed = (
            waits * costs.hand_overs.line_s[node, node] * self.worker_rate
            + costs.instructions.flush_fixed
        )
        for name, operations, column in self._on(ColumnPartitions, phase, partitions):
            for scan in operations:
                at = order.index(scan)
                lines, instructions, results = self._scanned_lines(
                    name, scan, column.sizes(), flushed, costs.instructions.round
                )
                longer, hit = self._in_last_cache(met * lines, node)
                each = 1.0 / np.maximum(lines, 1e-300)
                found.scan_lines[at] = lines
                found.core_s[at] = (instructions + longer) * each / self.worker_rate
                found.hit_s[at] = hit * each * last_s / stream
                found.lines[at] = missed + results * each
                found.slots[at] = stream
                found.line_max_s[at] = costs.streamed_s[node, home]
                found.written[at] = results * each
                found.memory_lines[at] = found.lines[at] + found.written[at]
        for name, operations, part in self._on(IndexPartitions, phase, partitions):
            owned = (o.share * self._owned(o, time_s, part) for o in walking(operations))
            commands = sum(owned, start=np.zeros(workers.count))
            per = np.divide(1.0, commands, out=np.zeros(workers.count), where=commands > 0)
            lines = np.zeros((4, workers.count))
            for mass, walk in walks.get(name, ()):
                lines += found_by(mass, walk, node) * per
            misses, hits, private, entries = lines
            for operation in operations:
                at = order.index(operation)
                found.slots[at] = random
                needed = self._walk_instructions(name, operation)
                found.core_s[at] = needed / self.worker_rate
                if operation.kind == "route":
                    continue
                one = np.ones(workers.count)
                changed = one * self._changes_tree(name, operation)
                none = np.zeros(workers.count)
                slot_factor = self._slot_factors(
                    Walked(one, changed, needed * one, hits, private, misses, none)
                )
                found.hit_s[at] = slot_factor * (hits * last_s + private * private_s) / random
                found.slots[at] = random / slot_factor
                found.lines[at] = misses
                found.written[at] = entries * (operation.kind == "upsert")
                found.memory_lines[at] = misses + found.written[at]
        return found

    def _exchange(
        self, executed: Floats, phase: PhaseState, gathered: Gathered | None = None
    ) -> Exchange:
        """Of the commands that each worker executes (A,), per unit of work; where workers issue
        fewer of them in a round than they may, as ``gathered``."""
        commands, count, system = float(executed.sum()), self.workers.count, self.system
        if gathered is not None:
            system = system.model_copy(update={"round_commands": round(gathered.messages)})
        costs = routing_costs(self.costs, system, count, phase)
        each_round = system.commands_per_round(count)
        round_ = each_round, system.buffer_commands, executed / commands
        flushes = flushes_per_command(*round_)
        # Answers go back in buffers of their own, as full.
        all_flushes = (1 + (costs.answer_lines > 0)) * flushes
        looped, flushed_per_s, swap_s, found = costs.looped, 0.0, np.zeros(1), float(each_round)
        if gathered is not None:
            found = gathered.found
            looped += costs.round * (gathered.looks - 1.0 / each_round)
            flushed_per_s = gathered.units_per_s * commands * all_flushes / count
            # Who takes what others have sent waits for its own buffer's descriptor.
            if not self.costs.hand_overs.own_cached:
                swap_s = np.diag(self.costs.hand_overs.line_s) / found
        waits = FLUSH_WAITS + retries(self.costs, self.workers.node, flushed_per_s)
        lines = costs.lines + costs.answer_lines
        answered = costs.receive if costs.answer_lines else 0.0
        on_core = self._per_core(executed) / commands
        parts = commands * self._per_core(self._parts(executed / commands, phase, system))
        return Exchange(
            names=(ISSUE, RECEIVE),
            received=on_core,
            make_s=self.costs.core_s(commands * (costs.issue + answered)),
            send_s=self.costs.core_s(
                commands * (all_flushes * costs.flush_fixed + lines * costs.flush_line)
            ),
            receive_s=self.costs.core_s(commands * (costs.receive + looped)) + commands * swap_s,
            more_s=parts * self.costs.core_s(costs.part)[self.workers.core_node],
            home=self.home,
            lines=commands * costs.lines,
            answer_lines=commands * costs.answer_lines,
            # A flush reserves room in the incoming buffer, and takes its writer off again.
            atomics=commands * waits * all_flushes,
            bursts=commands * all_flushes,
            burst_square=(lines / (1 + (costs.answer_lines > 0))) ** 2 * flush_square(*round_),
            waits=takers_wait(
                on_core,
                parts,
                (self.costs.read_waits, self.costs.part_waits),
                found / commands,
                system.incoming_commands(count) / commands,
                float(each_round * (count - 1)),
            ),
            passed_on=passed_on_per_flush(system) * flushes / costs.lines,
            gathers=each_round,
            gathering=lambda fewer: self._exchange(executed, phase, fewer),
        )

    def _parts(self, executed: Floats, phase: PhaseState, system: ErisSystem) -> Floats:
        """(A,) headers of parts of batches, per command, under which workers get their shares
        ``executed`` (A,); none where they cost nothing.
        """
        if not (self.costs.instructions.part or self.costs.part_waits):
            return np.zeros_like(executed)
        by_key = np.array([one.share for one in phase.asked if one.keys is not None])
        shares = np.outer(executed, by_key / by_key.sum())
        together = under_one_header(system, self.workers.count)
        found: Floats = part_headers(together, system.buffer_commands, shares).sum(axis=1)
        return found

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
        commands = np.zeros(self.workers.count)
        for name, operations, part in self._on(IndexPartitions, phase, partitions):
            for spread in popularities(walking(operations), time_s):
                classes = spread.classes
                if spread.scattered:
                    keys = (part.sizes() / part.keys)[:, None] * classes.keys
                    mass = part.shares(spread.scattered, time_s)[:, None] * classes.mass
                else:
                    keys, mass = part.classes(classes)
                on_node = np.zeros((2, n, classes.count))
                np.add.at(on_node[0], self.workers.node, keys)
                np.add.at(on_node[1], self.workers.node, spread.weight * mass)
                regions = self._regions(name, spread, on_node[0], on_node[1], self.cores_on_nodes)
                accesses = spread.weight * (
                    mass.sum(axis=1, keepdims=True) if spread.scattered else mass
                )
                pending.append((name, spread, accesses, regions))
            commands += sum(o.share * self._owned(o, time_s, part) for o in operations)
        hits = self._hits(
            [(name, regions) for name, *_, regions in pending],
            self._scanned(phase, partitions),
            sharers=0,
            buffers=self._buffers(commands),
        )
        found: dict[str, list[tuple[Floats, Walk]]] = {}
        for (name, spread, accesses, regions), hit in zip(pending, hits, strict=True):
            walk = walk_of(regions, hit, self.trees[name], scattered=spread.scattered is not None)
            found.setdefault(name, []).append((accesses, walk))
        return found

    def _buffers(self, executed: Floats) -> tuple[Floats, Floats]:
        """(n,) cache lines of all buffers of routing on each node, and (n,) how many of them a unit
        of work uses there, if the workers execute ``executed`` (A,) commands of it.

        Outgoing buffers, and the two incoming ones as far as a round fills them, also of workers on
        other nodes: who wrote a line of these keeps it until another one does. A command goes
        through a line of each.
        """
        system, count = self.system, self.workers.count
        line = system.command_size.value / LINE_BYTES
        workers = np.bincount(self.workers.node, minlength=len(self.costs.machine.nodes))
        elsewhere = 1.0 - workers[self.workers.node] / count
        incoming = 2 * system.commands_per_round(count) * (1.0 + elsewhere)
        on_node = self._on_nodes((count * system.buffer_commands + incoming) * line)
        return on_node, self._on_nodes(executed) * 2 * line

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
            whole, flat = tree.bytes_per_key / LINE_BYTES, tree.pair_bytes / LINE_BYTES
            copied = self.copied_instructions(name)
            flatten, rebuild = counts.flatten_key + copied, counts.rebuild_key + copied
            per_unit = (flatten, rebuild, whole, flat, whole)
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

    def link_instructions(self, name: str) -> float:
        """Of cutting a key range out of an index's tree, or of hanging one into it."""
        return self.costs.instructions.link_level * self.trees[name].levels

    def transfer_bytes(self, name: str) -> float:
        """Bytes that cross the machine per key or entry of a copy."""
        stored = self.objects[name]
        if stored.kind == "column":
            return stored.entry_size.value
        return self.trees[name].pair_bytes

    def _scan_sources(self, phase: PhaseState, partitions: Partitions) -> tuple[Floats, Floats]:
        """(A,) what part of its lines a worker's scan gets from memory, and from the last cache.

        All or nothing, as scans go round: what is scanned on a node stays in the caches of its
        cores, or in the last one, or in none.
        """
        scanned, costs = self._scanned(phase, partitions), self.costs
        private, last = (
            scanned <= lines * cache.instances(self.cores_on_nodes)
            for cache, lines in (
                (costs.private_cache, costs.private_cache.lines),
                (costs.last_cache, self._scan_room),
            )
        )
        found = np.where(private, 0.0, ~last), np.where(private, 0.0, last)
        missed, met = (np.asarray(part[self.workers.node], dtype=np.float64) for part in found)
        return missed, met

    def _scanned(self, phase: PhaseState, partitions: Partitions) -> Floats:
        """(n,) lines of all that is scanned on each node."""
        scanned = np.zeros(self.workers.count)
        for name, _, part in self._on(ColumnPartitions, phase, partitions):
            scanned += part.sizes() * self.stored_bytes(name) / LINE_BYTES
        return self._on_nodes(scanned)

    def _on(
        self, kind: type[Part], phase: PhaseState, partitions: Partitions
    ) -> Iterator[tuple[str, list[ResolvedOperation], Part]]:
        """The objects whose partitions are of that ``kind``, with the operations on them."""
        for name, operations in self._by_object(phase).items():
            if isinstance(part := partitions[name], kind):
                yield name, operations, part

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
        n = len(self.costs.machine.nodes)
        return group_sums(self.home[self.workers.node], sizes * self.stored_bytes(name), n)


def found_by(mass: Floats, walk: Walk, rows: Ints) -> Floats:
    """(4, A) lines that the walks of each worker's node find in memory, in the last cache, in a
    private one, and those in memory that are written; ``mass`` (A, Q) of them.
    """
    parts = (walk.misses, walk.hits, walk.private_hits, walk.written_misses)
    return np.array([(mass * part[rows]).sum(axis=1) for part in parts])
