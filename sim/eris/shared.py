"""Demands of ERIS's baselines: one structure that any worker uses, over all nodes or on one."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...workloads.workload import PhaseState
from ..costs import LINE_BYTES
from ..demands import Demand, Reads, Step
from .index import (
    Popularity,
    Regions,
    placed_regions,
    popularities,
    scattered_regions,
    walk_of,
    with_page_walks,
)
from .parts import GENERATE, SCAN, WALK, ErisDemands, Operations, Partitions, some

Floats = npt.NDArray[np.float64]

SHARED_FLOWS_MAX = 128


class SharedDemands(ErisDemands):
    """A flow for each node: its workers do whole operations on data that all share."""

    def demand(self, phase: PhaseState, time_s: float, partitions: Partitions) -> Demand:
        """A flow for each node in use: its workers do whole operations on data that all share.

        On more than ``SHARED_FLOWS_MAX`` nodes one flow of all: nodes are taken to be equally fast.
        """
        costs, workers = self.costs, self.workers
        n, generate = len(costs.machine.nodes), costs.instructions.generate
        in_use = np.unique(workers.node)
        lines = np.tile(self.homes, (n, 1))
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
            Step(GENERATE, share * asked * generate / self.core_rate, none, ()),
            Step(
                WALK,
                share * instructions[node] / self.core_rate,
                share * self._hit_s(hits[node], private[node]),
                some(Reads(share * misses[node], lines)),
            ),
            Step(
                SCAN,
                share * scanned[node] / self.core_rate,
                none,
                some(
                    Reads(share * streamed[node], lines, stream=True),
                    Reads(share * stored[node], own, stream=True),
                ),
            ),
        )
        written = np.zeros((flows, n))
        on_each = of_node[:, None] * (dirty[:, None] * lines + stored[:, None] * own)
        np.add.at(written, flow_of[in_use], LINE_BYTES * on_each[in_use])
        return Demand(
            flow_of=flow_of,
            steps=tuple(step for step in steps if step.core_s.any()),
            written_bytes=written,
            cap=np.full(flows, np.inf),
        )

    @cached_property
    def homes(self) -> Floats:
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
                    self.reach,
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

    def bytes_on_nodes(self, name: str, sizes: Floats) -> Floats:
        """See ErisDemands."""
        return np.asarray(sizes.sum() * self.stored_bytes(name) * self.homes)
