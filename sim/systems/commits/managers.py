"""Servers' threads of the operating system: one for each client's connection, which polls."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import cycle, islice
from typing import TYPE_CHECKING

from ....inputs import Quantity
from ....topologies import Machine
from ..._kernel import MessageCost, ProcessorSetup
from ...machine.processors import SHARES_NONE
from .checked_values import TIME_MAX_PS, ps
from .host import base_slice_s
from .parameters import CommitParameters, Node
from .spec import CommitSystem

if TYPE_CHECKING:
    from .spec import CommitSystem

# Calls within the managers' process, where the timestamp service is in it.
LOCAL = ("timestamp-request", "timestamp", "finished")


def with_own_managers(
    parameters: CommitParameters, system: CommitSystem, machine: Machine
) -> CommitParameters:
    """A thread for each client on the timestamp server, and on the storage servers where
    ``storage_threads`` says so, which polls: it never sleeps.

    These threads share the hardware threads of their server; the timestamp service keeps its own.
    """
    p, clients, roles = parameters, len(parameters.client_machine), system.roles(machine)
    assert p.processors is None, "clients share no hardware threads: see CommitSystem.check"
    servers = [(p.timestamps, roles.timestamps)]
    if system.storage_threads == "per-client":
        servers += zip(p.storage, roles.storage, strict=True)
    first, nodes = len(p.nodes), list(p.nodes)
    homes = [SHARES_NONE] * (clients + first)
    begins: dict[int, int] = {}  # of the hardware threads of a machine's node
    groups: list[int] = []
    for server, position in servers:
        threads = machine.nodes[position].threads
        if position not in begins:
            begins[position] = len(groups)
            groups += [len(begins) - 1] * threads
        nodes += [Node(p.nodes[server].machine)] * clients
        homes += [begins[position] + client % threads for client in range(clients)]
    processors = ProcessorSetup(
        count=len(groups),
        slice_ps=ps(base_slice_s(min(machine.nodes[at].threads for at in begins))),
        switch_ps=ps(thread_switch_s(system, machine)),
        spin_ps=TIME_MAX_PS,
        homes=homes,
        groups=groups,
    )
    return replace(
        p,
        nodes=tuple(nodes),
        managers=tuple(range(first, first + clients)),
        own_managers=True,
        own_storage=tuple(range(first + clients, len(nodes))),
        costs={**p.costs, **dict.fromkeys(LOCAL, (MessageCost(),))},
        processors=processors,
    )


# A thread's switch where neither scenario nor machine file says it: this project's measurements of
# two hosts are 1.25 and 1.8 µs (`processes.turn` in topologies/zen5-2c.yaml and
# benchmarks/disturbances/machine.yaml), with 32 KiB of data back in the caches.
SWITCH = Quantity(1.5e-6, 1.25e-6, 1.8e-6)


def thread_switch_s(system: CommitSystem, machine: Machine) -> float:
    """What one thread's taking over from another costs: the scenario's, the machine's, SWITCH."""
    if system.thread_switch is not None:
        return system.thread_switch.value
    measured = machine.description.processes
    return SWITCH.value if measured is None else measured.turn.value


def shared_processors(system: CommitSystem, machine: Machine) -> ProcessorSetup | None:
    """The hardware threads of the nodes that have more clients than these; None where none has.

    A client of such a node blocks where it waits (a poll of many would keep the others from
    running), is woken by its message, and moves to an idle hardware thread of its node. Servers,
    and clients of other nodes, have hardware threads of their own.
    """
    roles = system.roles(machine)
    of_client = list(islice(cycle(roles.clients), system.clients))
    crowded = {
        position: machine.nodes[position].threads
        for position, clients in Counter(of_client).items()
        if clients > machine.nodes[position].threads
    }
    if not crowded:
        return None
    first, count = {}, 0
    for position, threads in crowded.items():
        first[position] = count
        count += threads
    homes: list[int] = []
    placed: Counter[int] = Counter()
    for position in of_client:
        if position not in crowded:
            homes.append(SHARES_NONE)
            continue
        homes.append(first[position] + placed[position] % crowded[position])
        placed[position] += 1
    servers = len(dict.fromkeys((*roles.storage, roles.timestamps)))
    switch_ps = ps(thread_switch_s(system, machine))
    return ProcessorSetup(
        count=count,
        slice_ps=ps(base_slice_s(min(crowded.values()))),
        switch_ps=switch_ps,
        sleep_ps=switch_ps,  # falling asleep and being woken are a switch too
        wake_ps=switch_ps,
        awake_ps=0,
        homes=[*homes, *[SHARES_NONE] * servers],
        groups=[index for index, threads in enumerate(crowded.values()) for _ in range(threads)],
    )
