"""Instructions that the inner loops of a storage engine like ERIS execute, per unit of work.

The cost model turns them into core time: instructions / (instructions per cycle x clock). They are
counts of straightforward C++ for a 64-bit x86 of ERIS's day (SSE2, no later vector instructions);
cache misses and the latency of atomic operations are not in them and are modelled elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InstructionCounts:
    """Instructions per unit of each loop.

    Measured with callgrind on ``benchmarks/instruction_counts.cpp`` (which is the definition of
    each loop), compiled by g++ 12.2.0 with ``-std=c++20 -O2``. A count is the difference between
    runs of two sizes, so that it holds no set-up. To measure again: ``python
    benchmarks/instruction_counts.py``.
    """

    tree_level: float = 18.7
    """Per key and level: one step of a batched walk down a prefix tree (8-bit prefix)."""
    tree_entry: float = 14.6
    """Per key: the rest of a lookup: take the key from its command, compare the entry's, add its
    value to a sum."""
    upsert_entry: float = 15.6
    """Per key: the rest of an upsert of an existing key by its owner: a plain store."""
    upsert_shared: float = 16.1
    """Per key: the same by any thread: an atomic exchange."""
    generate: float = 28.0
    """Per command: a random key of the domain, and the command around it."""
    route_level: float = 48.6
    """Per command and level: one step of a batched walk down the partition table's CSB+-tree (a
    node of one cache line: 7 bounds, a pointer to its children)."""
    route_split: float = 16.3
    """Per command: the rest of routing: append the 16-byte command to its target's outgoing buffer,
    check whether that is full."""
    flush_fixed: float = 47.0
    """Per flush of an outgoing buffer: reserve room by one CAS on the descriptor, take the writer
    off it."""
    flush_line: float = 12.0
    """Per cache line of a flush: copy it into the incoming buffer."""
    receive: float = 17.0
    """Per command: read it from the incoming buffer, put it to those of its object and type."""
    scan_line_sum: float = 45.0
    """Per cache line of 64-bit integers: sum those below a bound."""
    scan_line_bitmap: float = 44.0
    """Per cache line of 64-bit integers: a bit for each, whether it is below a bound."""
    flatten_key: float = 11.1
    """Per key: walk a subtree in order, write (key, value) pairs."""
    rebuild_key: float = 21.1
    """Per key: insert sorted pairs into a new subtree; memory from a bump allocator."""
    link_level: float = 695.0
    """Per boundary and level: cut a key range out of one tree, hang it into another."""


INSTRUCTIONS = InstructionCounts()
