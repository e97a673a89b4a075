"""The event and the reference plane of tasks: task by task, compiled or in SimPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._kernel import TaskSetup
from ...machine.costs import LINE_BYTES, CostModel
from ...planes.experiment import Experiment
from ...planes.model_plane import Counted, ModelPlane
from ...planes.outcome import ControlEvent, Outcome
from ...planes.plane import Command, StartPhase
from .build import mix_shares, program_with
from .commands import (
    SAMPLE_S,
    AccessPathObservation,
    AllocateCore,
    AllowStealing,
    ChoosePath,
    CoresObservation,
    PlacerObservation,
    ReleaseCore,
    StealingObservation,
)
from .facts import ENGINE, TasksFacts
from .layout import Layout
from .models import EventModel, Model, ReferenceModel
from .parameters import PS_PER_S, cores_of, task_setup
from .parts_in_play import PartsInPlay
from .piece_log import interconnect_ratio
from .player import TasksPlayer
from .scan_paths import ScanPaths

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ModelMaker = Callable[[TaskSetup, int, int], Model]
"""From a setup, seed and replication."""

PAGE_BYTES = 4096
MIGRATIONS = ("in a core", "in a cache", "in a node", "between nodes")


class TasksEvents(ModelPlane[TasksPlayer]):
    """Runs one replication; see ``plane.RandomPlane`` for what its methods promise."""

    def __init__(self, make: ModelMaker, scenario: Experiment, replication: int) -> None:
        machine = scenario.machine
        costs = CostModel(machine)
        self.program = program_with(scenario, costs)
        self.model = make(task_setup(self.program, costs), scenario.seed, replication)
        workers = cores_of(machine, self.program.scheduling)
        player = TasksPlayer(self.model, costs, len(self.program.queries), workers.core_node)
        super().__init__(scenario, costs, workers, player)
        self.engine = machine.description.facts_of(ENGINE, TasksFacts) or TasksFacts()
        layout = Layout(
            self.program.tables,
            _pages_of(machine.nodes),
            self.engine.move_s,
            self.engine.partition_s,
            [node.id for node in machine.nodes],
            self.program.spreads,
        )
        self.parts = PartsInPlay(layout, self.model)
        self.paths = ScanPaths(
            self.program,
            costs,
            scenario.system.unchanging,
            scenario.policy_names.get("access-path", "none"),
        )
        self._sampled = scenario.policy_names.get("placer", "none") != "none"
        self._samples = 0
        self._core_of_node = _cores_by_node(workers.core_node, len(machine.nodes))
        self._allocated = [core for cores in self._core_of_node for core in cores]
        self._seen_at_s = 0.0
        self._seen = self.model.service_use()
        self._lasted: dict[str, float] = {}
        self._lasted_to_s = 0.0
        self._classes_before = self.model.class_counts()
        self._traffic_before = self.model.traffic()
        self._migrations_before = np.array(self.model.migrations())

    # -- time -------------------------------------------------------------------------------------

    def advance(self, until_s: float) -> None:
        """The use of parts is sampled on the way where a placer sees it."""
        while self._sampled and (at_s := (self._samples + 1) * SAMPLE_S) <= until_s + 1e-12:
            super().advance(min(at_s, until_s))
            self.parts.sample()
            self._samples += 1
        super().advance(until_s)

    def attend(self) -> None:
        """Copies have arrived."""
        now_s = self.model.now_ps / PS_PER_S
        self._change_at(now_s)
        self.parts.arrived(now_s)

    # -- the control plane ------------------------------------------------------------------------

    def observe(
        self, family: str
    ) -> PlacerObservation | StealingObservation | CoresObservation | AccessPathObservation:
        if family == "access-path":
            parts = tuple(self.parts.layout.parts.items())
            workers = self.program.scheduling.workers.tolist()
            return self.paths.seen(self.time_s, parts, workers)
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
            memory_bytes=lines * LINE_BYTES,
            interconnect_Bps=float(link_Bps.sum()),
            controllers_Bps=float(lines.sum() * LINE_BYTES / passed_s),
        )

    def _positions(self) -> Ints:
        return np.array(sorted(self._allocated), dtype=np.int64)

    def apply(self, commands: Sequence[Command]) -> None:
        self._change_at(self.time_s)
        allocated, paths = list(self._allocated), self.paths.current
        for command in commands:
            if isinstance(command, StartPhase):
                self._start_phase(command)
            elif isinstance(command, AllowStealing):
                may_steal = [name in command.classes for name in self.program.classes]
                self.model.allow(may_steal, command.within_node)
            elif isinstance(command, ChoosePath):
                self.paths.choose(command)
            elif isinstance(command, AllocateCore):
                allocated.append(self._core_of_node[command.node][command.core])
            elif isinstance(command, ReleaseCore):
                allocated.remove(self._core_of_node[command.node][command.core])
            else:
                self.parts.order(command, self.time_s)
        if paths != self.paths.current:
            self.model.set_paths(self.paths.current)
        if allocated != self._allocated:
            self._allocated = allocated
            # Workers, or processors where the operating system moves threads: both know their core.
            self.model.use([core in allocated for core in self.workers.core.tolist()])

    def _start_phase(self, command: StartPhase) -> None:
        shares = mix_shares(command.phase, self.workload.operations)
        each = [shares.get(query.name, 0.0) for query in self.program.queries]
        self.model.set_mix(np.cumsum(each).tolist())

    # -- see ModelPlane ---------------------------------------------------------------------------

    @property
    def events(self) -> Sequence[ControlEvent]:
        return self.parts.layout.events

    def start_counting(self) -> None:
        super().start_counting()
        self._lasted, self._lasted_to_s = {}, self.time_s
        self._classes_before = self.model.class_counts()
        self._traffic_before = self.model.traffic()
        self._migrations_before = np.array(self.model.migrations())

    def totals(self) -> Mapping[str, float]:
        """With the flow plane's columns of parts, cores and stolen tasks."""
        counted, latencies_ns = self.player.sums()
        stolen = (self.model.class_counts() - self._classes_before)[:, 4].astype(np.float64)
        columns = (f"stolen/{name}" for name in self.program.classes)
        return (
            dict(self.totals_of(counted, latencies_ns.tolist()))
            | self._lasted_until(self.time_s)
            | dict(zip(columns, stolen.tolist(), strict=True))
        )

    def _lasted_until(self, time_s: float) -> dict[str, float]:
        """Integrals of how many parts and allocated cores there were."""
        passed_s, layout = time_s - self._lasted_to_s, self.parts.layout
        now = {f"parts/{name}": len(parts) for name, parts in layout.parts.items()}
        now["allocated cores"] = len(self._allocated)
        return {name: self._lasted.get(name, 0.0) + count * passed_s for name, count in now.items()}

    def _change_at(self, time_s: float) -> None:
        """Parts or cores may be others from now on."""
        self._lasted, self._lasted_to_s = self._lasted_until(time_s), time_s

    def facts(self, counted: Counted) -> Mapping[str, Any]:
        """What the flow plane tells, by the same names. Pages, parts, tasks that
        wait or run, and averages are as they are now, all else since counting began.
        """
        now, names = self.model.class_counts(), self.program.classes
        made, done, _, _, stolen = (now - self._classes_before).T.tolist()
        averages = self._stealing_sees().memory_Bps
        classes = {
            name: {
                "made": made[k],
                "waiting": int(now[k, 2]),
                "running": int(now[k, 3]),
                "memory_Bps": None if np.isnan(averages[name]) else averages[name],
            }
            for k, name in enumerate(names)
        }
        total_s = self.time_s - counted.since_ps / PS_PER_S
        traffic = (self.model.traffic() - self._traffic_before) / total_s
        migrations = (np.array(self.model.migrations()) - self._migrations_before).tolist()
        return {
            "pages_moved": self.parts.layout.arrived_pages,
            "parts": {
                name: [[part.rows, self._id(part.node)] for part in parts]
                for name, parts in self.parts.layout.parts.items()
            },
            "layout": [list(event) for event in self.parts.layout.history],
            "tasks": dict(zip(names, done, strict=True)),
            "stolen": dict(zip(names, stolen, strict=True)),
            "classes": classes,
            "traffic_Bps": traffic.tolist(),
            "interconnect_ratio": interconnect_ratio(traffic),
            "queued": self.model.waiting().tolist(),
            "migrations": dict(zip(MIGRATIONS, migrations, strict=True)),
        }

    def _id(self, node: int | None) -> int | None:
        return None if node is None else self.machine.nodes[node].id

    def check(self) -> None:
        """Tasks made are done, wait or run; pages that were sent have arrived."""
        super().check()
        self.parts.layout.check()

    def outcome(self) -> Outcome:
        """Cores where threads run, or look for work, take their active power."""
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
