"""Recorded tasks: CSV or Parquet with a row a task, of an engine of the user's.

Columns, in any order: ``operator`` (a name), ``part`` (the table that the task worked on, as the
workload calls it), ``bytes`` (read in order), ``accesses`` (at random), ``instructions``. What is
kept are, for each operator and part, the number of tasks and their sums: they are run as so many
tasks alike.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..inputs import InputError, check_regular
from ..inputs.csv_rows import csv_rows, field_column
from ..inputs.names import NAME_EXPECTED, is_name
from ..inputs.parquet_file import open_parquet
from ..inputs.text_lines import text_lines

NAMES = ("operator", "part")
AMOUNTS = ("bytes", "accesses", "instructions")
COLUMNS = (*NAMES, *AMOUNTS)
PARQUET = b"PAR1"
BYTES_MAX = 256 * 2**20
TASKS_MAX = 10_000_000
AMOUNT_MAX = 1e15
PARTS_SHOWN = 8


@dataclass(frozen=True)
class TracedTasks:
    """Tasks of one operator on one part; ``bytes``, ``accesses``, ``instructions`` of all."""

    operator: str
    part: str
    tasks: int
    bytes: float
    accesses: float
    instructions: float


@dataclass(frozen=True)
class TaskTrace:
    """What a file holds, by operator and part in the order in which they first appear."""

    traced: tuple[TracedTasks, ...]

    @property
    def operators(self) -> tuple[str, ...]:
        """Each operator once, in that order."""
        return tuple(dict.fromkeys(traced.operator for traced in self.traced))


@dataclass
class _Sums:
    tasks: int = 0
    amounts: tuple[float, ...] = (0.0,) * len(AMOUNTS)


class _Rows:
    """Adds rows up, and refuses a bad one with its line and column."""

    def __init__(self, name: str, parts: Collection[str]) -> None:
        self.name, self.parts = name, parts
        self.sums: dict[tuple[str, str], _Sums] = {}
        self.count = 0

    def add(self, fields: Sequence[Any], line: int, columns: Sequence[int]) -> None:
        """A row's fields in the order of ``COLUMNS``, with the column where each begins."""

        def refused(column: int, message: str, expected: str) -> InputError:
            token = str(fields[column])
            return InputError(
                f"{COLUMNS[column]}: {message}", self.name, line, columns[column], token, expected
            )

        operator, part = str(fields[0]).strip(), str(fields[1]).strip()
        if not is_name(operator):
            raise refused(0, "not a name", NAME_EXPECTED)
        if part not in self.parts:
            shown = ", ".join(list(self.parts)[:PARTS_SHOWN])
            raise refused(1, "no such table in the workload", f"one of {shown}")
        amounts = []
        for index, raw in enumerate(fields[len(NAMES) :], len(NAMES)):
            try:
                amount = math.nan if isinstance(raw, bool) else float(raw)
            except (TypeError, ValueError):
                amount = math.nan
            if not 0 <= amount <= AMOUNT_MAX:
                raise refused(index, "not an amount", f"a number from 0 to {AMOUNT_MAX:g}")
            amounts.append(amount)
        self.count += 1
        _check_count(self.count, self.name, line)
        sums = self.sums.setdefault((operator, part), _Sums())
        sums.tasks += 1
        sums.amounts = tuple(map(sum, zip(sums.amounts, amounts, strict=True)))

    def trace(self) -> TaskTrace:
        """What was added."""
        if not self.count:
            raise InputError("no tasks", self.name, 1, expected="a row a task")
        return TaskTrace(
            tuple(
                TracedTasks(operator, part, sums.tasks, *sums.amounts)
                for (operator, part), sums in self.sums.items()
            )
        )


def _check_count(count: int, name: str, line: int | None = None) -> None:
    if count > TASKS_MAX:
        raise InputError("too many tasks", name, line, expected=f"at most {TASKS_MAX:,}")


def load_trace(path: Path, parts: Collection[str]) -> TaskTrace:
    """The tasks in the file at ``path``, which work on ``parts``, names of tables.

    Raises InputError with line and column (of Parquet: the row, and the number of the column);
    OSError where the file cannot be read.
    """
    check_regular(path)
    size = path.stat().st_size
    name = str(path)
    if size > BYTES_MAX:
        raise InputError(f"too large: expected at most {BYTES_MAX:,} bytes", name)
    with open(path, "rb") as stream:
        is_parquet = stream.read(len(PARQUET)) == PARQUET
    rows = _Rows(name, parts)
    for fields, line, columns in _parquet(path, name) if is_parquet else _csv(path, name):
        rows.add(fields, line, columns)
    return rows.trace()


Row = tuple[Sequence[Any], int, Sequence[int]]


def _csv(path: Path, name: str) -> Iterator[Row]:
    rows = csv_rows(text_lines(path, BYTES_MAX), name)
    _, header = next(rows, (1, []))
    order = _order([field.strip() for field in header], name)
    for line, fields in rows:
        columns = [field_column(fields, position) for position in order]
        yield [fields[position] for position in order], line, columns


def _order(header: Sequence[str], name: str) -> list[int]:
    """Where each of ``COLUMNS`` stands."""
    if sorted(header) != sorted(COLUMNS):
        raise InputError(
            "not a trace of tasks", name, 1, 1, ",".join(header), f"the columns {','.join(COLUMNS)}"
        )
    return [list(header).index(column) for column in COLUMNS]


def _parquet(path: Path, name: str) -> Iterator[Row]:
    with open_parquet(path, "Parquet") as file:
        order = _order(file.schema_arrow.names, name)
        _check_count(file.metadata.num_rows, name)
        row = 0
        for batch in file.iter_batches(columns=list(COLUMNS), use_threads=False):
            for fields in zip(*(_values(batch.column(c)) for c in COLUMNS), strict=True):
                row += 1
                yield fields, row, [position + 1 for position in order]


def _values(column: Any) -> list[Any]:
    """Of a dictionary each text once."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    texts = column.dictionary.to_pylist()
    return [None if k is None else texts[k] for k in column.indices.to_pylist()]
