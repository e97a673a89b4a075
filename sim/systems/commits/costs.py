"""Costs of the commit protocols' messages on a machine, in whole picoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....topologies import Machine
from ....topologies.nics import MessageCurve
from ....workloads import Workload
from ..._kernel import MessageCost, ProcessorSetup, RecordWork
from ...machine.message_costs import message_cost
from .checked_values import PS
from .facts import host_facts
from .host import Host, host_costs
from .managers import shared_processors
from .messages import ONE_SIDED_SIDES, REMEDY_SIDES, TWO_PHASE_SIDES
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
    found = host_costs(host, facts, sizes, machine, workload, records)
    return CommitCosts(
        messages=found.messages,
        wire_bytes=sizes,
        curve=None,
        compute_ps=0,
        work=found.work,
        processors=found.processors,
    )
