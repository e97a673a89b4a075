"""ERIS's compiled models for the event plane, behind one interface.

A player has what a model needs beside the machine: present demands, and where commands go.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ....workloads.schema import Clients
from ....workloads.workload import PhaseState
from ..._kernel import ErisRouting, ErisShared, SharedSetup, SharedStep, SparseRows
from ...kernel.arrays import Floats, Ints
from ...kernel.histogram import Histogram
from ...kernel.picoseconds import PS_PER_S
from ...kernel.streams import stream_key
from ...kernel.sums import group_sums
from ...machine.costs import LINE_BYTES, LINK_LOAD_MAX
from ...machine.demands import Demand, Reads
from ...planes import model_plane
from ...planes.model_plane import memory_bytes, moved_bytes
from ...planes.plane import Experiment
from .costs import ErisCosts
from .engine import Eris
from .event_model import (
    SCAN_CHUNK_LINES,
    by_key_first,
    kernel_demands,
    machine_of,
    sparse,
    table_of,
    times_of,
    worker_names,
    worker_streams,
)
from .partitioned import PartitionedDemands
from .partitions import IndexPartitions
from .parts import RECEIVE, SCAN, WALK
from .shared import SharedDemands

MAKE, FLUSH, TRANSFER = "making and routing commands", "flushing buffers", "transfers"
STEPS = {
    MAKE: "issue",
    FLUSH: "flush",
    RECEIVE: "receive",
    WALK: "walk",
    SCAN: "scan",
    TRANSFER: "transfer",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Counted(model_plane.Counted):
    """See there. ``done``: of a scan, its parts count. ``busy_ps`` (A,): time that workers had use
    for, neither asleep nor held up by memory, links or another thread; ``steps_ps``: by step of the
    loop, (A,). ``executed`` (O, A): commands by worker; empty where there are none.
    ``core_executed_ps`` (C,): time that pipelines of cores with several workers were in use.
    """

    executed: Ints
    core_executed_ps: Ints


class Player(model_plane.Player, Protocol):
    """A model of a scenario's ERIS, compiled or in SimPy."""

    @property
    def model(self) -> Any:
        """A ``RunningModel`` whose workers may be slow or stop: ``pace``."""

    @property
    def demands(self) -> PartitionedDemands | SharedDemands:
        """What makes its demands."""

    def refresh(self) -> None:
        """The phase is another one now."""

    def counted(self) -> Counted:
        """What was counted."""


class CompiledPlayer:
    """What the players of both models have in common."""

    model: ErisRouting | ErisShared

    def start_counting(self) -> None:
        self.model.start_counting()

    def check(self) -> None:
        self.model.check()


class RoutedPlayer(CompiledPlayer):
    """Workers that own partitions; commands travel."""

    model: ErisRouting

    def __init__(
        self, eris: Eris, costs: ErisCosts, scenario: Experiment, replication: int
    ) -> None:
        self.eris = eris
        demands = eris.demands_of(costs)
        assert isinstance(demands, PartitionedDemands)
        self.demands: PartitionedDemands = demands
        self.order, self.keyed = by_key_first(eris.phase, eris.partitions)
        draws = scenario.seed, replication
        keys = [stream_key(*draws, name) for name in worker_streams(eris.workers)]
        machine = machine_of(
            demands, scenario.workload.description.clients, scenario.workload.at(0.0)
        )
        machine.disturbances = costs.disturbances.compiled(worker_names(eris.workers), *draws)
        self.model = ErisRouting(machine, len(self.order), self.keyed, keys, *draws)
        self._shares: list[Floats] = []
        self.refresh()
        self.model.start()

    def refresh(self) -> None:
        self._follow([])

    def moved(self, ranges: Mapping[str, list[tuple[int, int, float, float]]]) -> None:
        """Parts of indexes have moved: by object, (source, target, first key, end)."""
        eris, time_s, moves = self.eris, self.time_s, []
        operations = list(eris.phase.operations.values())
        for k, at in enumerate(self.order[: self.keyed]):
            operation = operations[at]
            assert operation.keys is not None
            left = self._shares[k].copy()  # what each worker still has of this operation
            for source, target, first, end in ranges.get(operation.object, ()):
                shares = operation.keys.shares([first, end], time_s - eris.phase.start_s)
                mass = operation.share * float(shares[0])
                if mass > 0 and left[source] > 0:
                    moves.append((k, source, target, min(mass / left[source], 1.0)))
                    left[source] -= mass
        self._follow(moves)

    def _follow(self, moves: list[tuple[int, int, int, float]]) -> None:
        """The model goes by the phase and the partitions as they are now."""
        phase = self.eris.phase
        passed_s = self.time_s - phase.start_s
        commands = self.demands.commands(phase, passed_s, self.eris.partitions)
        self.model.update(kernel_demands(commands, self.order))
        operations = list(phase.operations.values())
        by_key = [operations[at] for at in self.order[: self.keyed]]
        self._shares = []
        for operation in by_key:
            part = self.eris.partitions[operation.object]
            assert isinstance(part, IndexPartitions)
            assert operation.keys is not None
            shares = part.shares(operation.keys, passed_s)
            self._shares.append(operation.share * shares)
        scans = [operations[at].share for at in self.order[self.keyed :]]
        total, guide = table_of(self._shares, scans)
        self.model.route(total.tolist(), guide.tolist(), moves)

    @property
    def time_s(self) -> float:
        """The time reached."""
        return self.model.now_ps / PS_PER_S

    def counted(self) -> Counted:
        found = self.model.counts()
        back = np.argsort(self.order)
        costs = self.demands.costs
        if len(found["link_bytes"]):
            data = found["link_lines"] * (LINE_BYTES + costs.link_header_bytes)
            requests = found["link_requests"] * costs.link_request_bytes
            found["link_bytes"] = found["link_bytes"] + data + requests
        return Counted(
            done=np.concatenate([found["done"][: self.keyed], found["progress"][self.keyed :]])[
                back
            ],
            executed=found["executed"].astype(np.int64).reshape(len(back), -1)[back],
            steps_ps=steps_of(found),
            latencies=tuple(_histogram(*self.model.latency(int(k))) for k in back),
            facts=routing_facts(found),
            **_of_machine(found, costs),
        )


class SharedPlayer(CompiledPlayer):
    """Workers that all use one structure."""

    model: ErisShared

    def __init__(
        self, eris: Eris, costs: ErisCosts, scenario: Experiment, replication: int
    ) -> None:
        self.eris, self.clients = eris, scenario.workload.description.clients
        demands = eris.demands_of(costs)
        assert isinstance(demands, SharedDemands)
        self.demands: SharedDemands = demands
        count = eris.workers.count
        keys = [
            stream_key(scenario.seed, replication, f"worker {k} commands") for k in range(count)
        ]
        self._steps: list[str] = []
        self.model = ErisShared(self._setup(0.0), keys, scenario.seed, replication)
        self.model.start()

    def _setup(self, time_s: float) -> Any:
        demand = self.eris.demand(self.demands, time_s)
        self._steps = [step.name for step in demand.steps]
        return SharedArrays(self.demands, demand).setup(self.eris.phase, self.clients)

    def refresh(self) -> None:
        self.model.update(self._setup(self.model.now_ps / PS_PER_S))

    def counted(self) -> Counted:
        found = self.model.counts()
        done = found["done"]
        return Counted(
            done=done,
            executed=np.zeros((0, 0), dtype=np.int64),
            steps_ps=dict(zip(self._steps, found["steps"], strict=True)),
            latencies=tuple(_histogram(*self.model.latency(k)) for k in range(len(done))),
            facts={},
            **_of_machine(found, self.demands.costs),
        )


def new_player(
    eris: Eris, costs: ErisCosts, scenario: Experiment, replication: int
) -> RoutedPlayer | SharedPlayer:
    """The player for the scenario's placement; raises InputError."""
    kind = RoutedPlayer if eris.partitioned else SharedPlayer
    return kind(eris, costs, scenario, replication)


def _of_machine(found: Mapping[str, Any], costs: ErisCosts) -> dict[str, Any]:
    """What either model has counted of its cores, controllers and links."""
    return {
        "since_ps": found["since_ps"],
        "core_executed_ps": found["core_executed"],
        "busy_ps": found["busy"],
        "held_ps": found["held"],
        "memory_ps": found["memory_done"],
        "memory_bytes": memory_bytes(found),
        "link_ps": found["link_done"],
        "link_bytes": moved_bytes(found["link_bytes"], found["link_done"], costs.link_Bps),
    }


def steps_of(found: Mapping[str, Any]) -> dict[str, Ints]:
    """Time (A,) of workers by step, of the steps that took any; ``found`` has the model's names."""
    return {name: found[key] for name, key in STEPS.items() if key in found and found[key].any()}


def routing_facts(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a Record says of routing."""
    flushes = max(found["flushes"], 1)
    return {
        "commands_per_flush": found["flushed"] / flushes,
        "retries_per_flush": found["retries"] / flushes,
        "full_buffers_met_per_flush": found["full"] / flushes,
        "commands_per_round": found["made"] / max(found["rounds"], 1),
        "commands_forwarded": found["forwarded"],
        "commands_in_flight": found["in_flight"],
    }


def per_core(eris: Eris, per_worker: npt.NDArray[Any]) -> Floats:
    """(C,) sums over the workers of each core."""
    workers = eris.workers
    return group_sums(workers.core, per_worker.astype(np.float64), workers.cores)


def _histogram(counts: npt.NDArray[Any], total_ps: float) -> Histogram:
    """Without the empty buckets behind, which stay from before counting began."""
    return Histogram.of_kernel(np.trim_zeros(counts, "b"), total_ps)


# Chunks of a scan for each worker, at least and at most: the last ones to finish keep the others
# waiting.
CHUNKS_MIN, CHUNKS_MAX = 64, 1024


class SharedArrays:
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

    def setup(self, phase: PhaseState, clients: Clients) -> SharedSetup:
        """What the kernel plays: the demand as operations, each done by one worker from begin to
        end."""
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
            stall=costs.stream_stall * (streamed.any(axis=1) & ~random.any(axis=1)),
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
