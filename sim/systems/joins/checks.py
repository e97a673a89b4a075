"""Checks that a cluster has memory for its tables, and buffers for its partitions."""

from ....inputs import DescriptionError
from ....topologies import Machine
from ....workloads import Workload
from .facts import ENGINE, TUPLE_BYTES, JoinFacts
from .spec import BUFFERED_BY_PARTITION, JoinSystem, buffers_fit, last_cache_bytes
from .tables import tables_of


def check_host(system: JoinSystem, machine: Machine, workload: Workload) -> None:
    """The machine file says what passes and messages take, of such tuples; each process has a
    processor of its own."""
    facts, transport = machine.description.facts_of(ENGINE, JoinFacts), system.used_host_transport
    if facts is None:
        raise DescriptionError(
            ("layout",),
            f"machine '{machine.name}' has no times of passes over tuples: expected one "
            "that 'numatwin machine measure' has written",
        )
    if transport not in facts.exchanges:
        raise DescriptionError(
            ("host_transport",),
            f"machine '{machine.name}' has no times of messages by {transport}: expected "
            f"one of {', '.join(facts.exchanges) or 'none'}",
        )
    threads = machine.nodes[system.positions(machine)[0]].threads
    if not isinstance(system.nodes, int) or system.nodes > threads:
        raise DescriptionError(
            ("nodes",),
            f"machine '{machine.name}' has {threads} processors on its first node: expected at "
            "most one process for each",
        )
    for table in tables_of(system, workload).all:
        if table.row_bytes != TUPLE_BYTES:
            raise DescriptionError(
                ("layout",),
                f"host: tuples of '{table.name}' have {table.row_bytes:g} B: expected "
                f"{TUPLE_BYTES:g} B, as the passes were measured with",
            )


def check_room(system: JoinSystem, machine: Machine, workload: Workload) -> None:
    """Each node holds its part of the tables twice: as they are stored, and partitioned."""
    tables = tables_of(system, workload)
    for table in tables.all:
        if table.row_bytes > system.buffer.value:
            raise DescriptionError(
                ("buffer",), f"expected at least {table.row_bytes:g} B, a tuple of '{table.name}'"
            )
    positions = system.positions(machine)
    share = 2.0 * sum(table.bytes for table in tables.all) / len(positions)
    for position in positions:
        node = machine.nodes[position]
        if share * (len(positions) if system.layout == "host" else 1) > node.memory_bytes:
            raise DescriptionError(
                ("nodes",),
                f"{share / 2**30:.1f} GiB for each, tables and their partitions, more than node "
                f"{node.id} of machine '{machine.name}' holds: expected at most "
                f"{node.memory_bytes / 2**30:.1f} GiB",
            )


def check_buffers(system: JoinSystem, machine: Machine, workload: Workload) -> None:
    """Partitions have buffers in the last-level cache where they are filled."""
    n = len(system.positions(machine))
    if system.operator in BUFFERED_BY_PARTITION:
        fit = buffers_fit(system, machine)
        asked = system.partitions or n
        if asked % n:
            raise DescriptionError(
                ("partitions",), f"expected a multiple of {n}, as many for each node"
            )
        if asked > fit:
            node = machine.nodes[system.positions(machine)[0]]
            expected = f"at most {fit} partitions" if fit >= n else "a smaller buffer"
            raise DescriptionError(
                ("partitions" if system.partitions else "buffer",),
                f"{asked} partitions of {system.workers_of(machine, system.positions(machine)[0])} "
                f"workers with {system.send_buffers} buffers of {system.buffer.value:.0f} B each "
                f"are more than the last-level cache of {last_cache_bytes(node) / 2**20:g} MiB "
                f"holds: expected {expected}",
            )
