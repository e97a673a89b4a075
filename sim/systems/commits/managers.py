"""Servers' threads of the operating system: one for each client's connection, which polls."""

from __future__ import annotations

from dataclasses import replace

from ....topologies import Machine
from ..._kernel import MessageCost, ProcessorSetup
from ...machine.processors import SHARES_NONE
from .checked_values import TIME_MAX_PS, ps
from .client_threads import thread_switch_s
from .host import base_slice_s
from .parameters import CommitParameters, Node
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
