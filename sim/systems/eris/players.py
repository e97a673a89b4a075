"""ERIS's compiled models for the event plane, behind one interface.

A player has what a model needs beside the machine: present demands, and where commands go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..._kernel import ErisRouting, ErisShared
from ...kernel.histogram import Histogram
from ...kernel.picoseconds import PS_PER_S
from ...kernel.streams import stream_key
from ...kernel.sums import group_sums
from ...machine.costs import LINE_BYTES
from ...planes import model_plane
from ...planes.experiment import Experiment
from ...planes.model_plane import memory_bytes, moved_bytes
from .costs import ErisCosts
from .engine import Eris
from .event_model import (
    by_key_first,
    kernel_demands,
    machine_of,
    table_of,
    worker_names,
    worker_streams,
)
from .event_shared import shared_setup
from .partitioned import PartitionedDemands
from .partitions import IndexPartitions
from .parts import RECEIVE, SCAN, WALK
from .shared import SharedDemands

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

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
    """A compiled model of a scenario's ERIS."""

    @property
    def demands(self) -> PartitionedDemands | SharedDemands:
        """What makes its demands."""

    def refresh(self) -> None:
        """The phase is another one now."""

    def counted(self) -> Counted:
        """What was counted."""


class RoutedPlayer:
    """Workers that own partitions; commands travel."""

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
            demands,
            scenario.workload.description.clients,
            scenario.workload.at(0.0),
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

    def start_counting(self) -> None:
        self.model.start_counting()

    def counted(self) -> Counted:
        found = self.model.counts()
        back = np.argsort(self.order)
        costs = self.demands.costs
        link_bytes = found["link_bytes"]
        if len(link_bytes):
            data = found["link_lines"] * (LINE_BYTES + costs.link_header_bytes)
            link_bytes = link_bytes + data + found["link_requests"] * costs.link_request_bytes
        return Counted(
            since_ps=found["since_ps"],
            done=np.concatenate([found["done"][: self.keyed], found["progress"][self.keyed :]])[
                back
            ],
            executed=found["executed"].astype(np.int64).reshape(len(back), -1)[back],
            core_executed_ps=found["core_executed"],
            busy_ps=found["busy"],
            steps_ps=steps_of(found),
            held_ps=found["held"],
            memory_ps=found["memory_done"],
            memory_bytes=memory_bytes(found),
            link_ps=found["link_done"],
            link_bytes=moved_bytes(link_bytes, found["link_done"], costs.link_Bps),
            latencies=tuple(_histogram(*self.model.latency(int(k))) for k in back),
            facts=routing_facts(found),
        )

    def check(self) -> None:
        self.model.check()


class SharedPlayer:
    """Workers that all use one structure."""

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
        return shared_setup(self.demands, demand, self.eris.phase, self.clients)

    def refresh(self) -> None:
        self.model.update(self._setup(self.model.now_ps / PS_PER_S))

    def start_counting(self) -> None:
        self.model.start_counting()

    def counted(self) -> Counted:
        found = self.model.counts()
        done = found["done"]
        return Counted(
            since_ps=found["since_ps"],
            done=done,
            executed=np.zeros((0, 0), dtype=np.int64),
            core_executed_ps=found["core_executed"],
            busy_ps=found["busy"],
            steps_ps=dict(zip(self._steps, found["steps"], strict=True)),
            held_ps=found["held"],
            memory_ps=found["memory_done"],
            memory_bytes=memory_bytes(found),
            link_ps=found["link_done"],
            link_bytes=moved_bytes(
                found["link_bytes"], found["link_done"], self.demands.costs.link_Bps
            ),
            latencies=tuple(_histogram(*self.model.latency(k)) for k in range(len(done))),
            facts={},
        )

    def check(self) -> None:
        self.model.check()


def new_player(
    eris: Eris, costs: ErisCosts, scenario: Experiment, replication: int
) -> RoutedPlayer | SharedPlayer:
    """The player for the scenario's placement; raises InputError."""
    kind = RoutedPlayer if eris.partitioned else SharedPlayer
    return kind(eris, costs, scenario, replication)


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


def _histogram(counts: Sequence[int], total_ps: float) -> Histogram:
    """Without the empty buckets behind, which stay from before counting began."""
    return Histogram.of_kernel(np.trim_zeros(np.asarray(counts, dtype=np.int64), "b"), total_ps)
