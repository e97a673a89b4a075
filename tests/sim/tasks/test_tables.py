"""Tables worked out: bits, bytes, parts, places."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.systems.tasks.spec import (
    TasksSystem,
    bytes_per_row,
    fixed_bytes,
    id_bits,
    part_bytes,
    part_rows,
    table_of,
)
from numatwin.topologies import load_machine
from numatwin.workloads import DataObject

MACHINE = load_machine("xeon-4s-ivb")


@pytest.mark.parametrize(
    ("distinct", "bits"), [(1, 1), (2, 1), (3, 2), (1024, 10), (1025, 11), (2**32, 32)]
)
def test_ids_take_as_few_bits_as_tell_the_values_apart(distinct: int, bits: int) -> None:
    assert id_bits(distinct) == bits


def stored(rows: int, parts: int = 1, **columns: int) -> DataObject:
    return DataObject.model_validate(
        {
            "kind": "table",
            "rows": rows,
            "parts": parts,
            "columns": {name: {"distinct": count} for name, count in columns.items()},
        }
    )


def test_a_small_dictionary_is_in_each_part_and_a_keys_is_divided() -> None:
    # few: 3 bits, 8 values of 8 B in each part; key: 10 bits and a value of 8 B a row.
    table = stored(1024, few=8, key=1024)
    assert bytes_per_row(table) == 3 / 8 + 10 / 8 + 8
    assert fixed_bytes(table) == 64


@given(st.integers(1, 10**6), st.integers(1, 200))
def test_rows_of_parts_sum_to_the_table_and_differ_by_one(rows: int, parts: int) -> None:
    counts = part_rows(rows, parts)
    assert (sum(counts), len(counts)) == (rows, parts)
    assert max(counts) - min(counts) <= 1


tables = st.integers(200, 10**7).flatmap(
    lambda rows: st.builds(
        stored, st.just(rows), st.integers(1, 64), a=st.integers(1, rows), b=st.integers(1, rows)
    )
)


@given(tables)
def test_bytes_of_all_parts_sum_to_the_table(table: DataObject) -> None:
    made = table_of("t", table, [0] * table.parts)
    whole = sum(part_bytes(made, part) for part in made.parts)
    assert table.rows is not None
    rest = table.parts * fixed_bytes(table)
    assert whole == pytest.approx(table.rows * bytes_per_row(table) + rest)


@given(tables, st.integers(2, 50))
def test_a_table_so_many_times_as_large_takes_as_many_bytes(table: DataObject, n: int) -> None:
    """Of a column with all values different the dictionary grows too, of others it stays."""
    assert table.rows is not None
    assert table.columns is not None
    rows = table.rows * n
    more = stored(
        rows,
        table.parts,
        **{
            name: rows if column.distinct == table.rows else column.distinct
            for name, column in table.columns.items()
        },
    )
    assert more.columns is not None
    vectors = sum(id_bits(column.distinct) / 8 for column in more.columns.values())
    dictionaries = sum(8 * column.distinct for column in more.columns.values())
    made = table_of("t", more.model_copy(update={"parts": 1}), [0])
    assert part_bytes(made, made.parts[0]) == pytest.approx(rows * vectors + dictionaries)


class WorkloadOf:
    """As much of a workload as placement reads."""

    def __init__(self, **objects: DataObject) -> None:
        self.objects = objects


def nodes(parts: int = 1, **system: Any) -> list[list[int | None]]:
    """Where the parts of two tables lie."""
    spec = TasksSystem.model_validate({"kind": "tasks", **system})
    table = stored(1000, parts, a=10)
    placed = spec.placed(MACHINE, WorkloadOf(t=table, u=table))  # type: ignore[arg-type]
    return [[part.node for part in table.parts] for table in placed]


@pytest.mark.parametrize(
    ("parts", "system", "expected"),
    [
        (1, {}, [[0], [1]]),
        (3, {}, [[0, 1, 2], [3, 0, 1]]),
        (2, {"placement": "interleaved"}, [[None, None], [None, None]]),
        (2, {"placement": [3, 1], "tables": {"u": 2}}, [[3, 1], [2, 2]]),
        (3, {"placement": "first-touch", "loaders": [0, 2]}, [[0, 2, 0], [0, 2, 0]]),
        (1, {"placement": "first-touch", "nodes": [1, 2]}, [[1], [1]]),
    ],
)
def test_parts_lie_as_the_scenario_says(
    parts: int, system: dict[str, Any], expected: list[list[int | None]]
) -> None:
    assert nodes(parts, **system) == expected
