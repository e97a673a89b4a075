"""The native plane of joins and aggregations across a cluster: one replication, on this host.

From a scenario to what the engine runs: the same tables and operator, for real.

Where a real host differs from the scenario, this decides what to do, and says so in ``notes``.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....inputs import InputError
from ....inputs.progress import Progress
from ....inputs.quantities import counted
from ....sim.kernel.histogram import Histogram
from ....sim.kernel.picoseconds import PS_PER_S
from ....sim.planes.outcome import Outcome, ResourceUse, Why
from ....sim.planes.plane import Command, Experiment, Maker
from ....sim.systems.joins.choice import ChooseOperator, OperatorObservation
from ....sim.systems.joins.flow import FlowModel
from ....sim.systems.joins.operators import TABLE_PART, Planner
from ....sim.systems.joins.setup import binding, planner_of, play_of
from ....sim.systems.joins.spec import JoinSystem, own_cache_bytes
from ....workloads.keys import KeyDistribution, Uniform
from ....workloads.schema import Operation
from ....workloads.zipf import Zipf
from ..._engine import HAS_UCX
from ...host_mapping import SHARE, free_bytes, free_shared_bytes, processors
from ...outcomes import network_outcome
from ...transports import THREADS, usual_transport
from .cluster import PHASES, NodeFigures, operator_streams, run_operator

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
        self.operator, self.time_s, self._since_s = self.plan.first, 0.0, 0.0
        self.queries: list[Query] = []
        self.horizon_s = scenario.horizon_s
        self.think_s = scenario.workload.description.clients.think_time.value

    def advance(self, until_s: float) -> None:
        """Raises InputError where the engine fails."""
        while self._next_s < until_s:
            # To the horizon at once: each run draws the tables again.
            self._run(max(until_s, self.horizon_s))
        self.time_s = until_s

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
        seen = self.flow.observed(self.time_s, chosen)
        able = {name: s for name, s in seen.predicted_s.items() if name in self.plan.operators}
        return OperatorObservation(seen.time_s, seen.operator, able)

    def apply(self, commands: Sequence[Command]) -> None:
        """Queries that begin from now on take another operator."""
        for command in commands:
            assert isinstance(command, ChooseOperator)
            self.operator = command.operator
            self.queries = [query for query in self.queries if query.began_s < self.time_s]

    def start_counting(self) -> None:
        self._since_s = self.time_s

    def _counted(self) -> list[Query]:
        """Queries that ended since counting began."""
        return [q for q in self.queries if self._since_s < q.ended_s <= self.time_s]

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
        return max(self.time_s - self._since_s, 1e-12)

    def _busy_s(self) -> list[float]:
        """Of each node, how long it was on a processor since counting began: evenly while a query
        lasts, and for no longer (the two clocks are not read at one and the same time).
        """
        busy_s = [0.0] * self.plan.nodes
        for query in self.queries:
            from_s, to_s = max(query.began_s, self._since_s), min(query.ended_s, self.time_s)
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


TUPLE_BYTES = (8, 16)
GROUP_BYTES = 24  # of a group as it is sent: its key, how many tuples, their sum
COPIES = 3  # of the tables: as they were drawn, partitioned or received, and partitioned again
NODES_MAX = 64  # processes; more are only switches between them on one host
PROCESS_BYTES = 12 << 20  # of a process with its share of UCX's buffers, as seen


@dataclass(frozen=True)
class JoinPlan:
    """What will run. ``settings``: fields of the engine's JoinRun, but for ``rounds`` and the
    transport's; ``operators``: by name of each that may run, what else it takes."""

    settings: Mapping[str, Any]
    operators: Mapping[str, Mapping[str, Any]]
    first: str
    transport: str
    processors: int
    notes: tuple[str, ...]

    @property
    def nodes(self) -> int:
        """How many there are."""
        return int(self.settings["nodes"])

    def run_of(self, operator: str, rounds: int) -> dict[str, Any]:
        """All fields of a run of that operator."""
        return {**self.settings, **self.operators[operator], "name": operator, "rounds": rounds}


def join_plan(scenario: Experiment, replication: int, transport: str | None = None) -> JoinPlan:
    """What of ``scenario`` runs on this host. Raises InputError where it does not fit."""
    system, machine, workload = scenario.system, scenario.machine, scenario.workload
    assert isinstance(system, JoinSystem)
    _check_parts(system)
    planner = planner_of(scenario, replication)
    operators = system.operators(machine, workload)
    nodes, cpus = planner.nodes, processors()
    if nodes > NODES_MAX:
        raise InputError(
            f"{nodes} nodes, each a process of its own",
            expected=f"at most {NODES_MAX}, such as --set system.nodes={NODES_MAX}",
        )
    if transport is None and system.layout == "host":
        transport = system.used_host_transport if HAS_UCX else THREADS
    transport = transport or usual_transport(verbs=system.one_sided(machine))
    name, operation = system.operation(workload)
    buffer_bytes = int(system.buffer.value)
    allowed = sorted(os.sched_getaffinity(0))
    settings = {
        "nodes": nodes,
        "buffer_bytes": buffer_bytes,
        "message_bytes": max(buffer_bytes, 128),
        "signal_every": system.signal_every,
        "filter_error": system.filter_error,
        "streams": operator_streams(scenario.seed, replication, nodes),
        "cpus": allowed[:nodes] if nodes <= len(allowed) else [],
        **_tables(scenario, operation, workload.at(0.0).operations[name].keys),
    }
    node = machine.nodes[planner.positions[0]]
    more: dict[str, dict[str, int]] = {
        operator: {
            # A power of two, as bits of hashes say which.
            "partitions": max(1 << (planner.plan(operator).fan.final - 1).bit_length(), 2),
            "table_bytes": max(int(TABLE_PART * own_cache_bytes(node)), 1_024),
        }
        for operator in operators
    }
    plan = JoinPlan(settings, more, operators[0], transport, cpus, ())
    _check_room(plan, scenario)
    return replace(plan, notes=tuple(_notes(plan, planner, operation)))


def _check_parts(system: JoinSystem) -> None:
    """Nodes of this host are the same, and each has its own queue."""
    if system.stragglers:
        raise InputError(
            "the engine does not support stragglers",
            token="stragglers",
            expected="--set system.stragglers=[]",
        )
    if system.queue != "own":
        raise InputError(
            "the engine has no central queue", token="queue", expected="--set system.queue=own"
        )


def _tables(
    scenario: Experiment, operation: Operation, keys: KeyDistribution | None
) -> dict[str, Any]:
    objects = scenario.workload.objects
    names = [operation.object, *([operation.outer] if operation.kind == "join" else [])]
    tables = [objects[name] for name in names]
    sizes = {table.record_size.value for table in tables if table.record_size is not None}
    if len(sizes) != 1 or not sizes <= set(TUPLE_BYTES):
        raise InputError(
            "the engine's tuples have 8 or 16 bytes, half of them the key",
            token=" and ".join(f"{size:g} B" for size in sorted(sizes)),
            expected="record_size: 8 B or 16 B, of both tables",
        )
    if not isinstance(keys, Uniform | Zipf):
        raise InputError(
            "the engine does not support this distribution of keys", expected="uniform or zipf keys"
        )
    found = {
        "tuple_bytes": int(sizes.pop()),
        "outer": tables[-1].records,
        "exponent": keys.exponent if isinstance(keys, Zipf) else 0.0,
    }
    if operation.kind == "join":
        return found | {"inner": tables[0].records, "selectivity": operation.selectivity}
    return found | {"groups": keys.keys}


def _notes(plan: JoinPlan, planner: Planner, operation: Operation) -> list[str]:
    notes = []
    if plan.nodes > plan.processors:
        notes.append(
            f"{plan.nodes} busy nodes on {counted(plan.processors, 'processor')}: "
            "they are time-sliced"
        )
    if max(planner.workers) > 1:
        notes.append(f"a node has one thread here, not {max(planner.workers)}")
    if operation.kind == "aggregate" and operation.result_size.value != GROUP_BYTES:
        notes.append(f"groups have {GROUP_BYTES} B here, not {operation.result_size.value:g} B")
    return notes


def _check_room(plan: JoinPlan, scenario: Experiment) -> None:
    """All tables fit into the memory that is free; else says what would."""
    settings = plan.settings
    tuples = settings["outer"] + settings.get("inner", 0)
    held = tuples * settings["tuple_bytes"]
    room = (free_bytes() * SHARE - plan.nodes * PROCESS_BYTES) / COPIES
    if plan.transport not in (THREADS, "tcp"):
        room = min(room, free_shared_bytes() * SHARE)
    if held <= room:
        return
    raise InputError(
        f"{held / 2**30:.2g} GiB of tuples, some {COPIES} times, on a host with "
        f"{free_bytes() / 2**30:.2g} GiB of free memory "
        f"({free_shared_bytes() / 2**30:.2g} GiB in /dev/shm)",
        expected=f"--scale {max(scenario.scale * room / held, 0.0):.1g} or less",
    )
