"""Checks of queries and their clients against tables, columns and each other."""

from __future__ import annotations

from pathlib import Path

from ..inputs import DescriptionError
from .operators import RecordedSpec
from .query_graphs import query_graph
from .schema import CLIENTS_MAX, Operation, WorkloadDescription
from .task_trace import TaskTrace, load_trace


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
                "all queries have clients of their own: none are left for the mix",
            )
    total = sum(own.values()) + (clients.count or 0)
    if total > CLIENTS_MAX:
        raise DescriptionError(
            ("clients",), f"{total} clients together: expected at most {CLIENTS_MAX}"
        )
