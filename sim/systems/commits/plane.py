"""The event and the reference plane of systems that commit transactions: one replication each.

Both run the same parameters by the same streams; they differ in the model alone, compiled or in
plain SimPy.

The compiled commit models, run and read like the reference ones.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..._kernel import CommitSetup, OneSidedCommits, ProcessorSetup, TwoPhaseCommits
from ...kernel.histogram import Histogram
from ...kernel.streams import stream_key
from ...planes.availability import Look, Looks
from ...planes.outcome import ControlEvent, Outcome
from ...planes.plane import Experiment, Unsteered
from .build import commit_parameters
from .checked_values import PS, ps
from .faults import fault_events, lost_records, rejoin_events
from .history import CAUSES, STOPPED_BY_FAULT, Row
from .parameters import LOSSES, STEPS, CommitParameters
from .reference.commits import CommitModel
from .reference.one_sided import OneSidedModel
from .reference.two_phase import TwoPhaseModel
from .result import CommitResult
from .servers import MACHINES_IN_SERIES, OUT, adapters_cap, faults, servers_of, uncertain_facts
from .spec import CommitSystem
from .why import Need, explain
from .workload import compute_times, key_draws, stream_keys, think_times


class KernelCommitModel:
    """A cluster whose clients run transactions, message by message.

    ``traced``: keep the trace (some fifty rows a transaction); else ``trace()`` is empty.
    ``checked``: check snapshot isolation meanwhile, in bounded memory; see ``findings``. ``plant``:
    a bug for tests of the checks (a ``Plant`` of ``kernel/commits.hpp``), which the reference does
    not have.
    """

    def __init__(
        self,
        parameters: CommitParameters,
        seed: int = 0,
        replication: int = 0,
        *,
        traced: bool = False,
        checked: bool = False,
        plant: int = 0,
    ) -> None:
        self.parameters = parameters
        model = OneSidedCommits if parameters.one_sided else TwoPhaseCommits
        self._kernel = model(
            _setup(parameters, seed, replication, traced=traced, checked=checked, plant=plant),
            key_draws(parameters),
            think_times(parameters),
            compute_times(parameters),
            seed,
            replication,
        )

    def __getattr__(self, name: str) -> Any:
        """``run``, ``now_ps``, ``commits``, ``findings`` and others of the compiled model."""
        return getattr(self.__dict__["_kernel"], name)

    def busy_ps(self) -> list[int]:
        """How long each card was busy outwards, then inwards, the threads of each node (summed),
        and those of all clients together."""
        kernel, clients = self._kernel, len(self.parameters.client_machine)
        threads = kernel.threads_busy_ps
        cards = [*kernel.outgoing_busy_ps, *kernel.incoming_busy_ps]
        return [*cards, *threads[clients:], sum(threads[:clients])]

    def trace(self) -> list[Row]:
        """All that happened so far: see history.py."""
        return [tuple(row) for row in self._kernel.trace().tolist()]

    def result(self) -> CommitResult:
        """Counts and busy times up to now."""
        kernel = self._kernel
        return CommitResult(
            time_ps=kernel.now_ps,
            given_up=kernel.given_up,
            aborts=dict(zip(CAUSES, kernel.aborts, strict=True)),
            messages=dict(zip(self.parameters.message_types, kernel.sent, strict=True)),
            busy_ps=np.array(self.busy_ps(), dtype=np.int64),
            latencies_ns=Histogram.of_kernel(kernel.latency_buckets, kernel.latency_total_ps),
        )


def _setup(parameters: CommitParameters, seed: int, replication: int, **looks: Any) -> CommitSetup:
    """Of all fields that have the same name there and mean the same, and the others."""
    p = parameters
    same = {name: value for name, value in vars(p).items() if name in CommitSetup.FIELDS}
    factors = {straggler.client: straggler.factor for straggler in p.stragglers}
    costs = [p.costs[name] for name in p.message_types]
    entries = max(map(len, costs))
    own: dict[str, Any] = {
        "client_factor": [factors.get(client, 1) for client in range(len(p.client_machine))],
        "node_machine": [node.machine for node in p.nodes],
        "node_threads": [node.threads for node in p.nodes],
        "costs": [of_type[min(k, len(of_type) - 1)] for of_type in costs for k in range(entries)],
        "cost_entries": entries,
        "death_client": [death.client for death in p.deaths],
        "death_ps": [death.at_ps for death in p.deaths],
        "death_step": [-1 if d.step is None else STEPS.index(d.step) for d in p.deaths],
        "stop_machine": [stop.machine for stop in p.stops],
        "stop_ps": [stop.at_ps for stop in p.stops],
        "stop_empty": [stop.empty for stop in p.stops],
        "return_ps": [-1 if s.returns_ps is None else s.returns_ps for s in p.stops],
        "loss_stream": stream_key(seed, replication, LOSSES),
        "processors": p.processors or ProcessorSetup(),
        "streams": stream_keys(p, seed, replication),
        **looks,
    }
    # What is None is as it is where nothing is said.
    given = {name: value for name, value in (same | own).items() if value is not None}
    return CommitSetup(**given)


ModelMaker = Callable[[CommitParameters, int, int], KernelCommitModel | CommitModel]
"""From parameters, seed and replication."""


def event_model(parameters: CommitParameters, seed: int, replication: int) -> KernelCommitModel:
    """Compiled; its history is checked under faults."""
    return KernelCommitModel(parameters, seed, replication, checked=parameters.faulty)


def reference_model(parameters: CommitParameters, seed: int, replication: int) -> CommitModel:
    """In plain SimPy."""
    kind = OneSidedModel if parameters.one_sided else TwoPhaseModel
    return kind(parameters, seed, replication)


class CommitPlane(Unsteered):
    """Runs one replication; see ``plane.RandomPlane`` for what its methods promise."""

    def __init__(self, make: ModelMaker, scenario: Experiment, replication: int) -> None:
        system = scenario.system
        assert isinstance(system, CommitSystem)
        self.scenario, self.system, self.replication = scenario, system, replication
        self.parameters, self.costs = commit_parameters(scenario, replication=replication)
        self._make = make
        self.model = make(self.parameters, scenario.seed, replication)
        self.operation, _ = system.transaction(scenario.workload)
        self._servers = tuple(servers_of(scenario, self.parameters, self.costs))
        self.time_s = 0.0
        self._failing = list(fault_events(scenario, replication, scenario.horizon_s))
        failing = self._failing if self.parameters.faulty else []
        self._looks = Looks(failing, scenario.horizon_s, self._look)
        self.start_counting()

    def advance(self, until_s: float) -> None:
        self._looks.advance(until_s, lambda at_s: self.model.run(ps(at_s)))
        self.time_s = until_s

    def _look(self, time_s: float) -> Look:
        counted = self.model.result().latencies_ns
        return Look(time_s, float(counted.count), counted)

    def start_counting(self) -> None:
        self._before, self._since_s = self.model.result(), self.time_s

    def totals(self) -> Mapping[str, float]:
        model, before = self.model, self._before
        under_way_ns = model.latency_total_ps / 1e3 - before.latencies_ns.total
        found = {
            f"throughput/{self.operation}": float(model.commits - before.commits),
            f"under_way/{self.operation}": under_way_ns * 1e-9,
        }
        if self.parameters.machines <= MACHINES_IN_SERIES:
            busy = (np.array(model.busy_ps()) - before.busy_ps).tolist()
            for server, busy_ps in zip(self._servers, busy, strict=True):
                found[f"utilisation/{server.name}"] = busy_ps / PS / server.members
        return found

    def outcome(self) -> Outcome:
        """``why`` comes from the first replication."""
        now = self.model.result()
        self._check(now)
        counted = now.since(self._before)
        latencies, counted_s = counted.latencies_ns, self.time_s - self._since_s
        uses = tuple(
            server.use(busy_ps / (server.members * counted.time_ps))
            for server, busy_ps in zip(self._servers, counted.busy_ps.tolist(), strict=True)
        )
        why = {}
        if self.replication == 1:
            need = Need(self.parameters, self.time_s, now.latencies_ns, self.model.events)
            cap = adapters_cap(self.costs, self.system, self.scenario.machine)
            why[self.operation] = explain(need, uses, self._rate, cap)
        sent_Bps = [use.Bps or 0.0 for use in uses if use.kind == OUT]
        return Outcome(
            throughput={self.operation: latencies.count / counted_s},
            operations={self.operation: float(latencies.count)},
            bandwidth_Bps={"memory": None, "links": None, "network": sum(sent_Bps)},
            resources=uses,
            why=why,
            events=tuple(self._events()),
            model={self.operation: self._facts(counted)},
            warnings=tuple(self._warnings(latencies.count)),
            steps=self.model.events,
            latencies_ns={self.operation: latencies},
        )

    def _events(self) -> Iterator[ControlEvent]:
        yield from faults(self.system, self.time_s)
        yield from (event for event in self._failing if event.time_s < self.time_s)
        yield from rejoin_events(self.scenario, self.model.rejoins, self.time_s)

    def _facts(self, counted: CommitResult) -> dict[str, Any]:
        """What the model saw: how transactions ended, and the messages that they took."""
        commits = counted.latencies_ns.count
        each = max(commits, 1)
        return {
            "architecture": self.system.architecture,
            "clients": self.system.clients,
            "commits": commits,
            "aborts": {
                cause: count
                for cause, count in counted.aborts.items()
                if cause != CAUSES[STOPPED_BY_FAULT] or self.parameters.stops
            },
            "abort_rate": counted.abort_rate,
            "given_up": counted.given_up,
            "messages_per_commit": sum(counted.messages.values()) / each,
            "messages_per_commit_by_type": {
                name: count / each for name, count in counted.messages.items()
            },
            "bytes_by_type": {name: list(sizes) for name, sizes in self.costs.wire_bytes.items()},
            **self._availability(),
        }

    def _availability(self) -> dict[str, Any]:
        """What the faults cost, and what broke snapshot isolation; nothing without faults."""
        found = self._looks.cost(self.time_s)
        if not found:
            return {}
        if self.parameters.replicas:
            found["availability"]["degraded_s"] = self.model.degraded_ps / PS
        return found | ({"findings": self.model.findings} if self.model.findings else {})

    def _warnings(self, commits: int) -> Iterator[str]:
        if not commits:
            yield "no transaction committed while it was counted"
        if self.model.findings:
            yield (
                f"snapshot isolation is broken: {self.model.findings[0]}, with seed "
                f"{self.scenario.seed} in replication {self.replication}"
            )
        yield from lost_records(self.scenario, self.parameters, self.time_s)
        yield from uncertain_facts(self.scenario.machine, self.system)

    def _check(self, now: CommitResult) -> None:
        """No server was busy for longer than the run lasted, and no client in two transactions."""
        count = np.array([server.members for server in self._servers])
        if (now.busy_ps > now.time_ps * count).any():
            raise AssertionError("a server was busy for longer than the run lasted")
        if now.latencies_ns.total * 1e3 > self.system.clients * now.time_ps * (1.0 + 1e-12):
            raise AssertionError("clients were in more than one transaction each (Little's law)")

    def _rate(self, parameters: CommitParameters, until_ps: int) -> float:
        """Commits per second up to that time, under other parameters and the same draws."""
        model = self._make(parameters, self.scenario.seed, self.replication)
        model.run(until_ps)
        return model.result().latencies_ns.count / (until_ps / PS)


event_plane = partial(CommitPlane, event_model)
"""Makes the event plane, from a scenario and the number of a replication."""

reference_plane = partial(CommitPlane, reference_model)
"""The same, of the reference plane."""
