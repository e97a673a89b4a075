"""The native plane of joins and aggregations across a cluster: one replication, on this host."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....sim.kernel.histogram import Histogram
from ....sim.kernel.picoseconds import PS_PER_S
from ....sim.planes.experiment import Experiment
from ....sim.planes.outcome import Outcome, ResourceUse, Why
from ....sim.planes.plane import Command, Maker
from ....sim.run.runner import Progress
from ....sim.systems.joins.choice import ChooseOperator, OperatorObservation
from ....sim.systems.joins.flow import FlowModel
from ....sim.systems.joins.setup import play_of
from ....sim.systems.joins.spec import JoinSystem
from ....sim.systems.joins.uses import binding
from ...outcomes import network_outcome
from ...transports import THREADS
from .cluster import PHASES, NodeFigures, run_operator
from .setup import join_plan

FIRST_ROUNDS = 3  # that tell how many more fill the time
ROUNDS_MAX = 2_000  # of one run of the engine


@dataclass(frozen=True)
class Query:
    """A round of the engine: one query, which began ``began_s`` after the first one."""

    operator: str
    began_s: float
    seconds: float
    nodes: tuple[NodeFigures, ...]

    @property
    def ended_s(self) -> float:
        """When its last node was done."""
        return self.began_s + self.seconds


class NativeJoins:
    """Runs one replication; see ``RandomPlane`` for what its methods promise.

    Its time is that of queries, one after another: what the engine takes to draw tables and to
    begin its processes is no part of it, nor the first round of each run, which meets pages and
    caches that nobody has used. So it is no wall-clock time.
    """

    def __init__(
        self, scenario: Experiment, replication: int = 1, transport: str | None = None
    ) -> None:
        system = scenario.system
        assert isinstance(system, JoinSystem)
        self.system, self.plan = system, join_plan(scenario, replication, transport)
        self.play = play_of(scenario, replication)
        self.flow = FlowModel(self.play)
        self.operator, self._time_s, self._since_s = self.plan.first, 0.0, 0.0
        self.queries: list[Query] = []
        self.horizon_s = scenario.horizon_s
        self.think_s = scenario.workload.description.clients.think_time.value

    @property
    def time_s(self) -> float:
        """The time reached."""
        return self._time_s

    def advance(self, until_s: float) -> None:
        """Raises InputError where the engine fails."""
        while self._next_s < until_s:
            # To the horizon at once: each run draws the tables again.
            self._run(max(until_s, self.horizon_s))
        self._time_s = until_s

    @property
    def _next_s(self) -> float:
        """When the next query begins."""
        return self.queries[-1].ended_s + self.think_s if self.queries else 0.0

    def _run(self, until_s: float) -> None:
        """One run of the engine: as many rounds as may fill the time, and one before them."""
        rounds = FIRST_ROUNDS
        known = [query.seconds for query in self.queries if query.operator == self.operator]
        if known:
            each_s = float(np.median(known)) + self.think_s
            rounds = min(math.ceil((until_s - self._next_s) / each_s), ROUNDS_MAX)
        found = run_operator(self.plan.run_of(self.operator, rounds + 1), self.plan.transport)
        for nodes, seconds in zip(found.rounds[1:], found.round_s[1:], strict=True):
            self.queries.append(Query(self.operator, self._next_s, seconds, nodes))

    def observe(self, family: str) -> OperatorObservation:
        """A choice among the operators that the engine has."""
        chosen = tuple(map(str, self.play.names)).index(self.operator)
        seen = self.flow.observed(self._time_s, chosen)
        able = {name: s for name, s in seen.predicted_s.items() if name in self.plan.operators}
        return OperatorObservation(seen.time_s, seen.operator, able)

    def apply(self, commands: Sequence[Command]) -> None:
        """Queries that begin from now on take another operator."""
        for command in commands:
            assert isinstance(command, ChooseOperator)
            self.operator = command.operator
            self.queries = [query for query in self.queries if query.began_s < self._time_s]

    def start_counting(self) -> None:
        self._since_s = self._time_s

    def _counted(self) -> list[Query]:
        """Queries that ended since counting began."""
        return [q for q in self.queries if self._since_s < q.ended_s <= self._time_s]

    def totals(self) -> Mapping[str, float]:
        counted, name = self._counted(), self.play.operation
        found = {
            f"throughput/{name}": float(len(counted)),
            f"under_way/{name}": sum(query.seconds for query in counted),
        }
        for node, busy_s in zip(self.play.ids, self._busy_s(), strict=True):
            found[f"utilisation/workers of node {node}"] = busy_s
        return found

    def outcome(self) -> Outcome:
        counted, name = self._counted(), self.play.operation
        sent = sum(node.sent_bytes for query in counted for node in query.nodes)
        warnings = list(self.plan.notes)
        if not counted:
            warnings.append("no query was answered while it was counted")
        return network_outcome(
            name,
            passed_s=self._passed_s,
            operations=len(counted),
            sent_bytes=sent,
            resources=tuple(self._uses()),
            why=self._why(counted),
            facts=self._facts(counted),
            warnings=warnings,
            steps=len(counted),
            latencies=Histogram.of_values([round(q.seconds * PS_PER_S) for q in counted]),
        )

    @property
    def _passed_s(self) -> float:
        return max(self._time_s - self._since_s, 1e-12)

    def _busy_s(self) -> list[float]:
        """Of each node, how long it was on a processor since counting began: evenly while a query
        lasts, and for no longer (the two clocks are not read at one and the same time).
        """
        busy_s = [0.0] * self.plan.nodes
        for query in self.queries:
            from_s, to_s = max(query.began_s, self._since_s), min(query.ended_s, self._time_s)
            if to_s > from_s:
                part = (to_s - from_s) / query.seconds
                for k, node in enumerate(query.nodes):
                    busy_s[k] += part * min(sum(node.cpu_s), query.seconds)
        return busy_s

    def _uses(self) -> Iterator[ResourceUse]:
        for node, busy_s in zip(self.play.ids, self._busy_s(), strict=True):
            yield ResourceUse(
                f"workers of node {node}", "threads", busy_s / self._passed_s, node=node
            )

    def _why(self, counted: Sequence[Query]) -> dict[str, Why]:
        """A query's time on its nodes by phase, on average; nothing where none was answered."""
        same = [query for query in counted if query.operator == self.operator]
        if not same:
            return {}
        phases = np.mean([node.phase_s for query in same for node in query.nodes], axis=0)
        demands = dict(zip(PHASES[self.operator], (phases * 1e9).tolist(), strict=True))
        mean_ns = float(np.mean([query.seconds for query in same])) * 1e9
        demands["wait for the last node"] = max(mean_ns - sum(demands.values()), 0.0)
        return {self.play.operation: Why(binding(tuple(self._uses())), (), demands)}

    def _facts(self, counted: Sequence[Query]) -> dict[str, Any]:
        """As the event plane's, and what this host did with it."""
        each, plan = max(len(counted), 1), self.plan
        run = plan.run_of(self.operator, 1)
        rows = sum(node.rows for query in counted for node in query.nodes)
        sent = sum(node.sent_bytes for query in counted for node in query.nodes)
        return {
            "operator": self.operator,
            "queries_by_operator": {
                name: sum(query.operator == name for query in counted) for name in plan.operators
            },
            "partitions": run["partitions"],
            "rows_per_query": rows / each,
            "bytes_sent_per_query": sent / each,
            "native": {
                "transport": plan.transport,
                "processes": 1 if plan.transport == THREADS else plan.nodes,
                "processors": plan.processors,
                "buffer_bytes": run["buffer_bytes"],
            },
        }


@contextmanager
def native_joins(
    loading: Progress | None = None, *, transport: str | None = None
) -> Iterator[Maker]:
    """Makes planes. ``loading`` is never called: each run of the engine draws its tables at once,
    and leaves nothing behind.
    """

    def make(scenario: Experiment, replication: int) -> NativeJoins:
        return NativeJoins(scenario, replication, transport)

    yield make
