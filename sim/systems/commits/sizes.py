"""Sizes of the commit protocols' messages, in bytes of payload, by type.

Sizes by type are for k records in a message, k from 0 to all that a transaction writes; most types
carry none or one, and are of one size.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ....workloads import Workload
from ...machine.message_costs import AETH, ATOMIC, ATOMIC_ACK, RETH
from .spec import CommitSystem

WORD = 8.0  # a timestamp, a record's number, the first word of a block

Sizes = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Records:
    """What a transaction reads and writes, in bytes; ``written`` are means over its writes."""

    read: float
    written: float
    """Of a whole record."""
    changed: float
    """Of what is new in it: all of an insert, the changed bytes of an update."""
    reads: int
    writes: int
    updates: int


def transaction_records(system: CommitSystem, workload: Workload) -> Records:
    """The records of the workload's one kind of transaction."""
    _, operation = system.transaction(workload)

    def size(table: str) -> float:
        record_size = workload.objects[table].record_size
        assert record_size is not None, "a table has it"
        return record_size.value

    read, changed = size(operation.object), operation.changed_size
    inserted = sum(count * size(table) for table, count in operation.inserts.items())
    writes = operation.updates + sum(operation.inserts.values())
    updated = read if changed is None else changed.value
    return Records(
        read=read,
        written=(operation.updates * read + inserted) / writes,
        changed=(operation.updates * updated + inserted) / writes,
        reads=operation.reads or 0,
        writes=writes,
        updates=operation.updates,
    )


def two_phase_sizes(system: CommitSystem, records: Records) -> Sizes:
    """Of 2PC: servers have processors, so that an update carries only what is new.

    The write set goes with the commit request to the transaction manager, and from there with the
    order to install: the source's 5 + 8n messages have no others that could carry it.
    """
    header, of_record = system.message_header.value, system.record_header.value
    carried = range(records.writes + 1)
    new = of_record + records.changed
    with_new = tuple(header + WORD + k * new for k in carried)
    numbers = tuple(header + WORD + k * WORD for k in carried)
    return {
        "snapshot-request": (header,),
        "snapshot": (header + WORD,),
        "read": (header + 2 * WORD,),
        "record": (header + of_record + records.read,),
        "commit-request": with_new,
        "timestamp-request": (header,),
        "timestamp": (header + WORD,),
        "prepare": numbers,
        "vote": (header,),
        "install": with_new,
        "installed": (header,),
        "rollback": numbers,
        "finished": (header + WORD,),
        "outcome": (header + WORD,),
    }


def block_bytes(system: CommitSystem, record: float) -> float:
    """A record block: for each version a word (the newest one's has the lock) and the payload."""
    return system.versions * (WORD + record)


def one_sided_sizes(system: CommitSystem, records: Records) -> Sizes:
    """Of RSI: what each verb carries beside its packets' headers.

    A READ fetches the whole block, as it must find the version that its snapshot sees; a WRITE
    replaces it, as versions shift.
    """
    vector = system.timestamp_bits / 8.0
    snapshot = vector if system.snapshot_size is None else system.snapshot_size.value
    header = system.message_header.value
    result = AETH + ATOMIC_ACK
    return {
        "snapshot-read": (RETH,),
        "snapshot-data": (AETH + snapshot,),
        "read": (RETH,),
        "record": (AETH + block_bytes(system, records.read),),
        "cas": (ATOMIC,),
        "cas-result": (result,),
        "write": (RETH + block_bytes(system, records.written),),
        "write-done": (AETH,),
        # With leases a CAS, which fails where the lock was broken meanwhile.
        "unlock": (RETH + WORD if system.lease is None else ATOMIC,),
        "unlock-done": (AETH if system.lease is None else result,),
        "bit": (RETH + 1.0,),
        "bit-done": (AETH,),
        "claim": (ATOMIC,),
        "claim-result": (result,),
        "break": (ATOMIC,),
        "break-result": (result,),
        "complaint": (header + 2 * WORD,),
        "complaint-done": (header,),
        "revoke": (header + WORD,),
        "revoked": (header,),
    }
