"""The native plane of tasks: real workers on this host, under the same policies of stealing.

One engine serves all replications of a run: its tables stay; in each, clients begin anew.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....inputs import InputError
from ....inputs.progress import Progress
from ....sim.kernel.arrays import Floats
from ....sim.kernel.histogram import Histogram
from ....sim.kernel.streams import stream_key
from ....sim.planes.outcome import ControlEvent, Outcome, ResourceUse, Why
from ....sim.planes.plane import Command, Experiment, Maker, StartPhase
from ....sim.systems.tasks.build import mix_shares
from ....sim.systems.tasks.commands import (
    AllocateCore,
    AllowStealing,
    CoresObservation,
    MergeTable,
    MovePart,
    PartitionTable,
    PlacerObservation,
    ReleaseCore,
    StealingObservation,
    SwitchNode,
)
from ....sim.systems.tasks.facts import ENGINE, TasksFacts
from ....sim.systems.tasks.history import CLIENT_MIX
from ....sim.systems.tasks.piece_log import interconnect_ratio
from ... import _engine
from ..._engine import TaskEngine
from ...host_mapping import threads_waited_ns
from ...outcomes import SLICE_S, TAKEN, limit_of_workers, no_memory
from .placing import NativePlacing
from .setup import has_placer, tasks_plan


@dataclass(frozen=True)
class Counts:
    """Sums since the engine was made. (n, classes) ``done``, ``stolen``, ``busy_s``, by node of the
    worker; (n, n) ``steals`` and ``traffic`` in bytes, by this and home; (K, 2) ``answered``: how
    often, and ns."""

    done: Floats
    stolen: Floats
    busy_s: Floats
    steals: Floats
    traffic: Floats
    answered: Floats

    def since(self, before: "Counts") -> "Counts":
        """What was counted since."""
        return Counts(*(getattr(self, k) - getattr(before, k) for k in self.__match_args__))


class TasksHost:
    """The engine of a scenario, its tables drawn and its workers waiting; ``module``: the compiled
    engine of this process, or a remote one with the same interface.
    """

    def __init__(self, scenario: Experiment, module: Any = _engine) -> None:
        self.plan, self.running = tasks_plan(scenario, module.host_facts()), False
        try:
            self.engine: TaskEngine = module.TaskEngine(self.plan.spec)
        except MemoryError as failure:
            raise no_memory(failure) from None
        except (OSError, ValueError) as failure:
            raise InputError(f"the native engine refuses: {failure}") from None

    def begin(self, scenario: Experiment, replication: int) -> None:
        """Clients of this replication ask; those of the one before have their answers."""
        self.stop()
        queries, mixed = self.plan.program.queries, self.plan.program.mix_clients
        first = sum(query.clients for query in queries)
        names = [CLIENT_MIX.format(first + client) for client in range(mixed)]
        self.engine.set_shares([query.share for query in queries])
        self.engine.allow([False] * len(self.plan.program.classes))
        self.engine.begin([stream_key(scenario.seed, replication, name) for name in names])
        self.running = True

    def stop(self) -> None:
        """Waits for the last answers."""
        if self.running:
            self.running = False
            self.engine.stop()
            self.check()

    def check(self) -> None:
        """Raises InputError where the host has no memory left for what queries make or parts that
        move, or lets none move."""
        try:
            self.engine.check()
        except MemoryError as failure:
            raise no_memory(failure) from None
        except ValueError as failure:
            raise InputError(f"the native engine refuses: {failure}") from None

    def counts(self) -> Counts:
        """Until now."""
        classes, nodes = len(self.plan.program.classes), len(self.plan.spec.queue_of)
        tallies = np.zeros((nodes, 3 * classes + 2 * nodes))
        for worker, node in enumerate(self.plan.worker_nodes):
            tallies[node] += self.engine.tally(worker)
        ends = np.cumsum([classes, classes, classes, nodes])
        done, stolen, busy_ns, steals, traffic = np.split(tallies, ends, axis=1)
        answered = np.array(self.engine.answered(), dtype=np.float64)
        return Counts(done, stolen, busy_ns * 1e-9, steals, traffic, answered)

    def migrations(self) -> int | None:
        """Until now, of threads that the operating system may move; None where there are none, or
        it reports none."""
        if self.plan.affinity == "core":
            return None
        each = [self.engine.migrations(k) for k in range(len(self.plan.worker_nodes))]
        return None if min(each) < 0 else sum(each)


class NativeTasks:
    """Runs one replication in real time; see ``RandomPlane`` for what its methods promise."""

    REAL_TIME = True

    def __init__(self, host: TasksHost, scenario: Experiment, replication: int) -> None:
        self.scenario, self._host, self._replication = scenario, host, replication
        self._engine, self._program = host.engine, host.plan.program
        self._names = [query.name for query in self._program.queries]
        self._began_s: float | None = None
        self._placing: NativePlacing | None = None
        if has_placer(scenario):
            self._placing = NativePlacing(scenario, host.engine, host.plan.mapping.host_node)
        self._allocated = set(host.plan.cpus)
        self._seen, self._seen_s = host.counts(), self._times_s()
        self.time_s = 0.0
        self.start_counting()

    def advance(self, until_s: float) -> None:
        """Raises InputError where a worker failed."""
        if self._began_s is None:
            self._host.begin(self.scenario, self._replication)
            self._move_threads()
            self._began_s = time.monotonic()
            self.start_counting()
        slice_s = SLICE_S
        while (left_s := self._began_s + until_s - time.monotonic()) > 0:
            if self._placing is not None:
                slice_s = self._placing.attend(time.monotonic() - self._began_s)
            time.sleep(min(left_s, slice_s))
            self._host.check()
        if self._placing is not None:
            self._placing.attend(until_s)
        self.time_s = until_s

    def observe(self, family: str) -> StealingObservation | CoresObservation | PlacerObservation:
        """What tasks ask of memory, caches aside; of cores, how busy the process keeps them."""
        if family == "cores":
            return self._cores_seen()
        if family == "placer":
            assert self._placing is not None
            return self._placing.seen(self.time_s)
        classes = self._program.classes
        each = [self._engine.class_Bps(k) for k in range(len(classes))]
        waiting, idle = np.array(self._engine.waiting(), dtype=np.int64).T
        facts = self.scenario.machine.description.facts_of(ENGINE, TasksFacts) or TasksFacts()
        return StealingObservation(
            time_s=self.time_s,
            memory_Bps={
                name: Bps if Bps >= 0 else np.nan for name, Bps in zip(classes, each, strict=True)
            },
            waiting=waiting,
            idle=idle,
            threshold_Bps=facts.threshold_Bps,
        )

    def _cores_seen(self) -> CoresObservation:
        now, now_s = self._host.counts(), self._times_s()
        more, cpus = now.since(self._seen), self._host.plan.cpus
        traffic = more.traffic
        passed_s, ran_s = np.maximum(np.subtract(now_s, self._seen_s), 1e-9)
        self._seen, self._seen_s = now, now_s
        allocated_s = passed_s * sum(len(cpus[core]) for core in self._allocated)
        nodes = [node for node, _ in cpus]
        return CoresObservation(
            time_s=self.time_s,
            cores=np.bincount(nodes, minlength=len(traffic)),
            allocated=tuple(sorted(self._allocated)),
            # Tasks take no more than either: the process's time has polling in it, that of busy
            # workers has their waits for a processor.
            cpu_load=min(float(min(ran_s, more.busy_s.sum()) / allocated_s), 1.0),
            memory_bytes=traffic.sum(axis=0),
            interconnect_Bps=float((traffic.sum() - traffic.trace()) / passed_s),
            controllers_Bps=float(traffic.sum() / passed_s),
        )

    def _times_s(self) -> tuple[float, float]:
        """What the clock says; of processors, what the engine's process has had."""
        return time.monotonic(), self._called("time.process_time")

    def _called(self, name: str, *arguments: Any) -> Any:
        """A function of Python's, where the engine runs."""
        module, _, function = name.partition(".")
        return getattr(sys.modules[module], function)(*arguments)

    def _move_threads(self) -> None:
        """Workers may run on the allocated cores; on those of their node, where they stay on it."""
        plan = self._host.plan
        for worker, node in enumerate(plan.worker_nodes if plan.affinity != "core" else ()):
            cpus = [
                cpu
                for home, core in self._allocated
                if plan.affinity == "none" or home == node
                for cpu in plan.cpus[home, core]
            ]
            while not (thread := self._engine.thread(worker)):
                self._host.check()  # it has not begun
            try:
                self._called("os.sched_setaffinity", thread, cpus)
            except OSError as failure:
                raise InputError(f"workers on CPUs {cpus}: {failure.strerror}") from None

    def apply(self, commands: Sequence[Command]) -> None:
        """Phases of the mix, which classes may be stolen, and where threads may run."""
        for command in commands:
            if isinstance(command, StartPhase):
                shares = mix_shares(command.phase, self.scenario.workload.operations)
                self._engine.set_shares([shares.get(name, 0.0) for name in self._names])
            elif isinstance(command, MovePart | PartitionTable | MergeTable):
                assert self._placing is not None
                self._placing.order(command, self.time_s)
            elif isinstance(command, AllocateCore | ReleaseCore | SwitchNode):
                # What is told changes: cores that stop ran, those that come back did not.
                self._allocated ^= {
                    (node, core)
                    for node, core in self._host.plan.cpus
                    if node == command.node
                    and (isinstance(command, SwitchNode) or core == command.core)
                }
                self._move_threads()
            else:
                assert isinstance(command, AllowStealing)
                self._engine.allow([name in command.classes for name in self._program.classes])

    def start_counting(self) -> None:
        self._since, self._since_s = self._host.counts(), time.monotonic()
        self._moved_before = self._host.migrations()
        self._waited_before_ns = threads_waited_ns()

    def totals(self) -> Mapping[str, float]:
        more, found = self._host.counts().since(self._since), {}
        for name, (done, ns) in zip(self._names, more.answered.tolist(), strict=True):
            found[f"throughput/{name}"] = done
            found[f"under_way/{name}"] = ns * 1e-9
        found |= {f"stolen/{name}": count for name, count in self._by_class(more.stolen).items()}
        return found | {f"utilisation/{name}": busy_s for name, _, busy_s in self._busy(more)}

    def _moved(self) -> dict[str, int]:
        """Migrations while it counted, where they are known."""
        before, now = self._moved_before, self._host.migrations()
        return {} if before is None or now is None else {"migrations": now - before}

    def _by_class(self, counts: Floats) -> dict[str, float]:
        """Of all nodes together."""
        return dict(zip(self._program.classes, counts.sum(axis=0).tolist(), strict=True))

    def _busy(self, more: Counts) -> Iterator[tuple[str, int, float]]:
        """Of each node with workers: name, id, and for how long they were busy on average."""
        nodes, workers = np.unique(self._host.plan.worker_nodes, return_counts=True)
        for node, count in zip(nodes.tolist(), workers.tolist(), strict=True):
            number = self.scenario.machine.nodes[node].id
            yield f"cores of node {number}", number, float(more.busy_s[node].sum()) / count

    def outcome(self) -> Outcome:
        self._host.check()
        more, counted_s = self._host.counts().since(self._since), time.monotonic() - self._since_s
        waited_s = (threads_waited_ns() - self._waited_before_ns) * 1e-9
        waited = min(waited_s / (counted_s * len(self._host.plan.worker_nodes)), 1.0)
        done = dict(zip(self._names, more.answered[:, 0].tolist(), strict=True))
        uses = tuple(
            ResourceUse(name, "cores", min(busy_s / counted_s, 1.0), node=node)
            for name, node, busy_s in self._busy(more)
        )
        latencies = {}
        for k, name in enumerate(self._names):
            begin = int(self._since.answered[k, 0])
            taken = self._engine.latencies(k, begin)[: int(done[name])]
            latencies[name] = Histogram.of_values([ns * 1_000 for ns in taken])
        limit = limit_of_workers(np.array([use.utilisation for use in uses]), paced=False)
        busy_ns = more.busy_s.sum(axis=0) * 1e9
        why = {name: Why(limit, (), part) for name, part in self._parts(busy_ns, done).items()}
        return Outcome(
            throughput={name: count / counted_s for name, count in done.items()},
            operations=done,
            bandwidth_Bps={"memory": None, "links": None},
            resources=uses,
            why=why,
            events=self._placed(),
            model=self._facts(more, counted_s, waited),
            warnings=tuple(self._warnings(waited, sum(done.values()))),
            steps=int(more.done.sum()),
            latencies_ns=latencies,
        )

    def _placed(self) -> tuple[ControlEvent, ...]:
        """When parts moved."""
        return () if self._placing is None else tuple(self._placing.layout.events)

    def _parts(self, busy_ns: Floats, done: Mapping[str, int]) -> dict[str, dict[str, float]]:
        """By query that was answered, ns of each of its classes, for an answer of those with it."""
        of = {q.name: {one.task_class for one in q.stages} for q in self._program.queries}
        each = {}
        for name, ns in zip(self._program.classes, busy_ns.tolist(), strict=True):
            answers = sum(done[query] for query, classes in of.items() if name in classes)
            each[name] = ns / answers if answers else 0.0
        return {q: {n: each[n] for n in each if n in of[q]} for q in of if done[q]}

    def _facts(self, more: Counts, counted_s: float, waited: float) -> dict[str, Any]:
        """What the event plane tells, by the same names, and what this host did with it."""
        traffic, mapping = more.traffic, self._host.plan.mapping
        return {
            **({} if self._placing is None else self._placing.control.described()),
            "tasks": self._by_class(more.done),
            "stolen": self._by_class(more.stolen),
            **self._moved(),
            "traffic_Bps": (traffic / counted_s).tolist(),
            "interconnect_ratio": interconnect_ratio(traffic),
            "native": {
                "workers": len(self._host.plan.worker_nodes),
                "host_nodes": len(set(mapping.host_node)),
                "scale": self.scenario.scale,
                "steals": more.steals.tolist(),  # by node of the thief, and home
                "waited_for_processors": waited,
            },
        }

    def _warnings(self, waited: float, answers: float) -> Iterator[str]:
        yield from self._host.plan.notes
        cpus = sum(map(len, self._host.plan.cpus.values()))
        if waited > TAKEN and len(self._host.plan.worker_nodes) <= cpus:
            yield "this host was busy with other work: workers waited for their processors"
        if not answers:
            yield "no query was answered while it was counted"


@contextmanager
def native_tasks(loading: Progress | None = None) -> Iterator[Maker]:
    """Makes the planes of a run. ``loading`` is never called: tables are drawn at once."""
    host: list[TasksHost] = []

    def make(experiment: Experiment, replication: int) -> NativeTasks:
        if host and has_placer(experiment):
            host.pop().stop()  # its parts lie elsewhere by now
        if not host:
            host.append(TasksHost(experiment))
        return NativeTasks(host[0], experiment, replication)

    try:
        yield make
        for one in host:
            one.stop()
    finally:
        host.clear()  # ends the workers
