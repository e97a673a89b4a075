"""The native plane of systems that commit transactions: one replication, on this host, for real."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ....inputs.progress import Progress
from ....sim.kernel.histogram import Histogram
from ....sim.planes.availability import Look, availability, looks_at
from ....sim.planes.outcome import ControlEvent, Outcome, ResourceUse, Why
from ....sim.planes.plane import Experiment, Maker, Unsteered
from ....sim.systems.commits.faults import fault_events
from ....sim.systems.commits.history import OUTCOME, snapshot_isolation_violations
from ....sim.systems.commits.servers import faults
from ....sim.systems.commits.spec import CommitSystem
from ....sim.systems.commits.why import binding
from ...host_mapping import cpu_ns
from ...outcomes import network_outcome
from ...transports import THREADS
from .cluster import CommitCluster
from .counted import Counted, engine_facts
from .setup import commit_plan


class NativeCommits(Unsteered):
    """Runs one replication in real time; see ``RandomPlane`` for what its methods promise."""

    REAL_TIME = True
    # A look takes most of a millisecond from a processor that clients or servers need: fifty a
    # second would hit one in fifty of the transactions that take some 300 µs.
    LOOK_EVERY_S = 0.1

    def __init__(
        self, scenario: Experiment, replication: int = 1, transport: str | None = None
    ) -> None:
        system = scenario.system
        assert isinstance(system, CommitSystem)
        self.scenario, self.system, self.replication = scenario, system, replication
        self._checked: dict[str, Any] = {}
        self.plan = commit_plan(scenario, replication, transport)
        self.parameters = self.plan.parameters
        self.operation, _ = system.transaction(scenario.workload)
        self._clients = len(self.parameters.client_machine)
        self._seen_killed: set[int] = set()
        self._deaths: list[ControlEvent] = []
        self._warned: list[str] = []
        self._after_death: Counted | None = None  # soon after the last one that nobody asked for
        self._ran_ns = np.zeros(self.plan.roles, dtype=np.int64)
        self._waited_ns = np.zeros(self.plan.roles, dtype=np.int64)
        self._started = self._stopped = False
        self.time_s = 0.0
        self.cluster = CommitCluster(self.plan.settings, self.plan.transport)
        self._before = self._now = self._count()

    def advance(self, until_s: float) -> None:
        """Raises InputError where a server died."""
        if not self._started:
            self.cluster.start()
            self._started = True
            self.start_counting()  # not what loading took
        while (left_s := until_s - self.cluster.board.now_ns * 1e-9) > 0:
            self.cluster.wait_until(until_s - max(left_s - 0.1, 0.0))
            self._look_for_dead()
        self.cluster.check()
        self.time_s = until_s

    def start_counting(self) -> None:
        self._before = self._count()

    def totals(self) -> Mapping[str, float]:
        counted = self._count().since(self._before)
        found = {
            f"throughput/{self.operation}": float(counted.commits),
            f"under_way/{self.operation}": counted.latency_total_ps * 1e-12,
        }
        for use, busy_ns in zip(self._uses(counted), self._busy_ns(counted), strict=False):
            found[f"utilisation/{use.name}"] = busy_ns * 1e-9
        return found

    def outcome(self) -> Outcome:
        """The run is over then: its processes are stopped."""
        if not self._stopped:
            self._now = self._count()
            self.cluster.stop()
            self._look_for_dead()  # who died just before is noted by now
            self._stopped = True
            self._check_history()
            self.cluster.close()
        counted = self._now.since(self._before)
        counted = replace(counted, time_s=max(counted.time_s, 1e-9))
        latencies = Histogram.of_kernel(
            np.trim_zeros(counted.latencies, "b"), float(counted.latency_total_ps)
        )
        return network_outcome(
            self.operation,
            passed_s=counted.time_s,
            operations=counted.commits,
            sent_bytes=counted.bytes,
            resources=tuple(self._uses(counted)),
            why=self._why(counted),
            events=tuple(self._events()),
            facts=engine_facts(self.scenario, self.plan, counted) | self._checked,
            warnings=tuple(self._warnings(counted)),
            steps=counted.commits + int(counted.aborts.sum()),
            latencies=latencies,
        )

    def close(self) -> None:
        """Ends what is left of the run, whatever its state."""
        self.cluster.close()

    def _count(self) -> Counted:
        board = self.cluster.board
        found = board.counts()
        for role in range(self.plan.roles if self.plan.transport != THREADS else 0):
            if times := cpu_ns(board.pid(role) or -1):
                self._ran_ns[role], self._waited_ns[role] = times
        return Counted.of(
            found,
            time_s=board.now_ns * 1e-9 if self._started else 0.0,
            ran_ns=self._ran_ns.copy(),
            waited_ns=self._waited_ns.copy(),
        )

    def _busy_ns(self, counted: Counted) -> list[float]:
        """Processor time of each server, and of all clients together over their number."""
        servers = counted.ran_ns[self._clients :].tolist()
        return [*servers, counted.ran_ns[: self._clients].sum() / self._clients]

    def _uses(self, counted: Counted) -> Iterator[ResourceUse]:
        """Threads, by what the operating system says they ran, named as in the event plane."""
        if self.plan.transport == THREADS:
            return
        machine, span_ns = self.scenario.machine, max(counted.time_s, 1e-9) * 1e9
        ids = [machine.nodes[position].id for position in self.system.roles(machine).positions]
        busy_ns = self._busy_ns(counted)
        for index, (node, busy) in enumerate(zip(self.parameters.nodes, busy_ns[:-1], strict=True)):
            node_id = ids[node.machine]
            name = f"message threads of node {node_id}"
            if self.parameters.processors is not None:
                name = f"process of the {self.parameters.server_name(index)}"
            # The two clocks are not read at one and the same time.
            yield ResourceUse(name, "threads", min(busy / span_ns, 1.0), node=node_id)
        yield ResourceUse("threads of the clients", "clients", min(busy_ns[-1] / span_ns, 1.0))

    def _why(self, counted: Counted) -> dict[str, Why]:
        """The busiest process, and a client's time for one commit, as the operating system tells
        it; nothing where roles are threads, or none committed."""
        uses = tuple(self._uses(counted))
        if not uses or not counted.commits:
            return {}
        ran_ns, waited_ns = (
            float(of_role[: self._clients].sum()) / counted.commits
            for of_role in (counted.ran_ns, counted.waited_ns)
        )
        whole_ns = counted.time_s * 1e9 * self._clients / counted.commits
        demands = {
            "running": ran_ns,
            "waiting for a processor": waited_ns,
            "waiting for an answer": max(whole_ns - ran_ns - waited_ns, 0.0),
        }
        return {self.operation: Why(binding(uses), (), demands)}

    def _look_for_dead(self) -> None:
        """Notes who was killed since the last look."""
        board = self.cluster.board
        for role, number in enumerate(board.killed()):
            if number == 0 or role in self._seen_killed:
                continue
            self._seen_killed.add(role)
            at_s = board.now_ns * 1e-9
            name = f"client {role}" if role < self._clients else f"server {role - self._clients}"
            text = f"{name} is dead ({signal_name(number)})"
            self._deaths.append(ControlEvent(at_s, "fault", text, {"role": role}))
            if any(death.client == role for death in self.parameters.deaths):
                continue
            if board.installing(role):
                self._warned.append(
                    f"{name} was killed while it installed: part of a transaction may remain there"
                )
            if not (self.plan.lease_ns and role < self._clients):
                self._warned.append(f"{text}, which the scenario does not ask for")
                self._after_death = self._count()

    def _events(self) -> Iterator[ControlEvent]:
        yield from faults(self.system, self.time_s)
        yield from fault_events(self.scenario, self.replication, self.time_s)
        yield from self._deaths

    def _check_history(self) -> None:
        """Snapshot isolation of a run with faults and what they cost, as far as its trace went."""
        rows = self.cluster.board.trace()
        if not self.system.faults or not len(rows):
            return
        until_s = float(rows[-1, 0]) * 1e-12
        self._checked = {"checked_s": until_s}
        if until_s < 0.9 * self.time_s:
            self._warned.append(f"the history is known up to {until_s:.2g} s, and checked to there")
        failed = list(fault_events(self.scenario, self.replication, until_s))
        if failed and self.parameters.faulty:
            ended_s = rows[rows[:, 1] == OUTCOME, 0] * 1e-12
            times_s = [0.0, *looks_at(failed, until_s), until_s]
            counts = np.searchsorted(ended_s, times_s).tolist()
            self._checked["availability"] = availability(list(map(Look, times_s, counts)), failed)
        if found := snapshot_isolation_violations(rows):
            self._checked["findings"] = found
            self._warned.append(f"snapshot isolation is broken: {found[0]}")

    def _warnings(self, counted: Counted) -> Iterator[str]:
        yield from self.plan.notes
        yield from self._warned
        yield from self._silence()
        if not counted.commits:
            yield "no transaction committed while it was counted"

    def _silence(self) -> Iterator[str]:
        """Of a run that was over before the engine ends it (systems/commits/stall_watch.hpp)."""
        if (then := self._after_death) is None:
            return
        since_s = self._now.time_s - then.time_s
        if since_s >= self.LOOK_EVERY_S and self._now.ended == then.ended:
            yield f"no transaction ended in the last {since_s:.2g} s, after that death"


def signal_name(number: int) -> str:
    """``SIGKILL`` of 9; a real-time signal has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def native_commits(
    loading: Progress | None = None, *, transport: str | None = None
) -> Iterator[Maker]:
    """Makes planes, and ends what is left of their runs. ``loading`` is told nothing: a cluster has
    its data at once.
    """
    made: list[NativeCommits] = []

    def make(scenario: Experiment, replication: int) -> NativeCommits:
        made.append(NativeCommits(scenario, replication, transport))
        return made[-1]

    try:
        yield make
    finally:
        for plane in made:
            plane.close()
