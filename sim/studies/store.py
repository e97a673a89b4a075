"""Rows of a study on disk: Parquet parts that appear whole, as results come.

``rows/0000012.parquet`` holds the rows of one hand-over, in their final form or not at all; many
parts are merged into one of the name of the last. Whatever stops the writer, rows in parts are
safe: a part that was merged and not yet removed holds rows that the merged one has too, and a
reader takes each point once. A study that begins anew writes into another folder, which its
manifest names: until that is in place, the earlier rows are.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...inputs import InputError, json_text, read_json
from ...inputs.atomic import FULL, replace_file, writing_in
from ...inputs.errors import DiskFull
from ...inputs.parquet_file import read_parquet
from ..run.record_files import LARGEST
from .evaluate import ERROR, HASH, OWN, PLANE, POINT, REPLAY, UNSETTLED, Row
from .levels import is_number

MANIFEST, ROWS = "study.json", "rows"
PARTS_MAX = 64
ROW_FOLDER = re.compile(rf"{ROWS}(-\d{{1,9}})?")
PART = re.compile(r"[0-9]{1,15}\.parquet")
TEXTS = (PLANE, HASH, UNSETTLED, ERROR, REPLAY)


class Store:
    """The rows in ``folder``, and what they are of (``identity``, plain JSON values)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._next = 0

    @cached_property
    def rows(self) -> Path:
        """The folder of the rows' parts."""
        return self.folder / str((self._manifest() or {}).get(ROWS, ROWS))

    def identity(self) -> dict[str, Any] | None:
        """What the rows are of; None where nothing was begun. Raises InputError."""
        found = self._manifest()
        if found is not None:
            found.pop(ROWS, None)
        return found

    def _manifest(self) -> dict[str, Any] | None:
        path = self.folder / MANIFEST
        if not os.path.lexists(path):
            return None
        found = read_json(path, "a study's folder")
        if not isinstance(found, dict) or not ROW_FOLDER.fullmatch(str(found.get(ROWS, ROWS))):
            raise InputError("not a study's folder", str(path), expected="a JSON object")
        return found

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Notes what the rows are of, before the first one."""
        whole = identity if self.rows.name == ROWS else {**identity, ROWS: self.rows.name}
        with _full_disk(self.folder, "nothing was run"):
            self.rows.mkdir(parents=True, exist_ok=True)
            _write(self.folder / MANIFEST, json_text(whole, indent=1).encode() + b"\n")
            for left in self._row_folders():
                if left != self.rows:
                    shutil.rmtree(left, ignore_errors=True)

    def restart(self) -> None:
        """Rows are of something else from the next ``begin`` on, which removes the earlier ones."""
        used = [int(path.name.partition("-")[2] or 0) for path in self._row_folders()]
        self.rows, self._next = self.folder / f"{ROWS}-{max(used, default=0) + 1}", 0

    def _row_folders(self) -> list[Path]:
        return [path for path in self.folder.glob(f"{ROWS}*") if ROW_FOLDER.fullmatch(path.name)]

    def add(self, rows: Sequence[Row], kept: int) -> None:
        """Writes a part; raises DiskFull, which says that ``kept`` rows are safe."""
        if not rows:
            return
        parts = self._parts()
        if not self._next:
            self._next = 1 + max((int(part.stem) for part in parts), default=0)
        with _full_disk(self.folder, f"{kept:,} finished runs are kept"):
            _write_table(self.rows / f"{self._next:07d}.parquet", table_of(rows))
            self._next += 1
            if len(parts) + 1 >= PARTS_MAX:
                self.compact()

    def compact(self) -> None:
        """Merges the parts that are not yet large into one; they stay where the disk is full."""
        parts = self._parts()
        if len(parts) < 2:
            return
        sizes = [part.stat().st_size for part in parts]
        # A part twice as large as all after it stays: each row is rewritten but a few times.
        small = (k for k in range(len(parts)) if sizes[k] <= 2 * sum(sizes[k + 1 :]))
        merged = parts[next(small, len(parts)) :]
        if len(merged) < 2:
            return
        table = _joined([_table(part) for part in merged])
        try:
            _write_table(merged[-1], table)
        except OSError as failure:
            if failure.errno in FULL:
                return
            raise
        for part in merged[:-1]:
            part.unlink()

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows by point, each once; only ``columns`` of them where given."""
        tables = [_table(part, columns) for part in self._parts()]
        if not tables:
            return pa.table({POINT: pa.array([], pa.int64())})
        joined = _joined(tables)
        return joined.sort_by(POINT)

    def done(self) -> tuple[set[int], set[int]]:
        """The points that were run, and those of them that failed."""
        table = self.read([POINT, ERROR])
        points = table[POINT].to_pylist()
        if ERROR not in table.column_names:
            return set(points), set()
        failed = table.filter(pa.compute.is_valid(table[ERROR]))[POINT].to_pylist()
        return set(points), set(failed)

    def _parts(self) -> list[Path]:
        parts = sorted(self.rows.glob("[!.]*.parquet"))
        for part in parts:
            if not PART.fullmatch(part.name):
                raise InputError("not rows of a study", str(part), expected="a number as its name")
        return parts


def _table(part: Path, columns: Sequence[str] | None = None) -> pa.Table:
    table = read_parquet(part, "rows of a study", columns)
    points = table[POINT] if POINT in table.column_names else None
    if points is None or not pa.types.is_integer(points.type) or points.null_count:
        raise InputError(
            f"not rows of a study: no column {POINT}", str(part), expected="a number in each row"
        )
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type):
            known = pc.all(pc.less(pc.abs(column), LARGEST)).as_py()
            if known is False:  # NaN, too; None: no value in any row
                raise InputError(
                    f"not rows of a study: column {name}", str(part), expected="finite numbers"
                )
    return table


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table: numbers, or else texts; a null where there is no value."""
    names = dict.fromkeys(name for row in rows for name in row)
    own = [name for name in OWN if name in names or name in (POINT, ERROR, REPLAY)]
    ordered = [own[0], *(name for name in names if name not in OWN), *own[1:]]
    return pa.table({name: _column(name, [row.get(name) for row in rows]) for name in ordered})


def _column(name: str, values: list[Any]) -> pa.Array:
    if name == POINT:
        return pa.array(values, pa.int64())
    present = [value for value in values if value is not None]
    if name not in TEXTS and all(map(is_number, present)):
        if not present:
            return pa.nulls(len(values))
        if all(isinstance(value, int) and abs(value) < 2**63 for value in present):
            return pa.array(values, pa.int64())
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array(
        [v if v is None or isinstance(v, str) else json_text(v) for v in values], pa.string()
    )


def rows_in(table: pa.Table) -> Iterable[Row]:
    """The table's rows, without what they have no value for."""
    for batch in table.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            yield {name: value for name, value in row.items() if value is not None}


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """One table of all, each point once: as the last table has it."""
    # A factor may have numbers in one table, and words in another.
    fields = chain.from_iterable(table.schema for table in tables)
    texts = {field.name for field in fields if pa.types.is_string(field.type)}
    tables = [_as_texts(table, texts) for table in tables]
    joined = pa.concat_tables(tables, promote_options="permissive")
    points = joined[POINT].to_numpy()
    last = {point: row for row, point in enumerate(points.tolist())}
    return joined if len(last) == len(points) else joined.take(pa.array(sorted(last.values())))


def _as_texts(table: pa.Table, names: set[str]) -> pa.Table:
    for index, field in enumerate(table.schema):
        number = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
        if field.name in names and number:
            texts = [None if v is None else f"{v:g}" for v in table.column(index).to_pylist()]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
    return table


def _write_table(path: Path, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    _write(path, sink.getvalue().to_pybytes())


def _write(path: Path, content: bytes) -> None:
    """Writes the file whole or not at all, and does not return before the disk has it."""
    with writing_in(path.parent):
        replace_file(path, content)


@contextlib.contextmanager
def _full_disk(folder: Path, kept: str) -> Any:
    try:
        yield
    except OSError as failure:
        if failure.errno in FULL:
            raise DiskFull(
                f"{folder}: {failure.strerror}; {kept}: make room and run the same command again"
            ) from None
        raise InputError(f"cannot be written: {failure.strerror}", str(folder)) from None
