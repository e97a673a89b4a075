"""Recorded tasks: what a file may say, and what is told of a bad row."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.workloads import load_workload
from numatwin.workloads.task_trace import TaskTrace, TracedTasks, load_trace

TRACE = """\
operator,part,bytes,accesses,instructions
scan,t,1000,0,500
probe,t,0,30,700
scan,u,3000,0,1500
scan,t,2000,1,500
"""
FOUND = TaskTrace(
    (
        TracedTasks("scan", "t", 2, 3000.0, 1.0, 1000.0),
        TracedTasks("probe", "t", 1, 0.0, 30.0, 700.0),
        TracedTasks("scan", "u", 1, 3000.0, 0.0, 1500.0),
    )
)
WORKLOAD = """\
name: mine
objects:
  t: {kind: table, rows: 1000, columns: {a: {distinct: 10}}}
  u: {kind: table, rows: 50, columns: {a: {distinct: 10}}}
operations:
  q:
    kind: query
    clients: 4
    operators:
      mine: {kind: recorded, file: trace.csv, structure: 1 MiB}
"""


def loaded(tmp_path: Path, text: str) -> TaskTrace:
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return load_trace(path, ("t", "u"))


def test_tasks_are_summed_by_operator_and_part(tmp_path: Path) -> None:
    assert loaded(tmp_path, TRACE) == FOUND
    assert FOUND.operators == ("scan", "probe")


def test_columns_stand_in_any_order_and_empty_lines_are_passed_over(tmp_path: Path) -> None:
    rows = [line.split(",") for line in TRACE.splitlines()]
    turned = "\n\n".join(",".join(reversed(row)) for row in rows)
    assert loaded(tmp_path, turned) == FOUND


def parquet(path: Path, **columns: list[Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    header, *rows = [line.split(",") for line in TRACE.splitlines()]
    columns: dict[str, list[Any]] = dict(
        zip(header, map(list, zip(*rows, strict=True)), strict=True)
    )
    columns |= {name: list(map(float, columns[name])) for name in header[2:]}
    assert load_trace(parquet(tmp_path / "t.parquet", **columns), ("t", "u")) == FOUND


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("scan,u", "scan,v", "4:6: part: no such table in the workload: found 'v', expected one"),
        ("probe,t", ",t", "3:1: operator: not a name: found '', expected at most 64 letters"),
        ("2000,1", "-1,1", "5:8: bytes: not an amount: found '-1', expected a number from 0 to"),
        ("30,700", "many,700", "3:11: accesses: not an amount: found 'many', expected a number"),
        (",1500", ",nan", "4:15: instructions: not an amount: found 'nan', expected a number"),
        (",1500", ",1500,1", "4:1: wrong row: found 'scan,u,3000,0,1500,1', expected 5 fields"),
        ("accesses,", "", "1:1: not a trace of tasks: found 'operator,part,bytes,instructions'"),
        (TRACE.split("\n", 1)[1], "", "1: no tasks: expected a row a task"),
    ],
)
def test_a_bad_row_is_told_with_line_and_column(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert old in TRACE
    told = told_by(loaded, tmp_path, TRACE.replace(old, new))
    assert told.startswith(f"{tmp_path / 'trace.csv'}:{expected}")


def test_a_bad_row_of_parquet_is_told_with_row_and_number_of_the_column(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "t.parquet",
        part=["t", "t"],
        operator=["scan", "scan"],
        bytes=[1.0, 2.0],
        accesses=[0.0, -1.0],
        instructions=[1.0, 1.0],
    )
    told = told_by(load_trace, path, ("t",))
    assert told.startswith(f"{path}:2:4: accesses: not an amount: found '-1.0'")


def test_what_only_begins_like_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    assert "not Parquet" in told_by(load_trace, path, ("t",))


rows = st.lists(
    st.tuples(
        st.sampled_from(["scan", "probe"]),
        st.sampled_from(["t", "u"]),
        *(st.integers(0, 10**12),) * 3,
    ),
    min_size=1,
    max_size=20,
)


@given(rows)
def test_nothing_is_lost(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    lines = [",".join(map(str, row)) for row in rows]
    text = "\n".join(["operator,part,bytes,accesses,instructions", *lines])
    trace = loaded(tmp_path_factory.mktemp("trace"), text)
    assert sum(one.tasks for one in trace.traced) == len(rows)
    assert sum(one.bytes for one in trace.traced) == sum(row[2] for row in rows)
    assert sum(one.accesses for one in trace.traced) == sum(row[3] for row in rows)
    assert sum(one.instructions for one in trace.traced) == sum(row[4] for row in rows)


def written(tmp_path: Path, workload: str) -> Path:
    (tmp_path / "trace.csv").write_text(TRACE, encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(workload, encoding="utf-8")
    return path


def test_a_workload_holds_the_trace_that_lies_beside_it(tmp_path: Path) -> None:
    workload = load_workload(written(tmp_path, WORKLOAD))
    assert workload.at(0).operations["q"].traces == {"mine": FOUND}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("trace.csv", "none.csv", "10:36: operations.q.operators.mine.file: cannot be read: "),
        (", structure: 1 MiB", "", "mine: missing field 'structure': size of what its tasks'"),
        (
            "MiB}",
            "MiB}\n      more: {kind: materialise, input: mine, columns: a}",
            "'mine' passes nothing on: it is recorded",
        ),
    ],
)
def test_a_trace_fits_its_workload(tmp_path: Path, old: str, new: str, expected: str) -> None:
    path = written(tmp_path, WORKLOAD.replace(old, new))
    assert expected in told_by(load_workload, path)


def test_a_long_text_in_each_row_is_held_once(tmp_path: Path) -> None:
    """Of a million rows 100 GB, for an error in the first."""
    one = pa.DictionaryArray.from_arrays([0] * 1_000_000, ["x" * 100_000])
    amounts = {name: [1.0] * 1_000_000 for name in ("bytes", "accesses", "instructions")}
    table = pa.table({"operator": one, "part": ["t"] * 1_000_000, **amounts})
    pq.write_table(table, tmp_path / "t.parquet", compression="zstd", store_schema=False)
    with pytest.raises(InputError, match=r"t\.parquet:1:1: operator: not a name: found 'xxx"):
        load_trace(tmp_path / "t.parquet", ("t",))
    assert pa.total_allocated_bytes() < 200_000_000


def test_more_tasks_than_are_read_are_known_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numatwin.workloads.task_trace.TASKS_MAX", 2)
    names = {"operator": ["x"] * 3, "part": ["t"] * 3}
    amounts = {name: [1.0] * 3 for name in ("bytes", "accesses", "instructions")}
    pq.write_table(pa.table(names | amounts), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet: too many tasks: expected at most 2"):
        load_trace(tmp_path / "t.parquet", ("t",))
