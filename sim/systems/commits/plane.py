"""The event and the reference plane of systems that commit transactions: one replication each.

Both play the same parameters by the same streams; they differ in the model alone, compiled or in
plain SimPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ....inputs.quantities import format_quantity
from ....topologies import Machine
from ...planes.experiment import Experiment
from ...planes.outcome import ControlEvent, Outcome, ResourceUse
from ...planes.plane import Command
from .build import commit_parameters
from .costs import CommitCosts
from .facts import ENGINE
from .models import Counters, EventModel, Model, ReferenceModel
from .parameters import CommitParameters
from .spec import CommitSystem
from .why import Need, explain

PS = 1e12
OUT, IN = "nic out", "nic in"  # kinds of resources

# Of a larger cluster the series do not tell each adapter's use.
MACHINES_IN_SERIES = 64


def _doubtful_steps(machine: Machine) -> Iterator[str]:
    """In one line: a noisy host makes nearly all of the many doubtful."""
    parts = ("processes.", f"engines.{ENGINE}.")
    paths = [path for path in machine.doubtful if path.startswith(parts)]
    if paths:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        yield f"machine '{machine.name}': {paths[0]}{more} of what processes cost are doubtful"


ModelMaker = Callable[[CommitParameters, int, int], Model]
"""From parameters, seed and replication."""


class CommitPlane:
    """Plays one replication; see ``plane.RandomPlane`` for what its methods promise."""

    def __init__(self, make: ModelMaker, scenario: Experiment, replication: int) -> None:
        system = scenario.system
        assert isinstance(system, CommitSystem)
        self.scenario, self.system, self.replication = scenario, system, replication
        self.parameters, self.costs = commit_parameters(scenario)
        self._make = make
        self.model = make(self.parameters, scenario.seed, replication)
        self.operation, _ = system.transaction(scenario.workload)
        self._servers = tuple(_servers(scenario, self.parameters, self.costs))
        self._time_s = 0.0
        self.start_counting()

    @property
    def time_s(self) -> float:
        """The time reached."""
        return self._time_s

    def advance(self, until_s: float) -> None:
        """See Plane."""
        self.model.run(round(until_s * PS))
        self._time_s = until_s

    def observe(self, family: str) -> None:
        """See Plane: no policies watch."""

    def apply(self, commands: Sequence[Command]) -> None:
        """See Plane. There is nothing to apply: the system refuses workloads with phases, and
        has no policies."""
        assert not commands

    def start_counting(self) -> None:
        """See RandomPlane."""
        self._before, self._since_s = self.model.counters(), self._time_s
        self._sums_before = self.model.sums()

    def totals(self) -> Mapping[str, float]:
        """See RandomPlane."""
        now, before = self.model.sums(), self._sums_before
        found = {
            f"throughput/{self.operation}": float(now.commits - before.commits),
            f"under_way/{self.operation}": (now.latency_ns - before.latency_ns) * 1e-9,
        }
        if self.parameters.machines <= MACHINES_IN_SERIES:
            busy = (now.busy_ps - before.busy_ps).tolist()
            for server, busy_ps in zip(self._servers, busy, strict=True):
                found[f"utilisation/{server.name}"] = busy_ps / PS / server.count
        return found

    def outcome(self) -> Outcome:
        """See Plane. ``why`` comes from the first replication."""
        now = self.model.counters()
        self._check(now)
        counted = now.since(self._before)
        latencies, counted_s = counted.latencies_ns, self._time_s - self._since_s
        uses, rate = tuple(self._uses(counted)), latencies.count / counted_s
        why = {}
        if self.replication == 1:
            need = Need(self.parameters, self._time_s, now.latencies_ns, self.model.events)
            why[self.operation] = explain(need, uses, self._rate, self._cap())
        sent_Bps = [use.Bps or 0.0 for use in uses if use.kind == OUT]
        return Outcome(
            throughput={self.operation: rate},
            operations={self.operation: float(latencies.count)},
            bandwidth_Bps={"memory": None, "links": None, "network": sum(sent_Bps)},
            resources=uses,
            latency_ns={},
            why=why,
            energy_J=None,
            events=tuple(faults(self.system, self._time_s)),
            model={self.operation: self._facts(counted)},
            warnings=tuple(self._warnings(latencies.count)),
            series={},
            steps=self.model.events,
            latencies_ns={self.operation: latencies},
        )

    def _cap(self) -> str:
        """What bounds an adapter where that is not its own bandwidth, in words."""
        curve = self.costs.curve
        if curve is None or not curve.capped:
            return ""
        least = format_quantity(curve.transport.bandwidth.value, "bandwidth")
        return f" (its transport {self.system.transport}: {least} a port)"

    def _uses(self, counted: Counters) -> Iterator[ResourceUse]:
        for server, busy_ps in zip(self._servers, counted.busy_ps.tolist(), strict=True):
            use = busy_ps / (server.count * counted.time_ps)
            limit = server.capacity_Bps
            rate = None if limit is None else use * limit
            yield ResourceUse(server.name, server.kind, use, rate, limit, server.node)

    def _facts(self, counted: Counters) -> dict[str, Any]:
        """What the model saw: how transactions ended, and the messages that they took."""
        commits, aborted = counted.latencies_ns.count, sum(counted.aborts.values())
        each = max(commits, 1)
        return {
            "architecture": self.system.architecture,
            "clients": self.system.clients,
            "commits": commits,
            "aborts": dict(counted.aborts),
            "abort_rate": aborted / max(aborted + commits, 1),
            "given_up": counted.given_up,
            "messages_per_commit": sum(counted.messages.values()) / each,
            "messages_per_commit_by_type": {
                name: count / each for name, count in counted.messages.items()
            },
            "bytes_by_type": {name: list(at) for name, at in self.costs.wire_bytes.items()},
        }

    def _warnings(self, commits: int) -> Iterator[str]:
        if not commits:
            yield "no transaction committed while it was counted"
        machine = self.scenario.machine
        for path in machine.doubtful:
            if path.startswith("nics") and self.system.layout != "host":
                yield f"machine '{machine.name}': {path} is doubtful"
        if self.system.layout == "host":
            yield from _doubtful_steps(machine)

    def _check(self, now: Counters) -> None:
        """No server was busy for longer than it was there, and no client in two transactions."""
        count = np.array([server.count for server in self._servers])
        if (now.busy_ps > now.time_ps * count).any():
            raise AssertionError("a server was busy for longer than it was there")
        if now.latencies_ns.total * 1e3 > self.system.clients * now.time_ps * (1.0 + 1e-12):
            raise AssertionError("clients were in more than one transaction each (Little's law)")

    def _rate(self, parameters: CommitParameters, until_ps: int) -> float:
        """Commits per second up to that time, under other parameters and the same draws."""
        model = self._make(parameters, self.scenario.seed, self.replication)
        model.run(until_ps)
        return model.counters().latencies_ns.count / (until_ps / PS)


@dataclass(frozen=True)
class _Server:
    """A server of the model, or alike ones together: ``count`` of them, busy times added up."""

    name: str
    kind: str
    count: int = 1
    node: int | None = None
    capacity_Bps: float | None = None


def _servers(
    scenario: Experiment, parameters: CommitParameters, costs: CommitCosts
) -> Iterator[_Server]:
    """In the order of ``Counters.busy_ps``."""
    system, machine = scenario.system, scenario.machine
    assert isinstance(system, CommitSystem)
    ids = [machine.nodes[position].id for position in system.roles(machine).positions]
    if costs.curve is None:
        yield from _processes(parameters)
        return
    for kind in (OUT, IN):
        for node_id in ids:
            name = f"adapter of node {node_id}, {kind.removeprefix('nic ')}"
            yield _Server(name, kind, 1, node_id, costs.curve.bandwidth_Bps)
    for node in parameters.nodes:
        node_id = ids[node.machine]
        yield _Server(f"message threads of node {node_id}", "threads", node.threads, node_id)
    yield _Server("threads of the clients", "clients", _client_threads(parameters))


def _client_threads(parameters: CommitParameters) -> int:
    """Hardware threads of the clients: their own, and those that they share."""
    clients, shared = len(parameters.client_machine), parameters.processors
    if shared is None:
        return clients
    return shared.count + shared.homes[:clients].count(None)


def _processes(parameters: CommitParameters) -> Iterator[_Server]:
    """Of one host; its machine's adapter carries nothing."""
    yield _Server("messages out of the host", OUT)
    yield _Server("messages into the host", IN)
    for at in range(len(parameters.nodes)):
        yield _Server(f"process of the {parameters.server_name(at)}", "threads")
    yield _Server("processes of the clients", "clients", len(parameters.client_machine))


event_plane = partial(CommitPlane, EventModel)
"""Makes the event plane, from a scenario and the number of a replication."""

reference_plane = partial(CommitPlane, ReferenceModel)
"""The same, of the reference plane."""


def faults(system: CommitSystem, until_s: float) -> Iterator[ControlEvent]:
    """Those that the scenario asks for, up to that time."""
    for slow in system.stragglers:
        text = f"client {slow.client} takes {slow.factor} times as long"
        yield ControlEvent(0.0, "fault", text, {"client": slow.client, "factor": slow.factor})
    for death in system.deaths:
        if death.at.value < until_s:
            text = f"client {death.client} dies"
            yield ControlEvent(death.at.value, "fault", text, {"client": death.client})
