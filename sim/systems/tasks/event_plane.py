"""The event and the reference plane of tasks: task by task, compiled or in SimPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...machine.costs import CostModel
from ...machine.threads import place_workers
from ...planes.experiment import Experiment
from ...planes.model_plane import Counted, ModelPlane
from ...planes.outcome import ControlEvent, Outcome
from ...planes.plane import Command, StartPhase
from .build import mix_shares, program_with
from .commands import (
    SAMPLE_S,
    AllocateCore,
    AllowStealing,
    CoresObservation,
    PlacerObservation,
    ReleaseCore,
    StealingObservation,
)
from .facts import ENGINE, TasksFacts
from .layout import Layout
from .models import EventModel, Model, ReferenceModel
from .parameters import PS_PER_S, TaskParameters, task_parameters
from .parts_in_play import PartsInPlay
from .player import TasksPlayer

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ModelMaker = Callable[[TaskParameters, int, int], Model]
"""From parameters, seed and replication."""

PAGE_BYTES = 4096


class TasksEvents(ModelPlane[TasksPlayer]):
    """Plays one replication; see ``plane.RandomPlane`` for what its methods promise."""

    def __init__(self, make: ModelMaker, scenario: Experiment, replication: int) -> None:
        machine = scenario.machine
        costs = CostModel(machine)
        self.program = program_with(scenario, costs)
        parameters = task_parameters(self.program, costs)
        self.model = make(parameters, scenario.seed, replication)
        threads = self.program.scheduling.workers
        nodes = np.arange(len(machine.nodes), dtype=np.int64)
        workers = place_workers(machine, np.repeat(nodes, threads))
        player = TasksPlayer(self.model, costs, len(self.program.queries), workers.core_node)
        super().__init__(scenario, costs, workers, player)
        self.engine = machine.description.facts_of(ENGINE, TasksFacts) or TasksFacts()
        layout = Layout(
            self.program.tables,
            _pages_of(machine.nodes),
            self.engine.move_s,
            self.engine.partition_s,
            [node.id for node in machine.nodes],
        )
        self.parts = PartsInPlay(layout, self.model)
        self._sampled = scenario.policy_names.get("placer", "none") != "none"
        self._samples = 0
        self._core_of_node = _cores_by_node(workers.core_node, len(machine.nodes))
        self._allocated = [core for cores in self._core_of_node for core in cores]
        self._seen_at_s = 0.0
        self._seen = self.model.service_use()

    # -- time -------------------------------------------------------------------------------------

    def advance(self, until_s: float) -> None:
        """See Plane; the use of parts is sampled on the way where a placer sees it."""
        while self._sampled and (at_s := (self._samples + 1) * SAMPLE_S) <= until_s + 1e-12:
            super().advance(min(at_s, until_s))
            self.parts.sample()
            self._samples += 1
        super().advance(until_s)

    def attend(self) -> None:
        """See ModelPlane: copies have arrived."""
        self.parts.arrived(self.model.now_ps / PS_PER_S)

    # -- the control plane ------------------------------------------------------------------------

    def observe(self, family: str) -> PlacerObservation | StealingObservation | CoresObservation:
        """See Plane."""
        if family == "placer":
            return self._placer_sees()
        if family == "stealing":
            return self._stealing_sees()
        return self._cores_sees()

    def _placer_sees(self) -> PlacerObservation:
        nodes, parts = self.parts.observed(self.program.tables)
        return PlacerObservation(
            time_s=self.time_s,
            parts=parts,
            threads=self.program.scheduling.workers,
            node_cpu=nodes.cpu,
            node_memory_Bps=nodes.memory_Bps,
            memory_peak_Bps=self.costs.memory_Bps,
            free_pages=self.parts.layout.free_pages,
            move_s=self.engine.move_s,
            partition_s=self.engine.partition_s,
        )

    def _stealing_sees(self) -> StealingObservation:
        each = self.model.class_bytes_per_ps() * PS_PER_S
        averages = np.where(each < 0, np.nan, each).tolist()
        return StealingObservation(
            time_s=self.time_s,
            memory_Bps=dict(zip(self.program.classes, averages, strict=True)),
            waiting=self.model.waiting(),
            idle=self.model.idle(),
            threshold_Bps=self.engine.threshold_Bps,
        )

    def _cores_sees(self) -> CoresObservation:
        before, now = self._seen, self.model.service_use()
        passed_s = max(self.time_s - self._seen_at_s, 1e-12)
        self._seen, self._seen_at_s = now, self.time_s
        used = (now.core_ps - before.core_ps)[self._positions()]
        threads = self.workers.on_cores[self._positions()]
        lines = now.lines_read + now.lines_written - before.lines_read - before.lines_written
        link_Bps = (now.link_ps - before.link_ps) / PS_PER_S * self.costs.link_Bps / passed_s
        return CoresObservation(
            time_s=self.time_s,
            cores=np.array([len(cores) for cores in self._core_of_node], dtype=np.int64),
            allocated=tuple(
                (node, k)
                for node, cores in enumerate(self._core_of_node)
                for k, core in enumerate(cores)
                if core in self._allocated
            ),
            cpu_load=float(used.sum() / (threads.sum() * passed_s * PS_PER_S)),
            memory_bytes=lines * 64.0,
            interconnect_Bps=float(link_Bps.sum()),
            controllers_Bps=float(lines.sum() * 64.0 / passed_s),
        )

    def _positions(self) -> Ints:
        return np.array(sorted(self._allocated), dtype=np.int64)

    def apply(self, commands: Sequence[Command]) -> None:
        """See Plane."""
        allocated = list(self._allocated)
        for command in commands:
            if isinstance(command, StartPhase):
                self._start_phase(command)
            elif isinstance(command, AllowStealing):
                may_steal = [name in command.classes for name in self.program.classes]
                self.model.allow(may_steal, command.within_node)
            elif isinstance(command, AllocateCore):
                allocated.append(self._core_of_node[command.node][command.core])
            elif isinstance(command, ReleaseCore):
                allocated.remove(self._core_of_node[command.node][command.core])
            else:
                self.parts.order(command, self.time_s)
        if allocated != self._allocated:
            self._allocated = allocated
            self.model.use([core in allocated for core in self.workers.core.tolist()])

    def _start_phase(self, command: StartPhase) -> None:
        shares = mix_shares(command.phase, self.workload.operations)
        each = [shares.get(query.name, 0.0) for query in self.program.queries]
        self.model.set_mix(np.cumsum(each).tolist())

    # -- see ModelPlane ---------------------------------------------------------------------------

    @property
    def events(self) -> Sequence[ControlEvent]:
        """See ModelPlane."""
        return self.parts.layout.events

    def facts(self, counted: Counted) -> Mapping[str, Any]:
        """See ModelPlane."""
        columns = ("made", "done", "waiting", "running", "stolen")
        counts = self.model.class_counts().tolist()
        averages = self._stealing_sees().memory_Bps
        classes = {
            name: {
                **dict(zip(columns, row, strict=True)),
                "memory_Bps": None if np.isnan(averages[name]) else averages[name],
            }
            for name, row in zip(self.program.classes, counts, strict=True)
        }
        return {
            "tasks": classes,
            "traffic_bytes": self.model.traffic().tolist(),
            "queued": self.model.waiting().tolist(),
            "parts": self.parts.as_json(),
            "moved_pages": self.parts.layout.arrived_pages,
        }

    def check(self) -> None:
        """See ModelPlane: tasks made are done, wait or run; pages that were sent have arrived."""
        super().check()
        self.parts.layout.check()

    def outcome(self) -> Outcome:
        """See Plane; cores where threads run, or look for work, take their active power."""
        found, counted = super().outcome(), self.player.counted()
        total_s = self._time_s - counted.since_ps / PS_PER_S
        active = self.player.active_thread_s / total_s / _threads_of_a_core(self.workers.on_cores)
        cores = np.bincount(self.workers.core_node, minlength=len(self.machine.nodes))
        energy_J = self.use.energy_J(
            np.minimum(active, cores),
            counted.memory_bytes / total_s,
            counted.link_bytes / total_s,
            total_s,
        )
        return replace(found, energy_J=energy_J)


def _threads_of_a_core(on_cores: Floats) -> float:
    return float(max(on_cores.max(initial=1.0), 1.0))


def _pages_of(nodes: Sequence[Any]) -> Ints:
    memory = np.array([node.memory_bytes for node in nodes], dtype=np.float64)
    return (np.nan_to_num(memory, nan=2.0**60) // PAGE_BYTES).astype(np.int64)


def _cores_by_node(core_node: Ints, nodes: int) -> list[list[int]]:
    return [np.flatnonzero(core_node == node).tolist() for node in range(nodes)]


event_plane = partial(TasksEvents, EventModel)
"""Makes the event plane, from a scenario and the number of a replication."""

reference_plane = partial(TasksEvents, ReferenceModel)
"""The same, of the reference plane."""
