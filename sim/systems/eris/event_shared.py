"""ERIS's baselines for the event plane: the demands of one worker's operations, in picoseconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....workloads.schema import Clients
from ....workloads.workload import PhaseState
from ..._kernel import SharedSetup, SharedStep, SparseRows
from ...kernel.picoseconds import PS_PER_S
from ...machine.costs import LINE_BYTES, LINK_LOAD_MAX
from ...machine.demands import Demand, Reads
from .event_model import SCAN_CHUNK_LINES, sparse, times_of
from .shared import SharedDemands

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Chunks of a scan for each worker, at least and at most: the last ones to finish keep the others
# waiting.
CHUNKS_MIN, CHUNKS_MAX = 64, 1024


def shared_setup(
    demands: SharedDemands, demand: Demand, phase: PhaseState, clients: Clients
) -> SharedSetup:
    """What the kernel plays: ``demand`` as operations that each worker does from begin to end."""
    return _Setup(demands, demand).made(phase, clients)


class _Setup:
    """The arrays of one demand. Rows are those of nodes: what a worker there needs for a unit."""

    def __init__(self, demands: SharedDemands, demand: Demand) -> None:
        self.demands, self.demand = demands, demand
        self.costs = demands.costs
        self.workers = demands.workers
        self.n = len(self.costs.machine.nodes)
        # A demand says what falls to each core of a unit that all cores of its flow share.
        self.core_of = np.zeros(self.n, dtype=np.int64)
        self.core_of[self.workers.core_node] = np.arange(self.workers.cores)
        self.used = np.isin(np.arange(self.n), self.workers.core_node)
        nodes = np.bincount(demand.flow_of[self.used], minlength=demand.flows)
        self.whole = np.where(self.used, nodes[demand.flow_of] * demands.cores_on_nodes, 0.0)

    def made(self, phase: PhaseState, clients: Clients) -> SharedSetup:
        costs, demand, workers = self.costs, self.demand, self.workers
        reads = [reads for step in demand.steps for reads in step.reads]
        read = self._lines(reads)
        taken = self._lines([part for part in reads if part.cached])
        from_memory = self._lines([part for part in reads if not part.cached])
        written = self._lines(list(demand.writes))
        lines = from_memory + written
        on_node = np.bincount(workers.node, minlength=self.n)[:, None]
        all_written = written + from_memory * costs.directory_writes(from_memory * on_node)
        each_ps = np.nan_to_num(LINE_BYTES * PS_PER_S / costs.memory_Bps, nan=0.0)
        wire = np.zeros((2, self.n, len(costs.link_Bps)))
        if len(costs.link_Bps):
            wire = costs.wire_rows(from_memory) + costs.written_wire_rows(written)
            wire += costs.taken_wire_rows(taken)
        data_ps, control_ps = wire * (PS_PER_S / costs.link_Bps)
        die_s = costs.die_s(np.bincount(workers.core_node, minlength=self.n))
        load, load_ratio = costs.loaded_latency
        chunks = 0
        if all(operation.kind == "scan" for operation in phase.asked):
            wanted = float(lines.sum(axis=1).max()) / SCAN_CHUNK_LINES
            chunks = int(np.clip(wanted, CHUNKS_MIN * workers.count, CHUNKS_MAX * workers.count))
        return SharedSetup(
            node=workers.node,
            core=workers.core,
            steps=[self._step(s.core_s, s.hit_s, s.reads, demand.batch) for s in demand.steps],
            memory_lines=sparse(lines),
            memory_ps=sparse(costs.line_times(from_memory, all_written) * each_ps),
            link_bytes=sparse(wire.sum(axis=0)),
            link_data_ps=sparse(data_ps),
            link_control_ps=sparse(control_ps),
            limit_ps=np.maximum(costs.limits.taken_s(read), read.sum(axis=1) * die_s) * PS_PER_S,
            line_ps=self._line_ps(),
            memory_idle_ps=np.diag(costs.idle_s) * PS_PER_S,
            link_line_ps=(LINE_BYTES + costs.link_header_bytes) * PS_PER_S / costs.link_Bps,
            load=load,
            load_ratio=load_ratio,
            link_load_max=LINK_LOAD_MAX,
            shares=[operation.share for operation in phase.operations.values()],
            batch=int(demand.batch),
            chunks=chunks,
            **times_of(clients, workers.count),
        )

    def _row(self, per_core: Floats) -> Floats:
        """(n,) of a worker that does a whole unit, from the share of each core (C,)."""
        return np.where(self.used, per_core[self.core_of], 0.0) * self.whole

    def _lines(self, parts: list[Reads]) -> Floats:
        """(n, n) lines that a worker on i exchanges with home j."""
        total = np.zeros((self.n, self.n))
        for part in parts:
            total += self._row(part.weight)[:, None] * part.lines
        return total

    def _step(
        self, core_s: Floats, hit_s: Floats, reads: tuple[Reads, ...], batch: float
    ) -> SharedStep:
        costs = self.costs
        random = self._lines([part for part in reads if not part.stream])
        streamed = self._lines([part for part in reads if part.stream])
        threads = np.bincount(self.workers.core)[self.core_of]
        slots = np.minimum(costs.walk_misses_of(self.workers.core_node), batch * threads)[:, None]
        held_s = self._row(hit_s) + (random * costs.idle_s / slots).sum(axis=1)
        remote = random * (1.0 - np.eye(self.n))
        on_links = np.zeros((self.n, len(costs.link_Bps)))
        if costs.machine.links and remote.any():
            on_links = costs.machine.routes.link_columns(remote.T)
        at = np.nonzero(streamed)
        line_max_ps = costs.streamed_s[at] * PS_PER_S
        return SharedStep(
            core_ps=self._row(core_s) * PS_PER_S,
            held_ps=held_s * PS_PER_S,
            memory=sparse(random / slots),
            links=sparse(on_links / slots),
            streamed=sparse(streamed),
            ways=self._ways(at[0], at[1]),
            slots=costs.streaming_misses,
            line_max_ps=np.where(np.isfinite(line_max_ps), line_max_ps, 0.0),
            idle_ps=costs.idle_s[at] * PS_PER_S,
        )

    def _ways(self, reader: Ints, home: Ints) -> SparseRows:
        """Links that a line takes from each ``home`` to its ``reader`` (E,)."""
        machine = self.costs.machine
        rows = [
            machine.routes.links_of(int(a), int(b)) if machine.links and a != b else ()
            for a, b in zip(home, reader, strict=True)
        ]
        first = np.cumsum([0, *(len(row) for row in rows)])
        links = [int(link) for row in rows for link in row]
        return SparseRows(first.tolist(), links, [1.0] * len(links))

    def _line_ps(self) -> Floats:
        """(n,) time that the line which all write to, or their lock, takes for a unit."""
        serial_s = np.full(self.n, self.demand.serial_s)
        if self.demand.contended:
            # From any node in use the line may come, and goes on from there.
            passed_s = self.costs.hand_overs.line_s[:, self.used].mean(axis=1)
            serial_s += self.demand.contended * passed_s
        return serial_s * PS_PER_S
