"""The event and the reference plane of tasks: task by task, compiled or in SimPy.

The models of tasks as the planes use them: the compiled one and SimPy's, with the same calls.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..._kernel import TaskModel as KernelTaskModel
from ..._kernel import TaskSetup
from ...kernel.arrays import Floats, Ints
from ...kernel.histogram import Histogram, merged
from ...kernel.picoseconds import PS_PER_S
from ...kernel.streams import stream_key
from ...machine.costs import LINE_BYTES, CostModel
from ...planes.availability import Look, Looks
from ...planes.model_plane import Counted, ModelPlane, Sums, SumsPlayer
from ...planes.outcome import ControlEvent
from ...planes.plane import Command, Experiment, StartPhase
from .commands import (
    SAMPLE_S,
    AccessPathObservation,
    AllowStealing,
    CoresObservation,
    PlacerCommand,
    PlacerObservation,
    StealingObservation,
)
from .control_state import ControlState
from .history import ARRIVAL_MIX, ARRIVALS, CLIENT_MIX, CLIENT_THINK
from .layout import Copy, Layout, PartState
from .parameters import INTERLEAVED, home_of, task_setup
from .piece_log import interconnect_ratio
from .reference.model import TaskModel as SimpyTaskModel
from .reference.moved_workers import MovedWorkers
from .reference.tasks import Use

Counts = Mapping[str, Any]
"""Since time 0. Of nodes (n,): ``lines_read`` and ``lines_written`` of each home, busy times
``controller_ps``, ``waiting`` tasks, ``idle`` workers and how long these ``looked_ps`` for work;
``traffic`` (n, n): bytes that threads of a node read and wrote at a home, of ended tasks.
``link_ps`` (2L,), ``core_ps`` (C,): busy times, those of copying threads last. ``answered``,
``latency_ps`` (K,): of queries, in all. ``classes`` [classes, 5]: tasks made, done, waiting,
running, stolen; ``class_bytes_per_ps``: of a task, exponential averages, below 0 before the first
has ended. ``migrations`` (4,): of threads to another processor, of the core, the cache, the node,
beyond. Numbers: ``asked`` queries, ``parts_waiting`` (tasks that wait for parts that move)."""

LocalUse = tuple[Ints, Floats]
"""CPU time in ps, and bytes, of tasks that were not stolen: of nodes or of parts."""


class EventModel(KernelTaskModel):
    """The compiled model, of one replication; ``traced``: it keeps its trace."""

    def __init__(self, setup: TaskSetup, seed: int, replication: int, traced: bool = False) -> None:
        clients = range(len(setup.client_query))
        names = [name.format(client) for client in clients for name in (CLIENT_MIX, CLIENT_THINK)]
        keys = [stream_key(seed, replication, name) for name in (*names, ARRIVAL_MIX, ARRIVALS)]
        super().__init__(setup, keys, seed, replication, traced)

    def latencies(self) -> tuple[Histogram, ...]:
        """(K,) of queries, in ns."""
        totals_ps: list[float] = self.counts()["latency_ps"].tolist()
        buckets = map(self.latency_buckets, range(len(totals_ps)))
        return tuple(map(Histogram.of_kernel, buckets, totals_ps))


class ReferenceModel(SimpyTaskModel):
    """The model in SimPy, as ``EventModel``."""

    def __init__(self, setup: TaskSetup, seed: int, replication: int, traced: bool = False) -> None:
        super().__init__(setup, seed, replication)
        self._traced = traced

    @property
    def now_ps(self) -> int:
        return self.clock.now

    @property
    def events(self) -> int:
        return self.clock.events

    def take_arrived(self) -> Sequence[int]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def counts(self) -> Counts:
        workers, queries = self.workers, self.queries
        read, written, controller_ps, link_ps, core_ps = self.clock.service_use()
        n = workers.nodes  # an engine in a hub has a place of its own
        moved = workers.os.migrations if isinstance(workers, MovedWorkers) else [0] * 4
        free = [w.node for w in workers.workers if w.in_use and w.task is None]
        return {
            "asked": queries.asked,
            "answered": np.array(queries.answered, dtype=np.int64),
            "latency_ps": np.array([float(sum(all_)) for all_ in queries.latencies_ps]),
            "classes": np.array(
                [[c.made, c.done, c.waiting, c.running, c.stolen] for c in workers.classes]
            ),
            "class_bytes_per_ps": np.array([c.bytes_per_ps for c in workers.classes]),
            "waiting": np.array([len(queue) for queue in workers.queue], dtype=np.int64),
            "parts_waiting": sum(len(part.waiting) for part in queries.all_parts),
            "idle": np.bincount(np.array(free, dtype=np.int64), minlength=n),
            "looked_ps": np.array(workers.looked_up_to_now(), dtype=np.int64),
            "migrations": np.array(moved),
            "traffic": np.array(workers.traffic),
            "lines_read": read[:n],
            "lines_written": written[:n],
            "controller_ps": controller_ps[:n],
            "link_ps": link_ps,
            "core_ps": core_ps,
        }

    def latencies(self) -> tuple[Histogram, ...]:
        return tuple(map(Histogram.of_values, self.queries.latencies_ps))

    def node_use(self) -> LocalUse:
        return self._local(self.workers.node_use)

    def part_use(self) -> LocalUse:
        return self._local([part.use for part in self.queries.all_parts])

    def _local(self, uses: Sequence[Use]) -> LocalUse:
        uses = [replace(use) for use in uses]
        for use in uses:
            use.until(self.now_ps)
        cpu_ps = np.array([use.cpu_ps for use in uses], dtype=np.int64)
        return cpu_ps, np.array([use.bytes for use in uses])

    def parts(self, table: int) -> Sequence[int]:
        return [part.number for part in self.queries.parts[table]]

    def trace(self) -> Ints:
        rows = self.clock.trace if self._traced else []
        return np.array(rows, dtype=np.int64).reshape(-1, 6)


Model: TypeAlias = EventModel | ReferenceModel


@dataclass(frozen=True, eq=False)
class TaskSums(Sums):
    """Of queries. ``counts``: all that the model has counted."""

    counts: Counts


class TasksPlayer(SumsPlayer[Model, TaskSums]):
    """Plays a model; ``core_node`` (C,): of the cores of workers."""

    def __init__(self, model: Model, costs: CostModel, core_node: Ints) -> None:
        self.core_node = core_node
        super().__init__(model, costs)

    def sums_now(self) -> TaskSums:
        counts = self.model.counts()
        return TaskSums(
            now_ps=self.model.now_ps,
            done=counts["answered"],
            latency_ps=counts["latency_ps"],
            lines=counts["lines_read"] + counts["lines_written"],
            memory_ps=counts["controller_ps"],
            link_ps=counts["link_ps"],
            core_ps=counts["core_ps"][: len(self.core_node)],
            counts=counts,
        )

    def histograms(self) -> tuple[Histogram, ...]:
        return self.model.latencies()

    @property
    def active_thread_s(self) -> Floats:
        """(n,) time that threads of each node ran tasks or looked for some."""
        looked_ps, core_ps = self.since("looked_ps"), self.now.core_ps - self.before.core_ps
        ran_ps = np.bincount(self.core_node, core_ps, len(looked_ps))
        return np.asarray((looked_ps + ran_ps) / PS_PER_S)

    def since(self, name: str) -> npt.NDArray[Any]:
        """What was counted of that name."""
        return np.asarray(self.now.counts[name] - self.before.counts[name])

    def check(self) -> None:
        super().check()
        counts = self.model.counts()
        made, done, waiting, running, _ = counts["classes"].sum(axis=0).tolist()
        if made != done + waiting + running:
            raise RuntimeError(f"of {made} tasks {made - done - waiting - running} were lost")
        if waiting != int(counts["waiting"].sum()) + counts["parts_waiting"]:
            raise RuntimeError("tasks wait in no queue")


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
        self._looks = Looks(self.control.failing, scenario.horizon_s, self._look)

    def advance(self, until_s: float) -> None:
        """The use of parts is sampled on the way where a placer sees it, and what is done looked at
        where something fails."""
        self._looks.advance(until_s, self._advance)

    def _advance(self, until_s: float) -> None:
        while self._sampled and (at_s := (self._samples + 1) * SAMPLE_S) <= until_s + 1e-12:
            super().advance(min(at_s, until_s))
            self.parts.sample()
            self._samples += 1
        super().advance(until_s)

    def _look(self, time_s: float) -> Look:
        """All queries that are answered by then, and how long they took."""
        latencies = self.model.latencies()
        return Look(time_s, float(sum(of.count for of in latencies)), merged(latencies))

    def attend(self) -> None:
        """Copies have arrived."""
        now_s = self.model.now_ps / PS_PER_S
        self._change_at(now_s)
        self.parts.arrived(now_s)

    def observe(
        self, family: str
    ) -> PlacerObservation | StealingObservation | CoresObservation | AccessPathObservation:
        if family == "access-path":
            return self.control.paths_seen(self.time_s, self.program.scheduling.workers.tolist())
        if family == "placer":
            threads = self.program.scheduling.workers
            return self.control.parts_seen(self.time_s, threads, *self.parts.observed())
        if family == "stealing":
            return self._stealing_sees()
        return self._cores_sees()

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
        cost = self._looks.cost(self.time_s)
        return {
            **self.control.described(),
            **({"queries": cost} if cost else {}),
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
        of_a_core = float(max(self.workers.on_cores.max(initial=1.0), 1.0))
        active = self.player.active_thread_s / total_s / of_a_core
        return np.minimum(active, self.control.cores)


event_plane = partial(TasksEvents, EventModel)
"""Makes the event plane, from a scenario and the number of a replication."""

reference_plane = partial(TasksEvents, ReferenceModel)
"""The same, of the reference plane."""


class PartsInPlay:
    """``layout`` decides; what changes there is carried out in the model."""

    def __init__(self, layout: Layout, model: Model) -> None:
        self.layout, self.model = layout, model
        self._positions = {name: k for k, name in enumerate(layout.parts)}
        self._known: dict[str, tuple[PartState, ...]] = dict(layout.parts)
        self._nodes: list[LocalUse] = [model.node_use()]
        self._parts: list[LocalUse] = [model.part_use()]
        self._seen = _samples(self._nodes * 2), _samples(self._parts * 2)

    def order(self, command: PlacerCommand, time_s: float) -> None:
        """Begins to move, partition or merge."""
        self._begin(self.layout.order(command, time_s))

    def arrived(self, time_s: float) -> None:
        """Copies have arrived; others may follow."""
        for number in self.model.take_arrived():
            self._begin(self.layout.arrived(number, time_s))

    def _begin(self, copies: Sequence[Copy]) -> None:
        self._carry_out()
        for copy in copies:
            self._copy(copy)

    def _copy(self, copy: Copy) -> None:
        source = INTERLEAVED - copy.spread if copy.source is None else copy.source
        page_ps = copy.page_s * PS_PER_S
        self.model.copy(copy.number, source, copy.target, copy.pages, page_ps)

    def _carry_out(self) -> None:
        """The model's parts become those of the layout."""
        for name, parts in self.layout.parts.items():
            known, table = self._known[name], self._positions[name]
            if [part.rows for part in parts] != [part.rows for part in known]:
                nodes = [home_of(part) for part in parts]
                self.model.set_parts(table, [part.rows for part in parts], nodes)
                known = tuple(PartState(p.rows, p.node, p.pages, spread=p.spread) for p in parts)
            for k, (part, before) in enumerate(zip(parts, known, strict=True)):
                if part.blocked and not before.blocked:
                    self.model.block(table, k)
                elif before.blocked > part.blocked or before.node != part.node:
                    assert part.node is not None
                    if not before.blocked:  # what waits for workers goes there, too
                        self.model.block(table, k)
                    self.model.place(table, k, part.node)
            self._known[name] = parts

    def sample(self) -> None:
        """Takes a sample now, ``SAMPLE_S`` after the last one."""
        self._nodes.append(self.model.node_use())
        self._parts.append(self.model.part_use())

    def observed(
        self,
    ) -> tuple[tuple[Floats, Floats], dict[tuple[str, int], tuple[Floats, Floats]]]:
        """Threads of local tasks, and what these read and write, of the samples since this was last
        asked (of those before, where there are none since): of nodes (n, S), and of each part (S,)
        by table and position.
        """
        if len(self._nodes) > 1:
            self._seen = _samples(self._nodes), _samples(self._parts)
        nodes, (cpu, memory_Bps) = self._seen
        self._nodes, self._parts = self._nodes[-1:], self._parts[-1:]
        return nodes, {
            (table, p): (cpu[number], memory_Bps[number])
            for table, position in self._positions.items()
            for p, number in enumerate(self.model.parts(position))
            if number < len(cpu)
        }


def _samples(sums: Sequence[LocalUse]) -> tuple[Floats, Floats]:
    """(k, S) threads and bytes per second, of sums (S + 1 of them) of up to k things."""
    count = len(sums[-1][0])
    cpu_ps, moved = np.zeros((len(sums), count)), np.zeros((len(sums), count))
    for k, (each_ps, each_bytes) in enumerate(sums):
        cpu_ps[k, : len(each_ps)], moved[k, : len(each_bytes)] = each_ps, each_bytes
    return np.diff(cpu_ps, axis=0).T / PS_PER_S / SAMPLE_S, np.diff(moved, axis=0).T / SAMPLE_S
