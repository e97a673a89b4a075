"""The event and the reference plane of tasks: task by task, compiled or in SimPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._kernel import TaskSetup
from ...kernel.picoseconds import PS_PER_S
from ...machine.costs import LINE_BYTES, CostModel
from ...planes.experiment import Experiment
from ...planes.model_plane import Counted, ModelPlane
from ...planes.outcome import ControlEvent
from ...planes.plane import Command, StartPhase
from .commands import (
    SAMPLE_S,
    AccessPathObservation,
    AllowStealing,
    CoresObservation,
    PlacerObservation,
    StealingObservation,
)
from .control_state import ControlState
from .models import EventModel, Model, ReferenceModel
from .parameters import task_setup
from .parts_in_play import PartsInPlay
from .piece_log import interconnect_ratio
from .player import TasksPlayer

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ModelMaker = Callable[[TaskSetup, int, int], Model]
"""From a setup, seed and replication."""

MIGRATIONS = ("in a core", "in a cache", "in a node", "between nodes")


class TasksEvents(ModelPlane[TasksPlayer]):
    """Runs one replication; see ``plane.RandomPlane`` for what its methods promise."""

    def __init__(self, make: ModelMaker, scenario: Experiment, replication: int) -> None:
        costs = CostModel(scenario.machine)
        self.control = ControlState(scenario, costs)
        self.program, workers = self.control.program, self.control.placed
        self.model = make(task_setup(self.program, costs), scenario.seed, replication)
        player = TasksPlayer(self.model, costs, workers.core_node)
        super().__init__(scenario, costs, workers, player)
        self.parts = PartsInPlay(self.control.layout, self.model)
        self._sampled = scenario.policy_names.get("placer", "none") != "none"
        self._samples = 0
        self._cores = {
            (node, k): core
            for node in range(len(self.machine.nodes))
            for k, core in enumerate(np.flatnonzero(workers.core_node == node).tolist())
        }
        self._seen_at_s = 0.0
        self._seen = self.model.counts()
        self._lasted: dict[str, float] = {}
        self._lasted_to_s = 0.0

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
            return self.control.paths_seen(self.time_s, self.program.scheduling.workers.tolist())
        if family == "placer":
            return self._placer_sees()
        if family == "stealing":
            return self._stealing_sees()
        return self._cores_sees()

    def _placer_sees(self) -> PlacerObservation:
        threads = self.program.scheduling.workers
        return self.control.parts_seen(self.time_s, threads, *self.parts.observed())

    def _stealing_sees(self) -> StealingObservation:
        counts = self.model.counts()
        each = counts["class_bytes_per_ps"] * PS_PER_S
        averages = np.where(each < 0, np.nan, each).tolist()
        return StealingObservation(
            time_s=self.time_s,
            memory_Bps=dict(zip(self.program.classes, averages, strict=True)),
            waiting=counts["waiting"],
            idle=counts["idle"],
            threshold_Bps=self.control.facts.threshold_Bps,
        )

    def _cores_sees(self) -> CoresObservation:
        before, now = self._seen, self.model.counts()
        passed_s = max(self.time_s - self._seen_at_s, 1e-12)
        self._seen, self._seen_at_s = now, self.time_s
        used = (now["core_ps"] - before["core_ps"])[self._positions()]
        threads = self.workers.on_cores[self._positions()]
        lines = now["lines_read"] + now["lines_written"]
        lines = lines - before["lines_read"] - before["lines_written"]
        link_Bps = (now["link_ps"] - before["link_ps"]) / PS_PER_S * self.costs.link_Bps / passed_s
        return self.control.cores_seen(
            self.time_s,
            float(used.sum() / (threads.sum() * passed_s * PS_PER_S)),
            lines * LINE_BYTES,
            float(link_Bps.sum()),
            float(lines.sum() * LINE_BYTES / passed_s),
        )

    def _positions(self) -> Ints:
        """Of allocated cores, rising."""
        return np.array(sorted(self._cores[core] for core in self.control.allocated))

    def apply(self, commands: Sequence[Command]) -> None:
        self._change_at(self.time_s)
        allocated, paths = set(self.control.allocated), self.control.paths.current
        for command in commands:
            if isinstance(command, StartPhase):
                self.model.set_mix(np.cumsum(self.control.shares(command.phase)).tolist())
            elif isinstance(command, AllowStealing):
                may_steal = [name in command.classes for name in self.program.classes]
                self.model.allow(may_steal, command.within_node)
            elif not self.control.apply(command):
                self.parts.order(command, self.time_s)
        if paths != self.control.paths.current:
            self.model.set_paths(self.control.paths.current)
        if allocated != self.control.allocated:
            used = set(self._positions().tolist())
            # Workers, or processors where the operating system moves threads: both know their core.
            self.model.use([core in used for core in self.workers.core.tolist()])

    # -- see ModelPlane ---------------------------------------------------------------------------

    @property
    def events(self) -> Sequence[ControlEvent]:
        return self.parts.layout.events

    def start_counting(self) -> None:
        super().start_counting()
        self._lasted, self._lasted_to_s = {}, self.time_s

    def totals(self) -> Mapping[str, float]:
        """With the flow plane's columns of parts, cores and stolen tasks."""
        counted, latencies_ns = self.player.sums()
        stolen = self.player.since("classes")[:, 4].astype(np.float64)
        columns = (f"stolen/{name}" for name in self.program.classes)
        return (
            dict(self.totals_of(counted, latencies_ns.tolist()))
            | self._lasted_until(self.time_s)
            | dict(zip(columns, stolen.tolist(), strict=True))
        )

    def _lasted_until(self, time_s: float) -> dict[str, float]:
        """Integrals of how many parts and allocated cores there were."""
        passed_s, now = time_s - self._lasted_to_s, self.control.columns()
        return {name: self._lasted.get(name, 0.0) + count * passed_s for name, count in now.items()}

    def _change_at(self, time_s: float) -> None:
        """Parts or cores may be others from now on."""
        self._lasted, self._lasted_to_s = self._lasted_until(time_s), time_s

    def facts(self, counted: Counted) -> Mapping[str, Any]:
        """What the flow plane tells, by the same names. Pages, parts, tasks that
        wait or run, and averages are as they are now, all else since counting began.
        """
        counts, names = self.player.now.counts, self.program.classes
        now = counts["classes"]
        made, done, _, _, stolen = self.player.since("classes").T.tolist()
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
        traffic = self.player.since("traffic") / total_s
        migrations = self.player.since("migrations").tolist()
        return {
            **self.control.described(),
            "tasks": dict(zip(names, done, strict=True)),
            "stolen": dict(zip(names, stolen, strict=True)),
            "classes": classes,
            "traffic_Bps": traffic.tolist(),
            "interconnect_ratio": interconnect_ratio(traffic),
            "queued": counts["waiting"].tolist(),
            "migrations": dict(zip(MIGRATIONS, migrations, strict=True)),
        }

    def check(self) -> None:
        """Tasks made are done, wait or run; pages that were sent have arrived."""
        super().check()
        self.parts.layout.check()

    def active_cores(self, total_s: float) -> Floats:
        """Where threads run, or look for work."""
        active = self.player.active_thread_s / total_s / _threads_of_a_core(self.workers.on_cores)
        return np.minimum(active, self.control.cores)


def _threads_of_a_core(on_cores: Floats) -> float:
    return float(max(on_cores.max(initial=1.0), 1.0))


event_plane = partial(TasksEvents, EventModel)
"""Makes the event plane, from a scenario and the number of a replication."""

reference_plane = partial(TasksEvents, ReferenceModel)
"""The same, of the reference plane."""
