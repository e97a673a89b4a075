"""Placement of a cluster's processes (clients, servers, others) on the processors of a host."""

from __future__ import annotations


def homes(
    clients: int, storage: int, others: int, cpus: int, *, served: bool, manages: bool = False
) -> tuple[int, ...]:
    """The processor of each process: clients, then storage servers, then the others (timestamps).

    Where clients work alone (``served`` is False) they take processors in turn. Else about as much
    is to be done by all storage servers together as by all clients, and by the timestamp server an
    eighth of it, or three quarters where it ``manages`` transactions: the largest part first, each
    goes where least is to be done.
    """
    nodes = storage + others
    if not served:
        return tuple(place % cpus for place in range(clients + nodes))
    # In parts of a whole number, so that equal ones are equal.
    part = clients * storage * max(others, 1)
    parts = [part * 8 // clients] * clients + [part * 8 // storage] * storage
    parts += [part * (6 if manages else 1) // max(others, 1)] * others
    load, found = [0] * cpus, [0] * len(parts)
    # Of equal parts servers come first: they are fewer.
    for place in sorted(range(len(parts)), key=lambda p: (-parts[p], p < clients, p)):
        found[place] = min(range(cpus), key=lambda cpu: (load[cpu], cpu))
        load[found[place]] += parts[place]
    return tuple(found)
