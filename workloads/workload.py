"""A workload ready to run: at each time, which operations on which keys, in which mix.

Scaling of a workload: all objects and ranges of keys shrink by the same factor.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Any, Literal

from ..inputs import DescriptionError
from ..inputs.yaml_file import Place
from .key_specs import AnyKeySpec
from .keys import TIME_SLACK_S, KeyDistribution
from .operators import JoinSpec, RecordedSpec
from .query_graphs import OperatorNode, query_graph
from .schema import CLIENTS_MAX, DataObject, Operation, WorkloadDescription
from .task_trace import TaskTrace, load_trace

FIRST_PHASE = "start"

# The kind of object that each kind of operation works on.
NEEDED = {
    "lookup": "index",
    "upsert": "index",
    "route": "index",
    "scan": "column",
    "transaction": "table",
    "join": "table",
    "aggregate": "table",
}


@dataclass(frozen=True)
class ResolvedOperation:
    """An operation during a phase. ``share`` of all shares is 1; ``keys`` is None for a scan and a
    query, which has no single ``object``: it is empty. ``traces``: a query's recorded tasks, by the
    names of operators.

    How many records a transaction reads and writes stands in the description: no phase changes it.
    """

    kind: Literal["lookup", "upsert", "route", "scan", "transaction", "query", "join", "aggregate"]
    object: str
    share: float
    keys: KeyDistribution | None
    selectivity: float
    result: Literal["sum", "bitmap", "positions"]
    traces: Mapping[str, TaskTrace] = field(default_factory=dict)


@dataclass(frozen=True)
class PhaseState:
    """What runs from ``start_s`` on; its key distributions count time from there."""

    name: str
    start_s: float
    operations: Mapping[str, ResolvedOperation]

    @property
    def asked(self) -> list[ResolvedOperation]:
        """The operations that have a share of the mix."""
        return [operation for operation in self.operations.values() if operation.share]


@dataclass(frozen=True)
class Workload:
    """A description with its phases worked out, one state each, the first from time 0."""

    description: WorkloadDescription
    phases: tuple[PhaseState, ...]

    @cached_property
    def plain(self) -> dict[str, Any]:
        """Its description as plain JSON values, not to be changed."""
        return self.description.model_dump(mode="json", exclude_none=True)

    @cached_property
    def plain_text(self) -> str:
        """The same as JSON text, its keys sorted."""
        return json.dumps(self.plain, sort_keys=True)

    @cached_property
    def graphs(self) -> Mapping[str, tuple[OperatorNode, ...]]:
        """The operators of each query, each after those that it needs."""
        return {
            name: query_graph(operation.operators, self.objects)
            for name, operation in self.operations.items()
            if operation.operators is not None
        }

    @property
    def name(self) -> str:
        """The workload's name."""
        return self.description.name

    @property
    def objects(self) -> Mapping[str, DataObject]:
        """The data objects by name."""
        return self.description.objects

    @property
    def operations(self) -> Mapping[str, Operation]:
        """The operations by name, as they are before any phase changes them."""
        return self.description.operations

    @cached_property
    def phase_starts(self) -> tuple[float, ...]:
        """When each phase starts, in seconds; the first is 0."""
        return tuple(phase.start_s for phase in self.phases)

    def at(self, time_s: float) -> PhaseState:
        """The phase that runs at that time; a phase runs from its start on."""
        return self.phases[max(bisect_right(self.phase_starts, time_s + TIME_SLACK_S) - 1, 0)]

    def change_times(self, until_s: float) -> list[float]:
        """When phases start or keys move, rising, above 0 and below ``until_s``."""
        times = set(self.phase_starts[1:])
        for phase, end_s in zip(self.phases, (*self.phase_starts[1:], until_s), strict=True):
            lasts_s = min(end_s, until_s) - phase.start_s
            for operation in phase.operations.values():
                if operation.keys is not None and lasts_s > 0:
                    moves = operation.keys.change_times(lasts_s)
                    times.update(phase.start_s + move for move in moves)
        return sorted(time for time in times if time < until_s)


def resolve(description: WorkloadDescription, folder: Path) -> Workload:
    """The workload that ``description`` stands for; files it names are looked for in ``folder``.

    Raises DescriptionError for what does not fit together, InputError for a file's line.
    """
    operations: dict[str, ResolvedOperation] = {}
    for name, operation in description.operations.items():
        _check_object(description, name, operation)
        place: Place = ("operations", name, "keys")
        operations[name] = ResolvedOperation(
            operation.kind,
            operation.object,
            operation.share,
            _keys(description, operation, operation.keys, folder, place),
            operation.selectivity,
            operation.result,
            traces_of(description, name, operation, folder),
        )
    states = [PhaseState(FIRST_PHASE, 0.0, operations)]
    _check_shares(states[0], ("operations",))
    for index, phase in enumerate(description.phases):
        before, start_s = states[-1], phase.start.value
        if start_s <= before.start_s + TIME_SLACK_S:
            raise DescriptionError(
                ("phases", index, "start"), "expected a rising order, steps above 1 ns"
            )
        # Keys that the phase does not change go on moving from where they are.
        elapsed_s = start_s - before.start_s
        changed = {
            name: replace(operation, keys=operation.keys and operation.keys.later(elapsed_s))
            for name, operation in before.operations.items()
        }
        for name, change in phase.operations.items():
            place = ("phases", index, "operations", name)
            if name not in changed:
                known = ", ".join(changed)
                raise DescriptionError(place, f"no such operation: expected one of {known}")
            operation = description.operations[name]
            if change.keys is not None:
                if operation.keys is None:
                    raise DescriptionError((*place, "keys"), f"a {operation.kind} has no keys")
                keys = _keys(description, operation, change.keys, folder, (*place, "keys"))
                changed[name] = replace(changed[name], keys=keys)
            if change.share is not None:
                changed[name] = replace(changed[name], share=change.share)
        states.append(PhaseState(phase.name, start_s, changed))
        _check_shares(states[-1], ("phases", index, "operations"))
    check_clients(description)
    return Workload(description, tuple(_normalised(state) for state in states))


def _check_object(description: WorkloadDescription, name: str, operation: Operation) -> None:
    if operation.kind == "query":
        check_query(description, name, operation)
        return
    place: Place = ("operations", name, "object")
    stored = description.objects.get(operation.object)
    if stored is None:
        known = ", ".join(description.objects)
        raise DescriptionError(place, f"no such object: expected one of {known}")
    needed = NEEDED[operation.kind]
    if stored.kind != needed:
        article, of_kind = ("an" if word[0] in "ai" else "a" for word in (needed, operation.kind))
        raise DescriptionError(place, f"{of_kind} {operation.kind} needs {article} {needed}")
    if operation.kind == "transaction":
        _check_transaction(description, name, operation)
    if operation.kind in ("join", "aggregate"):
        _check_tables(description, name, operation)


def _check_tables(description: WorkloadDescription, name: str, operation: Operation) -> None:
    """What a join or an aggregation reads are tables by row that have records."""
    fields = ("object", "outer") if operation.kind == "join" else ("object",)
    for which in fields:
        place: Place = ("operations", name, which)
        table = str(getattr(operation, which))
        stored = description.objects.get(table)
        if stored is None or stored.record_size is None:
            tables = [name for name, found in description.objects.items() if found.record_size]
            known = f": expected one of {', '.join(tables)}" if tables else ""
            raise DescriptionError(place, f"no table '{table}' that is stored by row{known}")
        if not stored.records:
            raise DescriptionError(
                place, f"table '{table}' has no records: expected 'records' there"
            )


def _check_transaction(description: WorkloadDescription, name: str, operation: Operation) -> None:
    """Records enough to read, and tables to insert into."""
    records, reads = description.objects[operation.object].records, operation.reads or 0
    if records < reads:
        raise DescriptionError(
            ("operations", name, "reads"),
            f"{reads} different records of {records}: expected at most {records}"
            if records
            else f"table '{operation.object}' has no records: expected 'records' there",
        )
    size, changed = description.objects[operation.object].record_size, operation.changed_size
    if size is not None and changed is not None and changed.value > size.value:
        raise DescriptionError(
            ("operations", name, "changed_size"), f"expected at most {size.value:.0f} B, a record"
        )
    if not operation.updates and not operation.inserts:
        raise DescriptionError(
            ("operations", name), "writes nothing: expected updates, inserts or both"
        )
    for table in operation.inserts:
        place: Place = ("operations", name, "inserts", table)
        stored = description.objects.get(table)
        if stored is None or stored.kind != "table":
            tables = [name for name, found in description.objects.items() if found.kind == "table"]
            what = "no such object" if stored is None else f"a {stored.kind}"
            raise DescriptionError(place, f"{what}: expected one of {', '.join(tables)}")


def _keys(
    description: WorkloadDescription,
    operation: Operation,
    spec: AnyKeySpec | None,
    folder: Path,
    place: Place,
) -> KeyDistribution | None:
    if spec is None:
        return None
    stored = description.objects[operation.object]
    keys = operation.groups or (stored.records if stored.kind == "table" else stored.keys)
    assert keys, "operations by key are checked to be on an index, or on a table with records"
    try:
        return spec.over(keys, folder)
    except DescriptionError as failure:
        raise DescriptionError((*place, *failure.place), str(failure)) from None


def _check_shares(state: PhaseState, place: Place) -> None:
    if not state.asked:
        raise DescriptionError(place, "every share is 0: expected one above 0")


def _normalised(state: PhaseState) -> PhaseState:
    total = fsum(operation.share for operation in state.operations.values())
    return replace(
        state,
        operations={
            name: replace(operation, share=operation.share / total)
            for name, operation in state.operations.items()
        },
    )


def check_query(description: WorkloadDescription, name: str, operation: Operation) -> None:
    """Raises DescriptionError for operators that read what they do not have."""
    assert operation.operators is not None
    try:
        query_graph(operation.operators, description.objects)
    except DescriptionError as failure:
        place = ("operations", name, "operators", *failure.place)
        raise DescriptionError(place, str(failure)) from None


def traces_of(
    description: WorkloadDescription, name: str, operation: Operation, folder: Path
) -> dict[str, TaskTrace]:
    """The recorded tasks of a query's operators, by their names; files are looked for in
    ``folder``. Raises InputError for a file's line, DescriptionError where it cannot be read."""
    tables = [table for table, stored in description.objects.items() if stored.columns is not None]
    found = {}
    for operator, spec in (operation.operators or {}).items():
        if not isinstance(spec, RecordedSpec):
            continue
        place = ("operations", name, "operators", operator)
        try:
            trace = load_trace(folder / spec.file, tables)
        except (OSError, ValueError) as failure:  # ValueError: a NUL in the name
            reason = getattr(failure, "strerror", None) or "not a file name"
            raise DescriptionError((*place, "file"), f"cannot be read: {reason}") from None
        if spec.structure is None and any(traced.accesses for traced in trace.traced):
            raise DescriptionError(
                place, "missing field 'structure': size of what its tasks' accesses go to"
            )
        found[operator] = trace
    return found


def check_clients(description: WorkloadDescription) -> None:
    """Raises DescriptionError where some query has nobody to ask for it, or clients are too many.

    Queries have clients of their own, or are part of the mix, which has ``clients.count`` closed
    clients or open arrivals. Other operations' clients are said by the system that runs them.
    """
    clients = description.clients
    queries = {
        name: operation
        for name, operation in description.operations.items()
        if operation.kind == "query"
    }
    if not queries:
        if clients.count is not None:
            message = "only workloads of queries have a number of clients"
            raise DescriptionError(("clients", "count"), message)
        return
    own = {name: query.clients for name, query in queries.items() if query.clients is not None}
    if own and clients.kind == "open":
        raise DescriptionError(
            ("operations", next(iter(own)), "clients"),
            "queries arrive at clients.arrival_rate: expected no clients of its own",
        )
    if clients.kind == "closed":
        mixed = len(queries) - len(own)
        if mixed and clients.count is None:
            raise DescriptionError(
                ("clients",), "missing field 'count': how many clients ask for queries of the mix"
            )
        if mixed and not any(query.share for query in queries.values() if query.clients is None):
            raise DescriptionError(("operations",), "every share of the mix is 0")
        if not mixed and clients.count is not None:
            raise DescriptionError(
                ("clients", "count"),
                "expected no count: all queries have clients of their own, and none are left for "
                "the mix",
            )
    total = sum(own.values()) + (clients.count or 0)
    if total > CLIENTS_MAX:
        raise DescriptionError(
            ("clients",), f"{total} clients together: expected at most {CLIENTS_MAX}"
        )


def scaled(workload: Workload, factor: float) -> Workload:
    """``workload`` with ``factor`` times the keys, entries, records and rows, 0 < factor <= 1.

    Hot ranges and recorded keys shrink with their object; mix, popularity and phases stay. A column
    whose values are all different keeps that, and one that a join compares has so many times its
    values, so that rows find as many as before; others have the same values, as long as there are
    rows for them. Raises DescriptionError where so few records are left that a transaction cannot
    read different ones, or fewer rows than parts.
    """
    if factor == 1.0:
        return workload
    compared = {
        key
        for graph in workload.graphs.values()
        for node in graph
        if isinstance(node.spec, JoinSpec)
        for key in (*node.reads["build_key"], *node.reads["probe_key"])
    }
    objects = {
        name: _object(name, stored, factor, {key.column for key in compared if key.table == name})
        for name, stored in workload.objects.items()
    }
    for name, operation in workload.operations.items():
        if operation.kind == "query":
            continue
        reads, records = operation.reads or 0, objects[operation.object].records
        if operation.kind == "transaction" and records < reads:
            raise DescriptionError(
                ("scale",),
                f"operation '{name}' reads {reads} different records, and table "
                f"'{operation.object}' has {records} left: expected a larger scale",
            )
    description = workload.description.model_copy(update={"objects": objects})
    return Workload(description, tuple(_phase(phase, objects, factor) for phase in workload.phases))


def _object(name: str, stored: DataObject, factor: float, compared: set[str]) -> DataObject:
    changed: dict[str, object] = {}
    if stored.rows is not None and stored.columns is not None:
        rows = max(round(stored.rows * factor), 1)
        if rows < stored.parts:
            raise DescriptionError(
                ("scale",),
                f"table '{name}' has {rows} rows left in {stored.parts} parts: expected a larger "
                "scale",
            )
        changed["rows"], changed["columns"] = (
            rows,
            {
                column: described.model_copy(
                    update={
                        "distinct": max(round(described.distinct * factor), 1)
                        if described.distinct == stored.rows or column in compared
                        else min(described.distinct, rows)
                    }
                )
                for column, described in stored.columns.items()
            },
        )
    for name in ("keys", "entries", "records"):
        amount = getattr(stored, name)
        if amount:
            changed[name] = max(round(amount * factor), 1)
    return stored.model_copy(update=changed)


def _phase(phase: PhaseState, objects: dict[str, DataObject], factor: float) -> PhaseState:
    def scaled_operation(operation: ResolvedOperation) -> ResolvedOperation:
        if operation.keys is None or operation.kind == "aggregate":  # as many groups as before
            return operation
        stored = objects[operation.object]
        keys = stored.records if stored.kind == "table" else stored.keys
        assert keys
        return replace(operation, keys=operation.keys.scaled(keys))

    return replace(
        phase, operations={name: scaled_operation(o) for name, o in phase.operations.items()}
    )
