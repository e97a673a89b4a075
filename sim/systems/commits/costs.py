"""Costs of the commit protocols' messages on a machine, in whole picoseconds.

Servers' threads of the operating system: one for each client's connection, which polls.

Clients beyond the hardware threads of their node: threads of the operating system that share
them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import cycle, islice

from ....inputs import Quantity
from ....topologies import Machine
from ....topologies.nics import MessageCurve
from ....workloads import Workload
from ..._kernel import MessageCost, ProcessorSetup, RecordWork
from ...machine.message_costs import message_cost
from ...machine.processors import SHARES_NONE
from .checked_values import PS, TIME_MAX_PS, ps
from .facts import host_facts
from .host import Host, base_slice_s, host_costs
from .messages import ONE_SIDED_SIDES, REMEDY_SIDES, TWO_PHASE_SIDES
from .parameters import CommitParameters, Node
from .sizes import one_sided_sizes, transaction_records, two_phase_sizes
from .spec import CommitSystem, clock_Hz

# Requests whose answer brings data: both together take the latency of a READ.
READS = {
    "snapshot-data": "snapshot-read",
    "record": "read",
    "cas-result": "cas",
    "claim-result": "claim",
    "break-result": "break",
}


@dataclass(frozen=True)
class CommitCosts:
    """Costs of messages by type, entry k for k records aboard, and of work on records."""

    messages: Mapping[str, tuple[MessageCost, ...]]
    wire_bytes: Mapping[str, tuple[float, ...]]
    """Of a message, with all headers; in the same order."""
    curve: MessageCurve | None
    """Of the adapters; None where processes of one host need none."""
    compute_ps: int
    """A client's own work on a transaction, beside its messages."""
    work: RecordWork
    """Of a server, where it has a processor of its own for that."""
    processors: ProcessorSetup | None = None
    """That clients, or all, share; None: every thread has its own."""


def commit_costs(system: CommitSystem, machine: Machine, workload: Workload) -> CommitCosts:
    """The costs of that system's messages; raises DescriptionError where facts are missing."""
    if system.layout == "host":
        return _costs_on_host(system, machine, workload)
    roles = system.roles(machine)
    curve, records = system.curve(machine, roles), transaction_records(system, workload)
    clocks_Hz = {
        "c": clock_Hz(machine, roles.clients),
        "s": clock_Hz(machine, (*roles.storage, roles.timestamps)),
    }
    one_sided = system.architecture == "rsi"
    sizes = (one_sided_sizes if one_sided else two_phase_sizes)(system, records)
    sides = ONE_SIDED_SIDES | REMEDY_SIDES if one_sided else TWO_PHASE_SIDES
    found: dict[str, tuple[MessageCost, ...]] = {}
    for name in sizes:
        request = READS.get(name) if one_sided else None
        found[name] = tuple(
            message_cost(
                curve,
                size,
                [clocks_Hz[side] if side != "-" else None for side in sides[name]],
                sizes[request][0] if request else None,
            )
            for size in sizes[name]
        )
    # Whoever has a processor of its own there makes or applies what is new, and no more.
    per_byte_ps = PS / system.copy_bandwidth.value
    made = records.written if one_sided else records.changed
    latency_ns = machine.nodes[roles.storage[0]].memory_latency_ns
    return CommitCosts(
        messages=found,
        wire_bytes={name: tuple(map(curve.wire_bytes, of_type)) for name, of_type in sizes.items()},
        curve=curve,
        compute_ps=round((records.reads * records.read + records.writes * made) * per_byte_ps),
        work=RecordWork(
            read_ps=round(records.read * per_byte_ps),
            # The first word of a record, at random: one access to memory.
            check_ps=round((latency_ns or 0.0) * 1e3),
            install_ps=round(records.changed * per_byte_ps),
        ),
        processors=shared_processors(system, machine),
    )


def _costs_on_host(system: CommitSystem, machine: Machine, workload: Workload) -> CommitCosts:
    facts, records = host_facts(machine.description), transaction_records(system, workload)
    assert facts is not None
    assert isinstance(system.storage_nodes, int)
    one_sided = system.architecture == "rsi"
    sizes = (one_sided_sizes if one_sided else two_phase_sizes)(system, records)
    vector = system.timestamp_bits / 8.0
    host = Host(
        clients=system.clients,
        storage=system.storage_nodes,
        transport=system.transport,
        one_sided=one_sided,
        versions=system.versions,
        record_bytes=records.read,
        vector_bytes=vector if system.snapshot_size is None else system.snapshot_size.value,
        cpus=machine.nodes[system.roles(machine).timestamps].threads,
    )
    messages, work, processors = host_costs(host, facts, sizes, machine, workload, records)
    return CommitCosts(messages, sizes, None, 0, work, processors)


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
