"""Plans of DuckDB, PostgreSQL, ClickHouse and MonetDB; files that are damaged or do not fit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from profiles import CALLS, GROUPS, PLAN, operators, profiled
from refusals import told_by

from numatwin.cli import main
from numatwin.validate.profile.callgrind import read_callgrind
from numatwin.validate.profile.importers import Found, read_profile, read_profiles
from numatwin.validate.profile.plans import Plan
from numatwin.validate.profile.workload_file import workload_text

NODE = {"Node Type": "Seq Scan", "Relation Name": "t", "Actual Rows": 300, "Actual Loops": 2}
POSTGRES = [{"Plan": {
    "Node Type": "Aggregate", "Actual Rows": 1, "Actual Loops": 1, "Plan Width": 8,
    "Plans": [{**NODE, "Plan Width": 4, "Rows Removed by Filter": 200, "Shared Hit Blocks": 10}],
}}]  # fmt: skip
CLICKHOUSE = (GROUPS.parents[2] / "tests/validate/printed/clickhouse.jsonl").read_text()
MONETDB = (GROUPS.parents[2] / "tests/validate/printed/monetdb.txt").read_text()
SCANS, SINK = (f"duckdb::Physical{name}" for name in (
    "TableScan::GetData(duckdb::DataChunk&) const", "HashAggregate::Sink(duckdb::DataChunk&) const"
))  # fmt: skip


def test_plans_of_both_versions_of_duckdb_are_the_same(tmp_path: Path) -> None:
    def renamed(node: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": node["operator_type"],
            "intermediate_rows": node["operator_cardinality"],
            "intermediate_size_bytes": node["result_set_size"],
            "rows_scanned": node.get("operator_rows_scanned", 0),
            "extra_info": node.get("extra_info", {}),
            "children": [renamed(child) for child in node["children"]],
        }

    later = {"operator": [renamed(PLAN["children"][0])], "query": {"sql": PLAN["query_name"]}}
    found = []
    for document in (PLAN, later):
        (tmp_path / "plan.json").write_text(json.dumps(document))
        found.append(read_profile(tmp_path / "plan.json"))
    assert found[0] == found[1]


def test_postgres_counts_rows_of_all_loops_and_pages_of_its_own(tmp_path: Path) -> None:
    calls = CALLS.replace("duckdb::PhysicalTableScan::GetData(duckdb::DataChunk&) const",
                          "ExecSeqScan")  # fmt: skip
    made = profiled(tmp_path, calls=calls, plan=json.dumps(POSTGRES))
    assert made.objects["t"].rows == 2 * (300 + 200)
    (column,) = (made.objects["t"].columns or {}).values()
    assert column.value_size.value == pytest.approx(10 * 8192 / 1000, rel=1e-3)


@pytest.mark.parametrize(
    ("plan", "scan", "other"),
    [
        (json.dumps(POSTGRES), "ExecSeqScan", "ExecAgg"),
        (CLICKHOUSE, "DB::MergeTreeSelectProcessor::read()", "DB::JoiningTransform::transform()"),
        (MONETDB, "ALGthetaselect2", "AGGRsubsum_hge"),
    ],
    ids=["postgresql", "clickhouse", "monetdb"],
)
def test_what_was_counted_is_shared_out_once(
    tmp_path: Path, plan: str, scan: str, other: str
) -> None:
    """Though PostgreSQL's ExecAgg takes rows in and passes them on."""
    calls = CALLS.replace(SCANS, scan).replace(SINK, other)
    made = profiled(tmp_path, calls=calls, plan=plan)
    done = {
        name: sum(loop.instructions for loop in spec.all_loops)
        * ((made.objects[spec.table].rows or 0) if spec.table else spec.entries or 0)
        for name, spec in operators(made).items()
    }
    assert sum(done.values()) == pytest.approx(160_200, rel=1e-3)
    assert done["outside-operators"] == pytest.approx(200 + 60_000 / 6 + 40_000 * 3 / 4)


def test_processors_of_clickhouse_are_steps_with_tables_and_threads(tmp_path: Path) -> None:
    """``select sum(w), sum(v) from t join d using (k) where v < 500000`` by two threads (26.9): one
    reads ``d`` into the hash table, of which all of its rows come."""
    (tmp_path / "log").write_text(CLICKHOUSE)
    words = [{key: str(value) if isinstance(value, int) else value for key, value in row.items()}
             for row in map(json.loads, CLICKHOUSE.splitlines())]  # fmt: skip
    (tmp_path / "json").write_text(json.dumps({"meta": [{"name": "id"}], "data": words}, indent=1))
    plan = read_profile(tmp_path / "log")
    assert isinstance(plan, Plan)
    assert replace(plan, source="") == replace(read_profile(tmp_path / "json"), source="")
    found = {each.name: each for each in plan.operators}
    join, build = found["join"], found["read-from-merge-tree-2"]
    assert join.inputs == ("expression-2", "expression-4")
    assert (join.rows, join.results) == (720086, 600086)
    assert (build.table, build.results, build.row_bytes, build.parallel) == ("d", 120000, 16.0, 1)
    assert (found["aggregating"].results, found["aggregating"].parallel, join.parallel) == (1, 2, 2)
    calls = CALLS.replace(SCANS, "DB::MergeTreeSelectProcessor::read()")
    made = operators(profiled(tmp_path, calls=calls, log=CLICKHOUSE))
    assert [(spec.table, spec.concurrency, spec.after) for spec in made.values()] == [
        (None, 1, ()), ("d", None, ("outside-operators",)), ("t", None, ("expression-4",)),
        (None, None, ("aggregating",)),
    ]  # fmt: skip
    alone = replace(plan, operators=tuple(replace(one, parallel=1) for one in plan.operators))
    graph = read_callgrind(tmp_path / "calls", calls)
    assert workload_text(Found(alone, (graph,), None), "q").count("concurrency: 1") == 4


def test_instructions_of_monetdb_are_operators_as_deep_as_their_columns(tmp_path: Path) -> None:
    """``select shop, sum(amount) from sales, items where item = number and d < 400 group by shop``
    of 1.2 million rows in two slices (11.41), as mclient prints it, raw or as CSV."""
    (tmp_path / "raw").write_text(MONETDB)
    (tmp_path / "csv").write_text(
        MONETDB.replace("\t]", "").replace("[ ", "").replace('\\"', '""').replace("\t", "")
    )
    plan = read_profile(tmp_path / "raw")
    assert isinstance(plan, Plan)
    assert replace(plan, source="") == replace(read_profile(tmp_path / "csv"), source="")
    found = {each.name: each for each in plan.operators}
    select, join = found["thetaselect-2"], found["join"]
    assert (select.table, select.rows, select.row_bytes, select.inputs) == ("sales", 6e5, 8.0, ())
    assert (join.table, join.inputs, join.rows) == (None, ("projection", "projection-3"), 58_464)
    assert (found["subsum"].results, found["subsum"].row_bytes) == (100.0, 16.0)
    made = operators(profiled(tmp_path, calls=CALLS.replace(SCANS, "ALGjoin"), log=MONETDB))
    assert (made["join"].after, made["join"].concurrency) == (join.inputs, 1)
    assert made["projection"].after == ("thetaselect",)
    assert made["thetaselect"].after == ("outside-operators",)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a": CALLS[: CALLS.index("totals")]}, "an unfinished callgrind file"),
        ({"a": CALLS[:-7]}, "a:36: an unfinished callgrind file"),
        ({"a": CALLS.replace("1 20000", f"1 {'9' * 400}")}, "a:9: not callgrind's format"),
        ({"a": CALLS.replace("+1 40000", "+1 4x")}, "a:11: not callgrind's format: found '+1 4x'"),
        ({"a": CALLS.replace("cfn=(5)", "cfn=(9)").replace("cfn=(3) hash", "cfn=(9)")}, "'(9)'"),
        ({"a": json.dumps(PLAN)[:-9]}, "a:1:"),
        ({"a": json.dumps(PLAN).replace("operator_card", "rows")}, "another version of DuckDB's"),
        ({"a": json.dumps(PLAN).replace("[]", "3")}, "'children' of an operator: found '3', exp"),
        ({"a": json.dumps(PLAN).replace("1000", '"many"')}, "of an operator: found 'many', expec"),
        ({"a": json.dumps(PLAN).replace("1600", "1e999")}, "found 'Infinity', expected a number"),
        ({"a": json.dumps(PLAN).replace("1600,", "true,")}, "'result_set_size' of an operator"),
        ({"a": json.dumps(POSTGRES).replace("300", "-1")}, "'Actual Rows' of an operator: found '"),
        ({"a": json.dumps(POSTGRES).replace("300", "1e15")}, "'Actual Rows' by 'Actual Loops'"),
        ({"a": json.dumps(PLAN)}, "no counts, only a plan"),
        ({"a": json.dumps({"Plan": 1})}, "not a known profile"),
        ({"a": json.dumps([{"Plan": {"Node Type": "Result"}}])}, "found 'Actual Rows'"),
        ({"a": "<not supported>,,instructions,0,0,,\n"}, "instructions were not counted"),
        ({"a": CLICKHOUSE[:-9]}, ":42:"),
        ({"a": CLICKHOUSE.replace('"id":', '"id":1e999,"no":', 1)}, "a:1: 'id' of an operator: fo"),
        ({"a": CLICKHOUSE.replace("240777", "-1", 1)}, "a:2: 'output_rows' of an operator: found"),
        ({"a": MONETDB.replace("[58464]", f"[{'9' * 400}]", 1)}, "a:10: 'C_9' of an operator: fou"),
        ({"a": CLICKHOUSE[:990] + "\n"}, ":4:"),
        ({"a": CLICKHOUSE.partition("\n")[0]}, "not all is there: found '1"),
        (
            {"a": CLICKHOUSE.replace("plan_step_name", "s")},
            "found 'plan_step_name', expected rows of",
        ),
        (
            {"a": '{"x": "parent_ids",\n"data": [["1", ["2"]]]}'},
            "not all is there: expected rows of",
        ),
        ({"a": '{"x": "parent_ids",\n"data": []}'}, "found 'steps of a plan'"),
        ({"a": 2 * CLICKHOUSE}, "several queries"),
        ({"a": 2 * MONETDB}, "several queries"),
        ({"a": MONETDB[:2000]}, "a:20: cut off"),
        ({"a": "1,X_1=1:int := sql.mvc();\n" + "\n" * 99_999}, "no instruction works on a column"),
        ({"a": "1,X_1=[1]:bat[:int] := sql.bind(X_0=0:int);"}, "no instruction works on a column"),
        (
            {
                "a": json.dumps(PLAN),
                "b": CALLS.replace("duckdb::Physical", "0x").replace("hash", "0x7"),
            },
            "none of the plan's operators has a function here",
        ),
    ],
)
def test_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], expected: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    out = tmp_path / "made.yaml"
    words = [str(tmp_path / name) for name in files]
    assert main(["profile", *words, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("number", ["0", "5e-324", "0.5", "1e12", "null"])
def test_any_numbers_of_rows_make_a_workload(tmp_path: Path, number: str) -> None:
    plan = json.dumps(PLAN).replace(": 1000", f": {number}").replace('"t"', '"1e5 ß/x"')
    assert [*profiled(tmp_path, calls=CALLS, plan=plan).objects] == ["table-1e5-x"]
    calls = CALLS.replace(SCANS, "ExecSeqScan")
    for was in (": 2,", ": 300,"):
        profiled(tmp_path, calls=calls, plan=json.dumps(POSTGRES).replace(was, f": {number},"))


def test_a_second_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(PLAN))
    assert "one query at a time" in told_by(read_profiles, [path, path])
