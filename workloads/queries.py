"""What queries and their clients must fit: tables, columns, each other."""

from __future__ import annotations

from ..inputs import DescriptionError
from .query_graphs import query_graph
from .schema import CLIENTS_MAX, Operation, WorkloadDescription


def check_query(description: WorkloadDescription, name: str, operation: Operation) -> None:
    """Raises DescriptionError for operators that read what they do not have."""
    assert operation.operators is not None
    try:
        query_graph(operation.operators, description.objects)
    except DescriptionError as failure:
        place = ("operations", name, "operators", *failure.place)
        raise DescriptionError(place, str(failure)) from None


def check_clients(description: WorkloadDescription) -> None:
    """Raises DescriptionError where some query has nobody to ask for it, or clients are too many.

    Queries have clients of their own, or are part of the mix, which has ``clients.count`` closed
    clients or open arrivals. Other operations' clients are said by the system that plays them.
    """
    clients = description.clients
    queries = {name: one for name, one in description.operations.items() if one.kind == "query"}
    if not queries:
        if clients.count is not None:
            raise DescriptionError(("clients", "count"), "without queries nobody is counted here")
        return
    own = {name: one.clients for name, one in queries.items() if one.clients is not None}
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
        if mixed and not any(one.share for one in queries.values() if one.clients is None):
            raise DescriptionError(("operations",), "every share of the mix is 0")
        if not mixed and clients.count is not None:
            raise DescriptionError(
                ("clients", "count"), "all queries have clients of their own: nobody is left"
            )
    total = sum(own.values()) + (clients.count or 0)
    if total > CLIENTS_MAX:
        raise DescriptionError(
            ("clients",), f"{total} clients together: expected at most {CLIENTS_MAX}"
        )
