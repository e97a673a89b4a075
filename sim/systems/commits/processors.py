"""How the processes of one host share its processors, in plain integers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Processors:
    """``count`` processors of one host that all clients and nodes share, each a process of its own.

    Each process stays on one processor, its home: ``homes`` by place (clients first, then nodes);
    in turn where it is empty. Processes of one processor run by Linux's rules (EEVDF, see
    machine/reference/processors.py): one at a time, until it sleeps, gives way, has used up its
    slice of ``slice_ps`` at one of the ticks that come every ``tick_ps``, or another one is woken
    that has had less than its share. So may a client that aborted or waits for timestamps, where it
    ``gives_way``. A process without work looks for more for ``spin_ps`` of its time, then sleeps.
    What a process pays for, in its own time: ``switch_ps`` as it takes over from another one,
    ``look_ps`` as it finds messages, however many, and for each process that these are from
    ``connection_ps`` (K,), by how many parts they have together, from 1 on (K or more: the last;
    empty: none), ``sleep_ps`` for falling asleep and being woken, ``across_ps`` for each part of a
    message from another processor, ``notify_ps`` for waking another one
    there, ``interrupt_ps`` for being woken from there while others run here, ``yield_ps`` for
    giving way. Who is woken on an idle processor runs ``wake_ps`` later.
    Pauses are slept through but for their last ``awake_ps``; those of up to twice that are not.
    """

    count: int
    slice_ps: int
    tick_ps: int = 4_000_000_000
    switch_ps: int = 0
    look_ps: int = 0
    connection_ps: tuple[int, ...] = ()
    spin_ps: int = 0
    sleep_ps: int = 0
    wake_ps: int = 0
    across_ps: int = 0
    notify_ps: int = 0
    interrupt_ps: int = 0
    yield_ps: int = 0
    gives_way: bool = False
    awake_ps: int = 50_000_000
    homes: tuple[int, ...] = ()


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
