"""Parquet that is damaged, or unfolds to more than it seems: one line, before it is unfolded."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import told_by

from numatwin.inputs import parquet_file
from numatwin.inputs.parquet_file import open_parquet, read_parquet

WHOLE = pa.table({"n": [1, 2, None], "x": [0.5, 1.0, 2.0], "t": ["a", "é", None], "o": [None] * 3})


def written(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


def refused(path: Path) -> str:
    told = told_by(read_parquet, path, "rows")
    assert told.startswith(f"{path}: not rows: ")
    return told.removeprefix(f"{path}: not rows: ")


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_what_was_written(tmp_path: Path, use_dictionary: bool) -> None:
    path = written(tmp_path / "t", WHOLE, use_dictionary=use_dictionary)
    assert read_parquet(path, "rows") == WHOLE
    assert read_parquet(path, "rows", ["t", "none"]) == WHOLE.select(["t"])


def test_dictionaries_are_texts(tmp_path: Path) -> None:
    column = WHOLE["t"].dictionary_encode()
    path = written(tmp_path / "t", pa.table({"t": column}))
    assert read_parquet(path, "rows")["t"].to_pylist() == ["a", "é", None]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1, 2], [3]]),
        pa.array([{"a": 1}]),
        pa.array([b"x"]),
        pa.array([b"xx"], pa.binary(2)),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_are_numbers_or_texts(tmp_path: Path, column: pa.Array) -> None:
    told = refused(written(tmp_path / "t", pa.table({"c": column})))
    assert told.startswith("column c: ")
    assert told.endswith("expected numbers or texts")


def test_times_are_read(tmp_path: Path) -> None:
    table = pa.table({"at": [datetime(2026, 1, 1)]})
    assert read_parquet(written(tmp_path / "t", table), "rows").num_rows == 1


def test_two_columns_of_a_name(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert "a" in refused(written(tmp_path / "t", table))


@pytest.mark.parametrize("place", ["value", "name"])
def test_texts_that_are_not_utf_8(tmp_path: Path, place: str) -> None:
    values, name = (["ok", "bad€"], "t") if place == "value" else (["ok"], "bad€")
    path = written(tmp_path / "t", pa.table({name: values}), compression="none", store_schema=False)
    broken = path.read_bytes().replace("bad€".encode(), b"bad\xe2(\xa1")
    path.write_bytes(broken)
    assert "UTF" in refused(path).upper()


def test_how_much_it_unfolds_to_is_known_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 MB in a file of 5 kB."""
    path = written(tmp_path / "t", pa.table({"x": pa.array([0.0] * 1_000_000)}), compression="zstd")
    assert path.stat().st_size < 10_000
    assert len(read_parquet(path, "rows")) == 1_000_000
    monkeypatch.setattr(parquet_file, "UNFOLDED_MAX_BYTES", 7_900_000)
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    assert refused(path).startswith("it unfolds to 8,1")


def test_one_long_text_in_each_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 TB of texts in each row, of a dictionary of one: held once, and never written out."""
    table = pa.table({"t": pa.DictionaryArray.from_arrays([0] * 1_000_000, ["x" * 1_000_000])})
    path = written(tmp_path / "t", table, compression="zstd", store_schema=False)
    assert path.stat().st_size < 10_000
    assert refused(path) == "texts of 1,000,000,000,000 bytes"
    with open_parquet(path, "rows") as file:
        batch = next(file.iter_batches())
        assert batch.column(0).nbytes < 2_000_000
    assert pa.total_allocated_bytes() < 100_000_000


def test_files_that_are_none(tmp_path: Path) -> None:
    path = written(tmp_path / "t", WHOLE)
    content = path.read_bytes()
    for length in (0, 3, 100, len(content) - 1):
        path.write_bytes(content[:length])
        refused(path)
    refused(tmp_path / "nothing")
    refused(tmp_path)
