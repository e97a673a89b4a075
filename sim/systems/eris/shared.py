"""Demands of ERIS's baselines: one structure that any worker uses, over all nodes or on one."""

from functools import cached_property

import numpy as np

from ....inputs import DescriptionError, InputError
from ....workloads.workload import PhaseState
from ...kernel.arrays import Floats, Ints
from ...machine.costs import LINE_BYTES
from ...machine.demands import Demand, Reads, Step
from ...machine.memory_policy import Room
from .index import Hits, Popularity, Regions, hottest_line, popularities, walk_of
from .parts import GENERATE, SCAN, WALK, ErisDemands, Operations, Partitions, some, walking
from .spec import Shards

SHARED_FLOWS_MAX = 128


class SharedDemands(ErisDemands):
    """A flow for each node: its workers do whole operations on data that all share."""

    shared = True

    def demand(self, phase: PhaseState, time_s: float, partitions: Partitions) -> Demand:
        """A flow for each node in use: its workers do whole operations on data that all share.

        On more than ``SHARED_FLOWS_MAX`` nodes one flow of all: nodes are taken to be equally fast.
        """
        costs, workers = self.costs, self.workers
        n, generate = len(costs.machine.nodes), costs.instructions.generate
        in_use = np.unique(workers.node)
        lines = self.rows_of_homes
        instructions, misses, hits, private, dirty, taken = self._shared_index(phase, time_s)
        scanned, streamed, scan_hits, stored = (np.zeros(n) for _ in range(4))
        keyed_share = 0.0
        for name, operations in self._by_object(phase).items():
            if self.objects[name].kind != "column":
                keyed_share += sum(o.share for o in operations)
                continue
            # (n,) whether all that is scanned stays in each of a node's last-level caches.
            fits = np.asarray(self._scanned(phase) <= self._scan_room)
            for scan in operations:
                entries = np.array([float(self.objects[name].entries or 0)])
                read, done, results = self._scanned_lines(name, scan, entries)
                longer, hit = self._in_last_cache(np.where(fits, read, 0.0), np.arange(n))
                scanned += scan.share * (done + longer)
                streamed += scan.share * np.where(fits, 0.0, read)
                scan_hits += scan.share * hit
                stored += scan.share * results
        flow_of = np.zeros(n, dtype=np.int64)
        if len(in_use) <= SHARED_FLOWS_MAX:
            flow_of[in_use] = np.arange(len(in_use))
        flows = int(flow_of.max()) + 1
        node = workers.core_node
        # (C,) the part of a flow's work that each core does; (n,) each node.
        of_node = 1.0 / np.bincount(flow_of[in_use], minlength=flows)[flow_of]
        share = (of_node / self.cores_on_nodes)[node]
        none = np.zeros_like(share)
        own = np.eye(n)[self.home]
        steps = (
            Step(GENERATE, share * keyed_share * generate / self.core_rate, none, ()),
            Step(
                WALK,
                share * instructions[node] / self.core_rate,
                share * self._hit_s(hits[node], private[node]),
                some(
                    Reads(share * misses[node], lines),
                    Reads(share * taken[node], lines, cached=True),
                ),
            ),
            Step(
                SCAN,
                share * scanned[node] / self.core_rate,
                share * self._hit_s(scan_hits[node], none, stream=True),
                some(
                    Reads(share * streamed[node], lines, stream=True),
                    Reads(share * stored[node], own, stream=True),
                ),
            ),
        )
        writes = (Reads(share * dirty[node], lines), Reads(share * stored[node], own))
        return Demand(
            flow_of=flow_of,
            steps=tuple(step for step in steps if step.core_s.any()),
            writes=some(*writes),
            batch=self.system.batch,
            miss_instructions=costs.counted.tree_level,
            contended=self._contended(phase, time_s),
            serial_s=self._serial_s(phase),
        )

    @cached_property
    def _groups(self) -> Ints:
        """(n,) shard of each node in use; all in the first without shards."""
        machine, placement = self.costs.machine, self.system.placement
        if isinstance(placement, Shards):
            return placement.groups(machine, self.system.node_positions(machine))
        return np.zeros(len(machine.nodes), dtype=np.int64)

    @cached_property
    def _shards(self) -> int:
        return int(self._groups.max()) + 1

    @cached_property
    def rows_of_homes(self) -> Floats:
        """(n, n) part of what a worker on each node uses that lies on each node."""
        n = len(self.has_memory)
        if self._shards == 1 or self.system.memory is not None:
            return np.tile(self.homes, (n, 1))
        rows = np.zeros((n, n))
        for k in range(n):
            rows[k, self.home[self._groups == self._groups[k]]] = 1.0
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    @cached_property
    def homes(self) -> Floats:
        """(n,) part of the shared data that lies on each node; the sum is 1."""
        machine = self.costs.machine
        homes = np.zeros(len(machine.nodes))
        if self.system.memory is not None:
            return self._laid
        if self.system.placement == "single-ram":
            homes[self.system.home_position(machine)] = 1.0
            return homes
        in_use = np.unique(self.workers.node)
        if self._shards > 1:
            return np.asarray(self.rows_of_homes[in_use].mean(axis=0))
        able = in_use[self.has_memory[in_use]]
        homes[able if len(able) else np.flatnonzero(self.has_memory)] = 1.0
        return np.asarray(homes / homes.sum())

    @cached_property
    def _laid(self) -> Floats:
        """(n,) the same by the memory's policy; what one thread loads it touches first."""
        memory, machine = self.system.memory, self.costs.machine
        assert memory is not None
        room = Room(machine)
        sizes = {
            name: self.stored_bytes(name) * float(stored.keys or stored.entries or 0)
            for name, stored in self.objects.items()
        }
        loading = None if memory.policy == "local" else int(self.workers.node[0])
        try:
            put = [room.put(name, size, memory, loading) * size for name, size in sizes.items()]
        except DescriptionError as failure:
            raise InputError(f"system.memory: {failure}") from None
        found = np.sum(put, axis=0)
        return np.asarray(found / found.sum())

    def _contended(self, phase: PhaseState, time_s: float) -> float:
        """Upserts per unit of work for which the hottest cache line comes from another core."""
        most = 0.0
        for name, operations in self._by_object(phase).items():
            upserts = [o for o in operations if o.kind == "upsert"]
            per_line = LINE_BYTES / self.trees[name].written_bytes if name in self.trees else 0.0
            for spread in popularities(upserts, time_s):
                most = max(most, spread.weight * hottest_line(spread, per_line))
        private, _ = self._caches_in_use
        return most * (1.0 - 1.0 / private)

    def _serial_s(self, phase: PhaseState) -> float:
        """Time of a unit of work that one worker at a time does."""
        counts = self.costs.instructions
        of_kind = {"lookup": counts.lookup_serial, "upsert": counts.upsert_serial}
        found = sum(o.share * of_kind.get(o.kind, 0.0) for o in phase.asked)
        return float(found / self.core_rate[0])

    def _scanned(self, phase: PhaseState) -> float:
        """Lines of all that is scanned."""
        return (
            sum(
                float(self.objects[name].entries or 0) * self.stored_bytes(name) / LINE_BYTES
                for name in self._by_object(phase)
                if self.objects[name].kind == "column"
            )
            / self._shards
        )

    def _shared_index(self, phase: PhaseState, time_s: float) -> tuple[Floats, ...]:
        """(n,) instructions, misses, hits in last and private caches, lines that are written back,
        and those that another node's cache sends, as it has modified them, per unit of work done on
        each node.

        A modified line that another core reads is written back, unless its owner keeps it (MOESI).
        """
        n = len(self.costs.machine.nodes)
        rules = self.costs.machine.description.coherence
        owned = rules is not None and bool(rules.owned)
        instructions, misses, hits, private, dirty, taken = np.zeros((6, n))
        pending: list[tuple[str, Operations, Popularity, Regions]] = []
        for name, operations in self._by_object(phase).items():
            if self.objects[name].kind != "index":
                continue
            for operation in operations:
                instructions += operation.share * self._walk_instructions(name, operation)
            for spread in popularities(walking(operations), time_s):
                keys = np.tile(spread.classes.keys / self._shards, (n, 1))
                mass = np.tile(spread.weight * spread.classes.mass, (n, 1))
                regions = self._regions(name, spread, keys, mass, np.ones(n))
                pending.append((name, operations, spread, regions))
        scanned, caches = np.full(n, self._scanned(phase)), self._caches_in_use
        of_indexes = [(name, regions) for name, *_, regions in pending]
        found = self._hits(of_indexes, scanned, sharers=caches[1] - 1)
        for (name, operations, spread, regions), hit in zip(pending, found, strict=True):
            tree = self.trees[name]
            upserts = sum(o.share for o in operations if o.kind == "upsert")
            upserts /= sum(o.share for o in operations)
            own = anywhere = hit
            for row in tree.written_rows:
                own = _written_elsewhere(own, row, upserts, caches)
                anywhere = _written_elsewhere(anywhere, row, upserts, caches, anywhere=True)
            walk, unmodified = (
                walk_of(regions, found, tree, scattered=spread.scattered is not None)
                for found in (own, anywhere)
            )
            mass = spread.weight * (np.ones(1) if spread.scattered else spread.classes.mass)
            sent = (walk.misses - unmodified.misses) @ mass
            misses += unmodified.misses @ mass
            taken += sent
            hits += walk.hits @ mass
            private += walk.private_hits @ mass
            dirty += upserts * unmodified.written_misses @ mass + (0.0 if owned else sent)
        return instructions, misses, hits, private, dirty, taken

    @property
    def _caches_in_use(self) -> tuple[int, int]:
        """How many private and last-level caches the workers of all nodes have."""
        cores, costs = self.cores_on_nodes, self.costs
        nodes = np.unique(self.workers.node)
        private, last = (
            int(facts.instances(cores)[nodes].sum())
            for facts in (costs.private_cache, costs.last_cache)
        )
        return max(private // self._shards, 1), max(last // self._shards, 1)

    def bytes_on_nodes(self, name: str, sizes: Floats) -> Floats:
        return np.asarray(sizes.sum() * self.stored_bytes(name) * self.homes)


def _written_elsewhere(
    hit: Hits, row: int, upserts: float, caches: tuple[int, int], *, anywhere: bool = False
) -> Hits:
    """Hits when lines of row ``row`` are written by the share ``upserts`` of all operations.

    One is found in the own cache if the latest of its own accesses and of other caches' writes was
    an own one, within the cache's characteristic time T. With accesses at the same rate r from each
    of ``caches`` (private, last-level), these come at the rate m r, m = 1 + (caches - 1) upserts:

        integral from 0 to T of r exp(-m r t) = (1 - (1 - hit)^m) / m,    hit = 1 - exp(-r T)

    ``anywhere``: or in another last-level cache, modified: m times that.
    """
    if not upserts:
        return hit
    private, last = hit.private.copy(), hit.last.copy()
    either = 1.0 - (1.0 - private[:, row]) * (1.0 - last[:, row])
    of_private, of_last = (1.0 + (count - 1) * upserts for count in caches)
    either = (1.0 - (1.0 - either) ** of_last) / (1.0 if anywhere else of_last)
    private[:, row] = np.minimum((1.0 - (1.0 - private[:, row]) ** of_private) / of_private, either)
    room = np.maximum(1.0 - private[:, row], 1e-300)
    last[:, row] = np.clip((either - private[:, row]) / room, 0.0, 1.0)
    return Hits(private, last)
