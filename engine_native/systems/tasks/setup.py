"""From a scenario of tasks to what the engine runs, and what it refuses."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import NoReturn

import numpy as np

from ....inputs import InputError
from ....inputs.quantities import counted
from ....sim.kernel.arrays import Floats
from ....sim.machine.threads import Workers
from ....sim.planes.plane import Experiment
from ....sim.systems.tasks.build import program_of
from ....sim.systems.tasks.parameters import cores_of
from ....sim.systems.tasks.program import Program, Query, Stage, Table
from ....sim.systems.tasks.spec import TasksSystem, column_bits, counts_by_row
from ....workloads.operators import AggregateSpec, JoinSpec, MaterialiseSpec, ScanSpec
from ....workloads.query_graphs import ColumnOf, OperatorNode
from ....workloads.schema import Column, DataObject
from ..._engine import (
    HostFacts,
    TaskColumn,
    TaskEngineSpec,
    TaskKind,
    TaskPart,
    TaskQuery,
    TaskStage,
    TaskTable,
)
from ...host_mapping import HostMapping, map_workers

ROOM = 0.8  # of what the host can spare, tables may take so much
VALUE_BYTES = (4, 8)
IDS_MAX = 2**32
SELECTED_NEAR = 0.05  # relative; what a filter or join really passes on, against what it should
ROWS_OF_KEY_MAX = 64.0  # rows of one key lie in slots that follow each other
JOINED_ROW_BYTES = 32.0  # as join_table.hpp has it

MOVED = (
    "the operating system moves threads: traffic and use of cores are told as if each ran on the "
    "node of its pool"
)

UNMOVED = (
    "a part that moves between nodes which are one node of this host has another home then, but no "
    "bytes move"
)


@dataclass(frozen=True)
class TasksPlan:
    """What will run, and in which ways it is not what the scenario says. ``cpus``: of this host, by
    node and core of the node; workers have the ``affinity`` of the scenario.
    """

    spec: TaskEngineSpec
    program: Program
    mapping: HostMapping
    worker_nodes: tuple[int, ...]
    cpus: Mapping[tuple[int, int], list[int]]
    affinity: str
    notes: tuple[str, ...]


def tasks_plan(scenario: Experiment, host: HostFacts) -> TasksPlan:
    """What of ``scenario`` runs on ``host``. Raises InputError, also where it does not fit."""
    system, machine = scenario.system, scenario.machine
    assert isinstance(system, TasksSystem)
    _check_parts(scenario, system)
    program = program_of(scenario)
    workers = np.repeat(np.arange(len(machine.nodes)), program.scheduling.workers).tolist()
    placed = cores_of(machine, program.scheduling)
    threads = placed.core_node[placed.core].tolist()  # of cores; a pinned worker has its own
    _check_workers(threads, host)
    stored = system.stored(scenario.workload)
    columns = {name: _columns(name, table) for name, table in stored.items()}
    queries = _Queries(scenario, program, stored)
    asked = [
        TaskQuery(
            stages=list(queries.stages(query.name, scenario.workload.graphs[query.name])),
            clients=query.clients,
            share=query.share,
        )
        for query in program.queries
    ]
    _check_room(scenario, columns, stored, queries.joins_bytes, host)
    mapping = map_workers(machine, threads, host)
    cpus, begin, notes = _cpus(placed, mapping), list(mapping.cpu), [*mapping.warnings]
    if has_placer(scenario) and len(set(mapping.host_node)) < len(mapping.host_node):
        notes.append(UNMOVED)
    if system.affinity != "core":
        turns = {
            node: cycle(cpu for (k, _), of in cpus.items() if k == node for cpu in of)
            for node in set(workers)
        }
        begin = [next(turns[node]) for node in workers]
        notes.append(MOVED)
    latency = np.nan_to_num(machine.latency_ns, nan=np.inf)
    spec = TaskEngineSpec(
        tables=[_table(table, columns[table.name], mapping) for table in program.tables],
        queries=asked,
        worker_node=workers,
        cpu=begin,
        worker_host_node=[mapping.host_node[node] for node in workers],
        queue_of=_queues(latency, set(workers)),
        distance=[np.unique(row, return_inverse=True)[1].tolist() for row in latency],
        classes=len(program.classes),
        concurrency=program.scheduling.concurrency or 0,
        mix_clients=program.mix_clients,
        look_ns=round(program.scheduling.look_s * 1e9) if system.look is not None else -1,
        seed=scenario.seed,
    )
    return TasksPlan(
        spec, program, mapping, tuple(workers), cpus, system.affinity, (*notes, *queries.notes)
    )


def has_placer(scenario: Experiment) -> bool:
    """Whether it has a placer, which may move parts."""
    return scenario.policy_names.get("placer", "none") not in ("none", "static")


def _cpus(placed: Workers, mapping: HostMapping) -> dict[tuple[int, int], list[int]]:
    """Of this host, by node and core of the node."""
    found: dict[tuple[int, int], list[int]] = {}
    for core, cpu in zip(placed.core.tolist(), mapping.cpu, strict=True):
        node = int(placed.core_node[core])
        before = int((placed.core_node[:core] == node).sum())
        found.setdefault((node, before), []).append(cpu)
    return found


def _refuse(what: str, expected: str) -> NoReturn:
    raise InputError(f"not on the native plane: {what}", expected=expected)


def _check_parts(scenario: Experiment, system: TasksSystem) -> None:
    clients = scenario.workload.description.clients
    if clients.kind == "open":
        _refuse("open clients", "closed ones")
    if clients.think_time.value > 0:
        _refuse("clients that think", "workload.clients.think_time: 0 s")
    if system.queue != "node":
        _refuse(f"system.queue {system.queue}", "node")
    cores = scenario.policy_names.get("cores", "none")
    if cores not in ("none", "all") and system.affinity != "none":
        _refuse(f"cores policy '{cores}' with system.affinity {system.affinity}", "none")
    if system.faults and system.affinity != "none":
        _refuse(f"system.faults with system.affinity {system.affinity}", "none")
    if system.intermediates != "pooled":
        _refuse(
            f"system.intermediates {system.intermediates}", "pooled: the engine keeps its memory"
        )
    if system.background:
        _refuse("system.background", "none")
    if system.memory is not None:
        _refuse("system.memory", "none: system.placement says where parts lie")
    if (name := scenario.policy_names.get("access-path", "none")) != "none":
        _refuse(f"access-path policy '{name}'", "--policy access-path=none")


def _check_workers(threads: list[int], host: HostFacts) -> None:
    cpus = sum(len(node.cpus) for node in host.nodes if node.may_allocate)
    if len(threads) > cpus:
        raise InputError(
            f"workers on {counted(len(threads), 'CPU')}, and this host has {cpus}",
            expected="as many here: fewer system.threads or system.nodes, or --machine with this "
            "host's file",
        )


def _columns(name: str, table: DataObject) -> dict[str, TaskColumn]:
    """By name, in their order."""
    assert table.columns is not None
    assert table.rows is not None
    if table.rows > IDS_MAX:
        _refuse(f"table '{name}' of {table.rows:,} rows", f"at most {IDS_MAX:,}")
    found = {}
    for column, described in table.columns.items():
        what, size = f"column '{name}.{column}'", described.value_size.value
        sizes = VALUE_BYTES if described.encoded else VALUE_BYTES[:1]
        if size not in sizes:
            encoded = "" if described.encoded else ", not encoded,"
            expected = " or ".join(f"{one} B" for one in sizes)
            _refuse(f"{what}{encoded} with values of {size:g} B", expected)
        if described.distinct > IDS_MAX:
            _refuse(f"{what} of {described.distinct:,} values", f"at most {IDS_MAX:,}")
        found[column] = TaskColumn(
            bits=column_bits(described),
            distinct=described.distinct,
            value_bytes=int(size),
            by_row=described.encoded and counts_by_row(described, table.rows),
            encoded=described.encoded,
        )
    return found


def _check_room(
    scenario: Experiment,
    columns: Mapping[str, Mapping[str, TaskColumn]],
    stored: Mapping[str, DataObject],
    joins_bytes: float,
    host: HostFacts,
) -> None:
    needed = joins_bytes
    for name, table in stored.items():
        for column in columns[name].values():
            needed += (table.rows or 0) * column.bits / 8
            if column.encoded:
                copies = 1 if column.by_row else table.parts
                needed += copies * column.distinct * column.value_bytes
    spare = host.available_bytes * ROOM
    if needed > spare:
        raise InputError(
            f"tables and joins need {needed / 1e9:.3g} GB, of {spare / 1e9:.3g} GB to spare here",
            expected=f"--scale {scenario.scale * spare / needed:.1g}, or less",
        )


def _table(table: Table, columns: Mapping[str, TaskColumn], mapping: HostMapping) -> TaskTable:
    parts = [
        TaskPart(rows=part.rows, node=-1)
        if part.node is None
        else TaskPart(rows=part.rows, node=part.node, host_node=mapping.host_node[part.node])
        for part in table.parts
    ]
    return TaskTable(columns=list(columns.values()), parts=parts)


def _queues(latency: Floats, able: set[int]) -> list[int]:
    """(n,) the nearest node with workers, itself where it has some; of equals the next one."""
    n = len(latency)
    turns = [[(node + k) % n for k in range(n) if (node + k) % n in able] for node in range(n)]
    return [
        node if node in able else min(near, key=latency[node].__getitem__)
        for node, near in enumerate(turns)
    ]


class _Queries:
    """Stages of queries as the engine has them, from the operators and the program's stages."""

    def __init__(
        self, scenario: Experiment, program: Program, stored: Mapping[str, DataObject]
    ) -> None:
        self.program, self.stored = program, stored
        self._placed_anew = has_placer(scenario)
        self.notes: list[str] = []
        self.joins_bytes = 0.0  # of hash tables, where all clients join at once
        self._class_at = {name: k for k, name in enumerate(program.classes)}

    def stages(self, query: str, graph: tuple[OperatorNode, ...]) -> Iterator[TaskStage]:
        """Of a query; Raises InputError for operators that the engine has not."""
        (found,) = (each for each in self.program.queries if each.name == query)
        at = {stage.name: k for k, stage in enumerate(found.stages)}
        scans: dict[str, ScanSpec] = {}
        joins: set[str] = set()
        if not found.stages:
            _refuse(f"query '{query}', which does nothing", "an operator that reads columns")
        last = list(graph)[-1]
        for node in graph:
            spec, what = node.spec, f"operator '{node.name}' of query '{query}'"
            if spec.after or getattr(spec, "pipelined", False):
                _refuse(f"{what} with after or pipelined", "neither")
            if getattr(spec, "intermediates", None) in ("materialised", "pipelined"):
                _refuse(f"{what} with intermediates", "pooled")
            if isinstance(spec, ScanSpec):
                if spec.path not in (None, "cpu"):
                    _refuse(f"{what} by a copy engine", "path: cpu")
                scans[node.name] = spec
                if spec.columns:
                    yield self._scan(what, spec, node, found.stages[at[node.name]])
            elif isinstance(spec, JoinSpec):
                joins.add(node.name)
                for source in (spec.build, spec.probe):
                    if source not in scans:
                        _refuse(f"{what} of '{source}'", "scans")
                yield from self._join(what, spec, node, found, at, scans)
            elif isinstance(spec, (MaterialiseSpec, AggregateSpec)):
                if spec.input not in {*scans, *joins}:
                    _refuse(f"{what} after '{spec.input}'", "the input of a scan or join")
                if node is not last:
                    _refuse(f"{what}, which others follow", "it as the last one")
                selection = at.get(spec.input, -1)
                if isinstance(spec, MaterialiseSpec):
                    stage = self._made(found.stages[at[node.name]], TaskKind.MATERIALISE)
                    stage.selection = selection
                    self._read(stage, self._table(stage.table), node.reads["columns"])
                    yield stage
                else:
                    yield from self._aggregate(what, spec, node, found.stages, selection)
            else:
                _refuse(f"{what}, a {spec.kind}", "scan, join, materialise or aggregate")

    def _made(self, stage: Stage, kind: TaskKind) -> TaskStage:
        return TaskStage(
            kind=kind,
            task_class=self._class_at[stage.task_class],
            table=-1 if stage.table is None else stage.table,
            inputs=list(stage.inputs),
            concurrency=stage.concurrency or 0,
            parts_min=stage.parts_min,
        )

    def _scan(self, what: str, spec: ScanSpec, node: OperatorNode, stage: Stage) -> TaskStage:
        """Each of several columns lets the same share through: their values are independent."""
        made = self._made(stage, TaskKind.SCAN)
        read, each = node.reads["columns"], spec.selectivity ** (1 / len(spec.columns))
        made.columns = self._positions(read)
        distinct = [self._distinct(column) for column in read]
        made.smallest = [round(each * values) for values in distinct]
        # As sim/systems/tasks/operators.py: what takes less.
        made.positions = spec.result == "positions" or 4 * spec.selectivity < 1 / 8
        passed = math.prod(k / n for k, n in zip(made.smallest, distinct, strict=True))
        if abs(passed - spec.selectivity) > SELECTED_NEAR * spec.selectivity:
            self.notes.append(
                f"{what} lets {passed:.3g} of the rows through, not {spec.selectivity:g}: its "
                "columns have too few values"
            )
        return made

    def _join(
        self,
        what: str,
        spec: JoinSpec,
        node: OperatorNode,
        query: Query,
        at: Mapping[str, int],
        scans: Mapping[str, ScanSpec],
    ) -> Iterator[TaskStage]:
        """A row that probes finds as many as the build side has for each value of a key."""
        (of_build,), (of_probe,) = node.reads["build_key"], node.reads["probe_key"]
        rows = (self.stored[of_build.table].rows or 0) * scans[spec.build].selectivity
        if (of_key := rows / self._distinct(of_build)) > ROWS_OF_KEY_MAX:
            expected = f"at most {ROWS_OF_KEY_MAX:g}, so the other table as its 'build'"
            _refuse(f"{what}, whose 'build' has {of_key:,.0f} rows of each key", expected)
        self.joins_bytes += (query.clients or self.program.mix_clients) * rows * JOINED_ROW_BYTES
        matches = rows / max(self._distinct(of_build), self._distinct(of_probe))
        if abs(matches - spec.matches) > SELECTED_NEAR * spec.matches:
            self.notes.append(
                f"{what} finds about {matches:.3g} rows for each, not {spec.matches:g}: as many as "
                "the values of its columns make"
            )
        for name, kind, source, key in (
            (f"{node.name}/build", TaskKind.BUILD, spec.build, of_build),
            (node.name, TaskKind.PROBE, spec.probe, of_probe),
        ):
            made = self._made(query.stages[at[name]], kind)
            made.selection, made.built = at.get(source, -1), at[f"{node.name}/build"]
            made.columns = self._positions((key,))
            yield made

    def _aggregate(
        self,
        what: str,
        spec: AggregateSpec,
        node: OperatorNode,
        stages: tuple[Stage, ...],
        selection: int,
    ) -> Iterator[TaskStage]:
        if spec.groups is not None:
            _refuse(f"{what} with 'groups'", "as many as the values of its columns make")
        grouped = node.reads["group_by"]
        (table,) = (self._table(one.table) for one in stages if one.name == node.name)
        own = [c for c in grouped if c.table == table and self._described(c).encoded]
        for column in {*grouped} - {*own}:
            if self._ids_differ(column):
                expected = "system.parts: 1, and no placer"
                _refuse(f"{what} by '{column.column}', whose ids differ by part", expected)
        radix = [self._distinct(column) for column in grouped]
        if math.prod(radix) >= 2**63:
            _refuse(f"{what} by {math.prod(radix):.1e} groups", "fewer than 2^63")
        agreed = -1
        for k, stage in enumerate(stages):
            if stage.name == f"{node.name}/dictionaries":
                agreed, made = k, self._made(stage, TaskKind.DICTIONARIES)
            elif stage.name == node.name:
                made = self._made(stage, TaskKind.AGGREGATE)
                made.selection, made.agreed = selection, agreed
                made.inputs = sorted({*stage.inputs, *([agreed] if agreed >= 0 else [])})
            elif stage.name == f"{node.name}/merge":
                made = self._made(stage, TaskKind.MERGE)
            else:
                continue
            dictionaries = made.kind == TaskKind.DICTIONARIES
            self._read(made, table, own if dictionaries else grouped, node.reads["sums"])
            # One table for each task, as large as its rows can fill.
            made.radix, made.groups = radix, min(math.prod(radix), 2**32)
            yield made

    def _read(
        self,
        made: TaskStage,
        table: str,
        columns: Sequence[ColumnOf],
        sums: Sequence[ColumnOf] = (),
    ) -> None:
        """``table``: whose rows the selection has, or the pairs of a join that probed with it."""
        made.columns, made.sums = self._positions(columns), self._positions(sums)
        made.joined = [column.table != table for column in (*columns, *sums)]

    def _table(self, position: int | None) -> str:
        assert position is not None
        return self.program.tables[position].name

    def _positions(self, columns: Sequence[ColumnOf]) -> list[int]:
        """In their table."""
        return [list(self._columns(column)).index(column.column) for column in columns]

    def _columns(self, column: ColumnOf) -> Mapping[str, Column]:
        found = self.stored[column.table].columns
        assert found is not None
        return found

    def _described(self, column: ColumnOf) -> Column:
        return self._columns(column)[column.column]

    def _distinct(self, column: ColumnOf) -> int:
        return int(self._described(column).distinct)

    def _ids_differ(self, column: ColumnOf) -> bool:
        """By part."""
        described, stored = self._described(column), self.stored[column.table]
        several = stored.parts > 1 or self._placed_anew
        return several and described.encoded and counts_by_row(described, stored.rows or 0)
