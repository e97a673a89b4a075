"""What operators pass on, and how many lines, groups and bytes of hash tables there are."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log1p

from ....workloads.query_graphs import ColumnOf

SLOT_BYTES = 8.0  # a key, a sum, a count, or a position and a pointer in a hash table
LOAD_FACTOR = 0.5  # of hash tables: half of the slots are taken
LINE_BITS = 512.0


@dataclass(frozen=True)
class Results:
    """What an operator passes on: ``entries`` in all, once the ``stages`` at these positions are
    done.

    ``table``: the name of the table whose parts they come from, None where from none any more.
    ``bytes``: of an entry, as it is read. ``made``: columns whose values are at hand in order.
    """

    entries: float
    stages: tuple[int, ...]
    table: str | None
    bytes: float
    made: frozenset[ColumnOf] = frozenset()


def lines_per_entry(bits: float, density: float) -> tuple[float, float]:
    """Lines of an index vector per entry taken from it in order: those next to one that is read
    too, and those that stand alone.

    Of rows with ``bits`` each, the part ``density`` is taken, all over the vector. A line holds
    r = 512 / bits rows, and is read with probability p = 1 - (1 - density)^r: p / (density r) lines
    an entry. The line before it is read as well with probability p, so that a prefetcher sees a
    stream.
    """
    rows = LINE_BITS / bits
    if density <= 0.0:
        return 0.0, 1.0
    read = 1.0 if density >= 1.0 else -expm1(rows * log1p(-density))
    lines = min(read / (density * rows), 1.0)
    return lines * read, lines * (1.0 - read)


def found_of(groups: float, entries: float) -> float:
    """How many of so many groups some of the entries are in, if each is in any of them."""
    return -groups * expm1(-entries / groups)


def table_bytes(entries: float, slots: int) -> float:
    """Of a hash table with so many entries of so many slots."""
    return max(entries, 1.0) * SLOT_BYTES * slots / LOAD_FACTOR
