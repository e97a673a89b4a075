"""Tables worked out: bits of index vectors, bytes of dictionaries, parts and where they lie.

A column of d distinct values has an index vector of ceil(log2 d) bits a row, and a sorted
dictionary of its values. Each part of a table has an index vector and a dictionary of its own. A
column with few values has nearly all of them in each part; a key's values are divided with the
rows. So the dictionary of a column with more than a sixteenth as many values as rows counts by row,
any other by part. A column that is not encoded has its values in place of ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
import numpy.typing as npt

from ....workloads.schema import Column, DataObject
from .program import Part, Table

Floats = npt.NDArray[np.float64]

PAGE_BYTES = 4096
BY_ROW_ABOVE = 1 / 16  # of the rows


def id_bits(distinct: int) -> int:
    """Bits of an id in an index vector."""
    return max((distinct - 1).bit_length(), 1)


def column_bits(column: Column) -> int:
    """Of a row: an id, or a value where the column is not encoded."""
    return id_bits(column.distinct) if column.encoded else round(8 * column.value_size.value)


def dictionary_bytes(column: Column) -> float:
    """Of the whole column."""
    return column.distinct * column.value_size.value if column.encoded else 0.0


def counts_by_row(column: Column, rows: int) -> bool:
    """Whether its dictionary is divided with the rows of the table."""
    return column.distinct > BY_ROW_ABOVE * rows


def bytes_per_row(stored: DataObject) -> float:
    """Index vectors, and the dictionaries that are divided with the rows."""
    assert stored.rows is not None
    assert stored.columns is not None
    return sum(
        column_bits(column) / 8
        + (dictionary_bytes(column) / stored.rows if counts_by_row(column, stored.rows) else 0.0)
        for column in stored.columns.values()
    )


def fixed_bytes(stored: DataObject) -> float:
    """Dictionaries that each part has of its own."""
    assert stored.rows is not None
    assert stored.columns is not None
    return sum(
        dictionary_bytes(column)
        for column in stored.columns.values()
        if not counts_by_row(column, stored.rows)
    )


def part_dictionary_bytes(stored: DataObject, name: str) -> float:
    """Of one column's dictionary in one part, as parts are when a run begins."""
    assert stored.rows is not None
    assert stored.columns is not None
    column = stored.columns[name]
    parts = stored.parts if counts_by_row(column, stored.rows) else 1
    return dictionary_bytes(column) / parts


def part_rows(rows: int, parts: int) -> tuple[int, ...]:
    """Rows of each part, which differ by one at most."""
    return tuple(rows * (k + 1) // parts - rows * k // parts for k in range(parts))


def part_bytes(table: Table, part: Part) -> float:
    """What a part takes of its node's memory."""
    return part.rows * table.bytes_per_row + table.fixed_bytes


def pages(table: Table, part: Part) -> int:
    """The same in pages."""
    return ceil(part_bytes(table, part) / PAGE_BYTES)


def table_of(
    name: str, stored: DataObject, nodes: Sequence[int | None], spreads: Sequence[int] = ()
) -> Table:
    """The table with its parts on ``nodes``, one a part; on ``spreads`` where none."""
    assert stored.rows is not None
    rows = part_rows(stored.rows, stored.parts)
    return Table(
        name=name,
        parts=tuple(
            Part(count, node, spreads[k] if spreads else 0)
            for k, (count, node) in enumerate(zip(rows, nodes, strict=True))
        ),
        bytes_per_row=bytes_per_row(stored),
        fixed_bytes=fixed_bytes(stored),
        group=stored.group,
    )


def bytes_on_nodes(tables: Sequence[Table], spreads: Floats) -> Floats:
    """(n,) bytes of all parts; ``spreads`` (S, n): shares of those on several nodes."""
    found = np.zeros(spreads.shape[1])
    for table in tables:
        for part in table.parts:
            size = part_bytes(table, part)
            if part.node is None:
                found += size * spreads[part.spread]
            else:
                found[part.node] += size
    return found
