"""Instructions that the inner loops of a storage engine like ERIS execute, per unit of work.

The cost model turns them into core time: instructions / (instructions per cycle x clock). Cache
misses, the latency of atomic operations and mispredicted branches are not in them and are modelled
elsewhere, or are part of the machine's instructions per cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from .facts import ErisFacts

LINE_BYTES = 64


@dataclass(frozen=True)
class InstructionCounts:
    """Instructions per unit of each loop.

    Measured with callgrind on the loops in ``benchmarks/eris_loops/``, which define what is
    counted, compiled by g++ 12.2.0 for 64-bit x86 at ``-O3 -msse4.2``: all of ERIS's machines have
    these vectors of 16 bytes, not all have wider ones. A count is the difference between runs of
    two sizes, so that it holds no set-up. To measure again: ``python
    benchmarks/instruction_counts.py``.
    """

    tree_level: float = 9.9
    """Per key and level: one step of a batched walk down a prefix tree (8-bit prefix)."""
    tree_entry: float = 16.6
    """Per key: the rest of a lookup: take the key from its command, compare the entry's, add its
    value to a sum."""
    upsert_level: float | None = None
    """Per key and level of an upsert by the data's owner: by default that of a lookup, as the loops
    of both walk down alike."""
    upsert_entry: float = 17.6
    """Per key: the rest of an upsert of an existing key by its owner: a plain store."""
    upsert_shared: float = 17.6
    """Per key: the same by any thread: an atomic exchange."""
    generate: float = 28.0
    """Per command: a random key of the domain, and the command around it."""
    generate_value: float = 0.0
    """Per upsert: the value beside its key. The loops draw none."""
    generate_ranked: float = 28.0
    """Per command: the same where keys are drawn by rank (Zipf). What such a draw costs ERIS's
    clients is not known, and left out."""
    scatter: tuple[tuple[float, float], ...] = ((1.0, 0.0),)
    """Per command whose rank is scattered over the keys: by how often it goes through the
    permutation for that, on average. As above."""
    choose: float = 0.0
    """Per command of a mix: drawing its operation, and keeping operations separate. As above."""
    scan: float = 0.0
    """Per scan and worker: what the length of its part does not matter to. The loops have none."""
    scan_handed: float = 0.0
    """Per scan, for each worker with a part of it but the first: until all have got the command and
    put their results together. As above."""
    route_level: float = 25.5
    """Per command and level: one step of a batched walk down the partition table's CSB+-tree (a
    node of one cache line: 7 bounds, a pointer to its children)."""
    route_split: float = 12.9
    """Per command: the rest of routing: append the 16-byte command to its target's outgoing buffer,
    check whether that is full."""
    flush_fixed: float = 52.0
    """Per flush of an outgoing buffer: reserve room by one CAS on the descriptor, take the writer
    off it."""
    flush_line: float = 11.0
    """Per cache line of a flush: copy it into the incoming buffer."""
    receive: float = 17.0
    """Per command: read it from the incoming buffer, put it to those of its object and type."""
    gather: float = 0.0
    """Per command that is executed: taking it into a batch. Walks have it in ``tree_entry``; what
    else is executed takes nothing."""
    batch: float = 0.0
    """Per batch of commands: what its size does not matter to, for who makes it. The loops have no
    batches."""
    batch_executed: float = 0.0
    """The same for who executes it."""
    round: float = 0.0
    """Per round of a worker's loop. The loops have none."""
    group: float = 0.0
    """Per operation beyond the first whose commands are executed in a round. As above."""
    part: float = 0.0
    """Per header under which a part of a batch came: nobody can guess how many commands it has, and
    a core guesses the ends of its loops in vain. A whole batch is as long as the one before. As
    above."""
    scan_line_sum: float = 32.0
    """Per cache line of 64-bit integers: sum those below a bound. A plain loop, which compilers
    vectorise."""
    scan_line_sum_32: float = 48.0
    """Per cache line of 32-bit integers: the same; the sum is 64 bits wide."""
    scan_line_bitmap: float = 23.0
    """Per cache line of 64-bit integers: a bit for each, whether it is below a bound. In
    intrinsics: compilers do not find them."""
    scan_line_bitmap_32: float = 23.0
    """Per cache line of 32-bit integers: the same."""
    scan_line_positions: float = 23.0
    """Per cache line: what a scan for positions takes where it finds none. Its line's bitmap."""
    scan_position: float = 8.9
    """Per value that a scan finds: write where it stands, beside its line."""
    lookup_serial: float = 0.0
    """Per lookup of data that all workers share: under a lock. The loops take none."""
    upsert_serial: float = 0.0
    """The same per upsert."""
    flatten_key: float = 11.1
    """Per key: walk a subtree in order, write (key, value) pairs."""
    rebuild_key: float = 21.1
    """Per key: insert sorted pairs into a new subtree; memory from a bump allocator."""
    link_level: float = 1190.0
    """Per boundary and level: cut a key range out of one tree, hang it into another."""

    def measured(self, facts: ErisFacts, instructions_per_s: float) -> InstructionCounts:
        """These counts, with as many instructions for what was measured as pass in its time."""
        times = {field.name: getattr(facts, field.name, None) for field in fields(self)}
        found: dict[str, Any] = {
            name: time.value * instructions_per_s
            for name, time in times.items()
            if time is not None and name != "scatter"
        }
        if facts.scatter:
            found["scatter"] = tuple(
                (point.steps, point.time.value * instructions_per_s) for point in facts.scatter
            )
        return replace(self, **found)

    def scan_line(self, result: str, entry_bytes: float, selectivity: float) -> float:
        """Per cache line of a scan that makes a ``sum``, a ``bitmap`` or ``positions``.

        ``selectivity``: the part of the entries that it finds. Entries of up to 4 bytes count as
        32-bit integers, all others as 64-bit ones; positions are written for each entry found.
        """
        narrow = entry_bytes <= 4
        if result == "sum":
            return self.scan_line_sum_32 if narrow else self.scan_line_sum
        if result == "bitmap":
            return self.scan_line_bitmap_32 if narrow else self.scan_line_bitmap
        found = selectivity * LINE_BYTES / entry_bytes
        return self.scan_line_positions + self.scan_position * found


INSTRUCTIONS = InstructionCounts()
