"""Workloads of what tools have counted: known counts, and files that are damaged or do not fit."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by

from numatwin import run_scenario
from numatwin.cli import main
from numatwin.sim.machine.assumptions import Variant
from numatwin.sim.machine.caches import hit_rates
from numatwin.sim.run.assumptions import varied
from numatwin.sim.run.doubts import doubts_of
from numatwin.sim.run.numactl import numactl_settings
from numatwin.sim.run.what_if import Predictor
from numatwin.validate.profile.callgrind import read_callgrind
from numatwin.validate.profile.counts import CallGraph, Totals
from numatwin.validate.profile.importers import Found, read_profile, read_profiles
from numatwin.validate.profile.loops import counted, structures
from numatwin.validate.profile.native_run import run_native
from numatwin.validate.profile.plans import Plan
from numatwin.validate.profile.timed_rates import on_one_thread, one_query
from numatwin.validate.profile.workload_file import UNKNOWN, workload_text
from numatwin.workloads import Workload, WorkloadDescription, load_workload
from numatwin.workloads.operators import CustomSpec

GROUPS = Path(__file__).parents[2] / "docs" / "examples" / "groups.callgrind.out"

# 1,000 rows scanned and grouped twice: the sink takes 50 instructions a row, the scan 10.
CALLS = (Path(__file__).parent / "printed" / "callgrind.txt").read_text()
PLAN: dict[str, Any] = {
    "query_name": "select k, sum(v) from t group by k",
    "children": [{
        "operator_type": "HASH_GROUP_BY", "operator_cardinality": 100, "result_set_size": 1600,
        "children": [{
            "operator_type": "TABLE_SCAN", "operator_cardinality": 1000, "result_set_size": 16000,
            "operator_rows_scanned": 1000, "extra_info": {"Table": "t"}, "children": [],
        }],
    }],
}  # fmt: skip
NODE = {"Node Type": "Seq Scan", "Relation Name": "t", "Actual Rows": 300, "Actual Loops": 2}
POSTGRES = [
    {
        "Plan": {
            "Node Type": "Aggregate",
            "Actual Rows": 1,
            "Actual Loops": 1,
            "Plan Width": 8,
            "Plans": [{**NODE, "Plan Width": 4, "Rows Removed by Filter": 200,
                       "Shared Hit Blocks": 10}],
        }
    }
]  # fmt: skip
PERF = "1000000;;instructions:u;500;100.00;;\n2000;;cache-misses;500;100.00;;\n"


def profiled(folder: Path, *words: str, **files: str) -> Workload:
    """What the command makes of files of these contents."""
    for name, text in files.items():
        (folder / name).write_text(text)
    out = folder / "made.yaml"
    names = [str(folder / name) for name in files]
    assert main(["profile", *names, "--out", str(out), *words]) == 0
    made = load_workload(out)
    assert WorkloadDescription.model_validate(made.plain) == made.description
    return made


def operators(workload: Workload) -> dict[str, CustomSpec]:
    found = workload.operations["q"].operators
    assert found is not None
    assert all(isinstance(spec, CustomSpec) for spec in found.values())
    return found  # type: ignore[return-value]


def test_functions_work_for_the_operators_that_call_them(tmp_path: Path) -> None:
    """``hash`` for the sink in 50 of 60 instructions, ``parse`` in 10 of 40; two runs."""
    made = operators(profiled(tmp_path, "--queries", "2", calls=CALLS, plan=json.dumps(PLAN)))
    assert made["outside-operators"].all_loops[0].instructions == pytest.approx(
        (200 + 60_000 * 10 / 60 + 40_000 * 30 / 40) / 2
    )
    group = made["hash-group-by"]
    assert (group.table, group.row_group) == ("t", 1000)
    assert [loop.instructions for loop in group.all_loops] == pytest.approx([25, 10, 20, 5])
    hashed = group.all_loops[0]
    assert [size for _, size in hashed.accessed] == [round(2**17.5), 2.0**22]
    assert group.all_loops[1].read.value == pytest.approx(0.125 * 64)
    assert all(loop.ipc and loop.ipc.range for loop in group.all_loops)


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


CLICKHOUSE = (GROUPS.parents[2] / "tests/validate/printed/clickhouse.jsonl").read_text()
MONETDB = (GROUPS.parents[2] / "tests/validate/printed/monetdb.txt").read_text()
SCANS, SINK = (f"duckdb::Physical{name}" for name in (
    "TableScan::GetData(duckdb::DataChunk&) const", "HashAggregate::Sink(duckdb::DataChunk&) const"
))  # fmt: skip


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


@pytest.mark.parametrize(("size", "in_order"), [(2.0**21, [60.0, 5.0]), (2.0**26, [20.0, 1.0])])
def test_a_prefetcher_tells_lines_in_order(size: float, in_order: list[float]) -> None:
    """It foresees 60 and 5 of the 100 and 50 misses of 2 MiB; or 20 and 1 of those of 64 MiB."""
    events, nothing = ("Ir", "DLmr", "DLmw"), np.zeros(0, dtype=np.int64)

    def graph(size: float, *missed: tuple[float, float], prefetched: bool = False) -> CallGraph:
        own = np.array([[1e3, *row] for row in missed])
        names, none = ("scan", "probe"), np.zeros(0)
        return CallGraph(
            "", events, names, own, nothing, nothing, none, (0.0, size), prefetched=prefetched
        )

    left = (40.0, 45.0) if size == 2.0**21 else (10.0, 29.0)
    graphs = [
        graph(2.0**21, (90.0, 10.0), (50.0, 0.0)),
        graph(2.0**26, (22.0, 8.0), (30.0, 0.0)),
        graph(size, *((missed, 0.0) for missed in left), prefetched=True),
    ]
    found = counted(graphs)
    assert found.in_order is not None
    assert found.in_order.tolist() == in_order
    assert found.sizes.tolist() == [2.0**21, 2.0**26]
    assert found.written.tolist() == ([10.0, 0.0] if size == 2.0**21 else [8.0, 0.0])


def graph_of(events: tuple[str, ...], row: tuple[float, ...], **more: Any) -> CallGraph:
    nothing = np.zeros(0, dtype=np.int64)
    return CallGraph("", events, ("f",), np.array([row]), nothing, nothing, np.zeros(0), **more)


@pytest.mark.parametrize(
    ("calls", "each_us", "lacking"), [(100.0, 9.0, 26.0), (100.0, 2.6, 12.5), (1e-3, 99.0, 2735.0)]
)
def test_what_a_call_displaces_is_fetched_anew(
    calls: float, each_us: float, lacking: float
) -> None:
    """Of 10,000 accesses of which caches of c lines miss c^-1/2: n in a row touch (1 + 3n/2)^2/3
    lines, at most all that a second cache holds; misses that happen anyway do not count. So 28 and
    8,192; short calls displace fewer, one each 8 ns beyond 2.5 µs."""

    def graph(size: float) -> CallGraph:
        events = ("Ir", "Dr", "Dw", "D1mr", "D1mw", "sysCount", "sysCpuTime")
        row = (1e4, 1e4, 0.0, 1e4 * (size / 64) ** -0.5, 0.0, calls, calls * each_us * 1e3)
        return graph_of(events, row, caches=(size, 2.0**23))

    small, large = graph(2.0**12), graph(2.0**19)
    text = workload_text(Found(None, (large, small), None), "f", 10)
    *_, loop = yaml.safe_load(text)["operations"]["f"]["operators"]["all"]["loops"]
    assert loop["structures"][0]["accesses"] == pytest.approx(lacking * calls / 10.0, rel=0.02)
    assert loop["at_once"]["range"] == [1.0, 4.0]
    assert counted((small, large)).sizes.tolist() == [2.0**19, 2.0**23]
    assert UNKNOWN["no_refills"] in workload_text(Found(None, (large,), None), "f", 10)


def test_misses_are_in_order_at_the_sizes_where_a_prefetcher_foresees_them() -> None:
    """Of 100 misses of a first cache 10 are not foreseen, of 60 of a large one 6: between them 9 of
    10 are in order at all sizes, beyond as many as of the large one."""

    def graph(first: float, last: float, *missed: float, prefetched: bool = False) -> CallGraph:
        events = ("Ir", "D1mr", "D1mw", "DLmr", "DLmw")
        row = (1e3, missed[0], 0.0, missed[1], 0.0)
        return graph_of(events, row, caches=(first, last), prefetched=prefetched)

    found = counted(
        [
            graph(2.0**15, 2.0**19, 100.0, 80.0),
            graph(2.0**21, 2.0**23, 60.0, 56.0),
            graph(2.0**15, 2.0**15, 100.0, 10.0, prefetched=True),
            graph(2.0**15, 2.0**21, 100.0, 6.0, prefetched=True),
        ]
    )
    assert found.in_order is not None
    assert found.in_order.tolist() == [54.0]
    assert found.at_random[:, 0] == pytest.approx([10.0, 8.0, 6.0, 2.0])


@pytest.mark.parametrize(("copied", "more"), [(0.0, 500.0), (16384.0, 0.0), (16384.0, 500.0)])
def test_bytes_of_a_copying_string_instruction_are_no_instructions(
    copied: float, more: float
) -> None:
    """Each reads and writes; other instructions access memory at most once here."""
    row = (copied + more, copied + more / 2, copied + more / 2)
    found = counted([graph_of(("Ir", "Dr", "Dw"), row)])
    assert found.instructions.tolist() == [copied / 32 + more]


def test_totals_alone_are_one_task(tmp_path: Path) -> None:
    (loop,) = operators(profiled(tmp_path, perf=PERF))["all"].all_loops
    assert (loop.instructions, loop.read.value) == (1e6, 2000 * 64)
    (loop,) = operators(profiled(tmp_path, perf=PERF.partition("\n")[0]))["all"].all_loops
    assert loop.read.value == 0
    notes = (tmp_path / "made.yaml").read_text()
    assert UNKNOWN["faults"] in notes
    assert "cache-misses were not counted" in notes
    assert "mispredicted branches were not counted" in notes
    counted = operators(profiled(tmp_path, perf=PERF + "400000;;cycles:u;500;100.00;;\n"))
    (loop,) = counted["all"].all_loops
    assert loop.ipc is not None
    assert loop.ipc.range == (2.5, 8.0)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a": CALLS[: CALLS.index("totals")]}, "an unfinished callgrind file"),
        ({"a": CALLS.replace("+1 40000", "+1 4x")}, "a:11: not callgrind's format: found '+1 4x'"),
        ({"a": CALLS.replace("cfn=(5)", "cfn=(9)").replace("cfn=(3) hash", "cfn=(9)")}, "'(9)'"),
        ({"a": json.dumps(PLAN)[:-9]}, "a:1:"),
        ({"a": json.dumps(PLAN).replace("operator_card", "rows")}, "another version of DuckDB's"),
        ({"a": json.dumps(PLAN)}, "no counts, only a plan"),
        ({"a": json.dumps({"Plan": 1})}, "not a known profile"),
        ({"a": json.dumps([{"Plan": {"Node Type": "Result"}}])}, "found 'Actual Rows'"),
        ({"a": "<not supported>,,instructions,0,0,,\n"}, "instructions were not counted"),
        ({"a": CLICKHOUSE[:-9]}, ":42:"),
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


SCAN = """\
name: scan
objects:
  t: {kind: table, rows: 100_000_000, columns: {v: {distinct: 1000, encoded: false}}}
operations:
  scan:
    kind: query
    operators: {scan: {kind: custom, table: t, instructions: 2, read: 8 B, results: 0}}
clients: {kind: closed, count: 1}
"""


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The alternatives by name."""
    assert main(["what-if", *words, "--json"]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)["alternatives"]}


def test_a_scan_of_what_one_thread_has_loaded_gains_by_interleaving(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four nodes' controllers in place of one; threads of the loader's node alone gain nothing that
    their own controller does not have. Commands are those whose settings were predicted."""
    workload = tmp_path / "scan.yaml"
    workload.write_text(SCAN)
    rows = asked(capsys, str(workload), "--machine", "xeon-4s-ivb")
    assert 2.0 < rows["interleave"]["gain"] <= 4.0
    assert rows["bind to node 0, 1, 2, 3"]["gain"] == pytest.approx(1.0, rel=0.3)
    assert rows["as it is"]["gain_interval"] == [1.0, 1.0]
    for row in rows.values():
        low, high = row["interval_s"]
        assert low <= row["time_s"] <= high
        settings = (
            numactl_settings(row["command"])
            if row["command"].startswith("numactl")
            else [f"system.threads={row['name'].split()[0]}"] * ("thread" in row["name"])
        )
        found = run_scenario(one_query(tmp_path, "xeon-4s-ivb", workload, None, settings))
        assert 1 / found.throughput["scan"] == pytest.approx(row["time_s"])


def test_on_one_node_there_are_threads_alone_to_try(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = tmp_path / "one.yaml"
    one.write_text(
        "name: one\nnode_types: {n: {cores: 4, memory: {size: 8 GiB, bandwidth: 20 GB/s, "
        "latency: 90 ns}}}\nnodes: [{ids: 0-0, type: n}]\n"
    )
    rows = asked(capsys, str(GROUPS), "--machine", str(one))
    assert list(rows) == ["as it is", "2 threads a node", "1 thread a node"]


def test_ranges_of_instructions_per_cycle_are_doubts(tmp_path: Path) -> None:
    """Between each loop's least rate, one a cycle, and the most, eight, lies the time of its
    instructions, but for an eighth."""
    profiled(tmp_path, calls=GROUPS.read_text())
    scenario = one_query(tmp_path, "xeon-4s-ivb", tmp_path / "made.yaml", 1)
    (doubt,) = [one for one in doubts_of(scenario) if one.name == "q: ipc of all loops"]
    assert len(doubt.at(0.0)) == 3
    rates = []
    for part in (0.0, 1.0):
        end = Variant("an end", doubt.at(part))
        rates.append(Predictor(varied(scenario, end)).own.throughput["q"])
    instructions_s = 12_582_931 / 2.5e9  # at one a cycle
    assert 1 / rates[0] - 1 / rates[1] == pytest.approx(instructions_s * (1 - 1 / 8), rel=0.05)


TIMED_ON = ("--timed-on", "xeon-4s-ivb")


def time_s(folder: Path) -> float:
    """Predicted of the made workload on one thread."""
    scenario = on_one_thread(folder, TIMED_ON[1], folder / "made.yaml")
    return 1 / run_scenario(scenario).throughput["q"]


def test_one_thread_is_on_one_of_four_nodes(tmp_path: Path) -> None:
    """Of entries that no table's part keeps there."""
    workload = tmp_path / "scan.yaml"
    workload.write_text(SCAN.replace("table: t, ", "entries: 10_000_000, "))
    alone, four = (
        run_scenario(scenario).throughput["scan"]
        for scenario in (
            on_one_thread(tmp_path, TIMED_ON[1], workload),
            one_query(tmp_path, TIMED_ON[1], workload, 1),
        )
    )
    assert alone == pytest.approx(four / 4, rel=0.1)


@pytest.mark.parametrize("ms", [2.5, 3.5, 5.0])
def test_loops_execute_as_the_time_tells(tmp_path: Path, ms: float) -> None:
    """What is predicted is what was timed; what is uncertain of the machine leaves a range."""
    made = profiled(tmp_path, "--time", f"{ms}ms", *TIMED_ON, calls=GROUPS.read_text())
    assert time_s(tmp_path) == pytest.approx(ms * 1e-3, rel=0.01)
    loops = operators(made)["all"].all_loops
    for loop in (loop for loop in loops if loop.instructions > 100):  # in others, one miss is all
        assert loop.ipc is not None
        assert loop.ipc.range is not None
        low, high = (float(end) for end in loop.ipc.range)
        assert 1.0 <= low < float(loop.ipc.value) < high <= 8.0
        assert high / low < 2.5
    assert "the time of the query tells" in (tmp_path / "made.yaml").read_text()


def test_times_of_runs_leave_a_range(tmp_path: Path) -> None:
    found = []
    for times in (("3ms",), ("2.6ms", "3ms", "3.4ms")):
        words = [word for time in times for word in ("--time", time)]
        made = profiled(tmp_path, *words, *TIMED_ON, calls=GROUPS.read_text())
        (ipc, *_) = [loop.ipc for loop in operators(made)["all"].all_loops]
        assert ipc is not None
        assert ipc.range is not None
        found.append((float(ipc.value), *map(float, ipc.range)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-3)
    assert found[1][1] < found[0][1]
    assert found[0][2] < found[1][2]


def test_the_time_of_another_workload_tells_as_much(tmp_path: Path) -> None:
    """The same loops with half of the counts take half as long."""
    profiled(tmp_path, calls=GROUPS.read_text())
    small = tmp_path / "small.yaml"
    (tmp_path / "made.yaml").rename(small)
    words = ("--time", "3ms", *TIMED_ON, "--timed", str(small))
    profiled(tmp_path, "--queries", "2", *words, calls=GROUPS.read_text())
    assert time_s(tmp_path) == pytest.approx(1.5e-3, rel=0.03)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--time", "2s"), "--time: no instructions per cycle explain it: found '2 s'"),
        (("--time", "2 km"), "'2 km'"),
        (("--timed", "small.yaml"), "--timed without --time"),
        (("--time", "2ms", "--timed", "small.yaml"), "small.yaml"),
        (("--time", "2ms", "--timed", str(GROUPS.with_name("exact.yaml"))), "exact.yaml"),
    ],
)
def test_times_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    out = tmp_path / "made.yaml"
    assert main(["profile", str(GROUPS), *words, *TIMED_ON, "--out", str(out)]) == 2
    assert expected in capsys.readouterr().err
    assert not out.exists()


def test_a_program_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--", "no-such-program"]) == 2
    assert "no such program: found 'no-such-program'" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_a_command_runs_under_callgrind(tmp_path: Path) -> None:
    out = tmp_path / "made.yaml"
    assert main(["profile", "--out", str(out), "--", shutil.which("true") or ""]) == 0
    assert sum(loop.instructions for loop in operators(load_workload(out))["all"].all_loops) > 1e4


MAPS = """\
import mmap, os, subprocess
for pages in (2000, 1000):
    for mark in ("on", "off"):
        subprocess.run(["callgrind_control", "-i", mark, str(os.getpid())][:WORDS], check=True)
        new = mmap.mmap(-1, pages * mmap.PAGESIZE)
        for k in range(pages):
            new[k * mmap.PAGESIZE] = 1
"""


@pytest.mark.parametrize("words", [4, 3], ids=["of a process", "of the caller"])
def test_page_faults_are_those_of_the_region_or_the_whole(tmp_path: Path, words: int) -> None:
    """Of 6,000 pages 3,000, but for those of Python itself."""
    (tmp_path / "maps.py").write_text(MAPS.replace("WORDS", str(words)))
    command = (sys.executable, str(tmp_path / "maps.py"))
    found = [run_native(command, region=region).counts for region in (True, False)]
    assert found[0]["minor-faults"] == pytest.approx(3000, abs=100)
    assert found[1]["minor-faults"] > 6000
    assert found[1]["user_time"] + found[1]["system_time"] < 20e9
    (tmp_path / "maps.py").write_text("")
    assert run_native(command, region=True).counts == {}
    (tmp_path / "maps.py").write_text("exit(3)")
    assert "ended with status 3" in told_by(run_native, command)


def test_page_faults_go_to_who_writes_new_lines(tmp_path: Path) -> None:
    """``hash`` writes 131,072 of them, ``gather`` 4,096. perf's totals may have some."""
    totals = Totals("", {"minor-faults": 600.0, "user_time": 4e6, "system_time": 6e6})
    text = workload_text(Found(None, (read_callgrind(GROUPS, GROUPS.read_text()),), totals), "q", 2)
    loops = yaml.safe_load(text)["operations"]["q"]["operators"]["all"]["loops"]
    faults = [loop.get("page_faults", 0.0) for loop in loops]
    assert faults == pytest.approx([300 / 33, 300 * 32 / 33, 0.0], abs=1e-3)
    assert "page faults: 300 a query" in text
    assert "2 ms in user code, 3 ms in the kernel" in text
    made = operators(profiled(tmp_path, perf=PERF + "30;;page-faults;5;100;;\n"))
    assert made["all"].all_loops[0].page_faults == 30


def test_all_of_each_function_works_for_somebody() -> None:
    """As much is shared out as was counted, roots and the rest together."""
    graph = read_callgrind(GROUPS, GROUPS.read_text())
    assert isinstance(graph, CallGraph)
    share = graph.shares([[graph.position["hash"]], [graph.position["main"]]])
    assert share.sum(axis=1).max() <= 1.0
    own = graph.of("Ir") @ share
    assert own == pytest.approx([7_340_039, 5_242_886 + 6], rel=1e-5)


@given(st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3))
def test_structures_miss_as_was_counted(parts: list[float]) -> None:
    """Structures of sizes between those of the caches are found again by their misses."""
    sizes = np.array([2.0**15, 2.0**20, 2.0**25])
    bytes_ = np.sqrt(sizes * np.array([2.0**20, 2.0**25, 2.0**29]))

    def misses(counts: Any, lines: Any) -> Any:
        hits = hit_rates(np.tile(lines, (3, 1)), np.tile(np.array(counts), (3, 1)), sizes / 64)
        return (1 - hits) @ counts

    counted = misses(parts, bytes_ / 64)
    found = structures(sizes, counted)
    again = misses([one[0] for one in found], np.array([one[1] / 64 for one in found]))
    assert again == pytest.approx(counted, rel=0.02, abs=2e-3)


def test_a_second_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(PLAN))
    assert "one query at a time" in told_by(read_profiles, [path, path])
