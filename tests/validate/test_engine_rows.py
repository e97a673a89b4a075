"""Throughputs in CSV: what is read, and where mistakes are told."""

import string
from pathlib import Path

import pytest
from engine_rows_made import machine_in
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.inputs import InputError
from numatwin.validate.calibrate.engine_fit import calibrate_engine
from numatwin.validate.calibrate.engine_rows import EngineRow, load_rows

GOOD = """\
# of Tuesday
operation, threads, keys, throughput, spread, system.page_size

lookup, 4, 1_000_000, 12.5 M/s, 2%, 4 KiB
upsert, , , 1e6, 2e4,
"""


def file_with(folder: Path, text: str) -> Path:
    path = folder / "mine.csv"
    path.write_text(text)
    return path


def test_rows_are_read(tmp_path: Path) -> None:
    one, other = load_rows(file_with(tmp_path, GOOD))
    assert (one.operation, one.threads, one.nodes, one.size) == ("lookup", 4, None, 1_000_000)
    assert (one.throughput, one.line) == (12.5e6, 4)
    assert one.spread == other.spread == pytest.approx(0.02)
    assert one.fields == (("system.page_size", "4 KiB"),)
    assert one.label == "lookup, 4 threads, 1,000,000 keys, page_size 4 KiB"
    assert (other.threads, other.size, other.fields) == (None, None, ())


HEAD = "operation,threads,throughput\n"
# The text; line and column of the error, and its words.
BAD = [
    ("", None, None, "empty file: expected a header"),
    ("operation,threads\n", 1, 1, "no column 'throughput'"),
    ("operation;threads;throughput\n", 1, 1, "columns divided by semicolons: expected commas"),
    ("operation\tthreads\n", 1, 1, "columns divided by tabs: expected commas"),
    ("operation,throughput\n", 1, 1, "no column says how the runs differ"),
    ("operation,thread,throughput\n", 1, 11, "unknown column: found 'thread', expected 'threads'"),
    ("operation,keys,size,throughput\n", 1, 16, "keys says it too"),
    (HEAD, 2, None, "no rows: expected a measured run a row"),
    (HEAD + "lookup,4\n", 2, 1, "wrong row: found 'lookup,4', expected 3 fields"),
    (HEAD + "lookup,four,5\n", 2, 8, "threads: not a count: found 'four'"),
    (HEAD + "lookup,0,5\n", 2, 8, "threads: not a count: found '0'"),
    (HEAD + "lookup,4,fast\n", 2, 10, "throughput: not a throughput: found 'fast'"),
    (HEAD + "lookup,4,-5\n", 2, 10, "throughput: not a throughput: found '-5'"),
    (HEAD + "lookup,4,nan\n", 2, 10, "throughput: not a throughput: found 'nan'"),
    (HEAD + "lookup,4,5 GB/s\n", 2, 10, "throughput: not a throughput"),
    (HEAD + ",4,5\n", 2, 1, "operation: missing"),
    ("spread," + HEAD + "800%,lookup,4,5\n", 2, 1, "spread: not a spread: found '800%'"),
    (HEAD + '"lookup,4,5\n', 2, None, "not CSV"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), BAD)
def test_mistakes_are_told_with_their_place(
    tmp_path: Path, text: str, line: int | None, column: int | None, message: str
) -> None:
    path = file_with(tmp_path, text)
    with pytest.raises(InputError) as failure:
        load_rows(path)
    found = failure.value
    assert message in str(found)
    assert (found.file, found.line, found.column) == (str(path), line, column)


# What is seen with the machine and the scenario in hand.
UNFIT = [
    ("drop,4,,5,", 1, "scenario eris-mixed-amd has no such operation: found 'drop', expected one"),
    ("lookup,9,,5,", 8, "threads: 1 of small's nodes have 8: found '9', expected at most 8"),
    ("lookup,4,2,5,", 10, "nodes: small has 1 with cores: found '2', expected at most 1"),
    ("lookup,4,,5,3 KiB", 13, "cannot be run: --set system.page_size=3 KiB: system.page_size"),
]


@pytest.mark.parametrize(("row", "column", "message"), UNFIT)
def test_rows_that_cannot_be_run(tmp_path: Path, row: str, column: int, message: str) -> None:
    path = file_with(tmp_path, f"operation,threads,nodes,throughput,system.page_size\n{row}\n")
    with pytest.raises(InputError) as failure:
        calibrate_engine(machine_in(tmp_path), path)
    assert message in str(failure.value)
    assert (failure.value.line, failure.value.column) == (2, column)


def test_data_that_do_not_fit_are_told_with_their_row(tmp_path: Path) -> None:
    path = file_with(tmp_path, "operation,keys,throughput\nlookup,100000000000,5\n")
    with pytest.raises(InputError, match=r"mine\.csv:2:1: cannot be run: the data do not fit"):
        calibrate_engine(machine_in(tmp_path), path)


def test_threads_are_the_same_on_each_node(tmp_path: Path) -> None:
    path = file_with(tmp_path, "operation,threads,nodes,throughput\nlookup,3,2,5\n")
    with pytest.raises(InputError, match="threads: not the same number on each of 2 nodes"):
        calibrate_engine("amd-8n-ht", path)


@settings(max_examples=100, deadline=None)
@given(st.text(string.printable, max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = file_with(tmp_path_factory.mktemp("rows"), HEAD + text)
    refused: InputError | None = None
    rows: tuple[EngineRow, ...] = ()
    try:
        rows = load_rows(path)
    except InputError as failure:
        refused = failure
    assert rows or (refused is not None and refused.file == str(path))
    assert all(row.throughput > 0 for row in rows)
