"""What a workload may not say of queries: one clear line, with its place; and what it may."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by

from numatwin.workloads import WorkloadDescription, load_workload, scaled
from numatwin.workloads.query_graphs import ColumnOf, query_graph

WORKLOAD = """\
name: mine
objects:
  t: {kind: table, rows: 1000, columns: {a: {distinct: 10}, id: {distinct: 1000}}}
  u: {kind: table, rows: 50, columns: {a: {distinct: 10}, key: {distinct: 50}}}
operations:
  q:
    kind: query
    clients: 4
    operators:
      find: {kind: scan, table: t, columns: [a], selectivity: 0.1}
      all: {kind: scan, table: u}
      both: {kind: join, build: all, probe: find, build_key: key, probe_key: id}
      sums: {kind: aggregate, input: both, group_by: t.a, sums: key, pipelined: true}
"""
CLIENTS = "    clients: 4\n"


def written(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    text = WORKLOAD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def told(tmp_path: Path, *changes: tuple[str, str]) -> str:
    """The error, from the file's name on."""
    path = written(tmp_path, *changes)
    error = told_by(load_workload, path)
    return error.removeprefix(f"{path}:")


OPERATORS = "operations.q.operators"


@pytest.mark.parametrize(
    ("change", "expected"),
    {
        ("rows: 50,", "rows: 50, parts: 51,"): "4:37: objects.u.parts: "
        "51 parts of 50 rows: expected at most 50: found '51'",
        ("key: {distinct: 50}", "key: {distinct: 51}"): "51 values in 50 rows: expected at most 50",
        ("rows: 50,", "rows: 50, record_size: 1 KiB,"): "does not belong to kind 'table'",
        (", columns: {a: {distinct: 10}, key: {distinct: 50}}", ""): "missing field 'columns'",
        ("selectivity: 0.1", "selectivity: 1.1"): f"10:63: {OPERATORS}.find.selectivity: "
        "found '1.1', expected at most 1",
        ("selectivity: 0.1", "selectivity: -0.1"): f"10:63: {OPERATORS}.find.selectivity: "
        "found '-0.1', expected at least 0",
        ("selectivity: 0.1", "concurrency: 0"): f"10:63: {OPERATORS}.find.concurrency: "
        "found '0', expected at least 1",
        ("columns: [a], selectivity: 0.1", "columns: [b], selectivity: 0.1"): "10:36: "
        f"{OPERATORS}.find.columns: no column 'b' in what it reads: expected one of a, id",
        ("columns: [a], selectivity", "selectivity"): f"10:49: {OPERATORS}.find.selectivity: "
        "a filter reads columns: expected some in 'columns', or 1: found '0.1'",
        ("table: u}", "table: v}"): f"11:32: {OPERATORS}.all.table: no such object: expected one",
        ("build: all", "build: some"): f"12:33: {OPERATORS}.both.build: "
        "no such operator: expected one of find, all, both, sums: found 'some'",
        ("build: all", "build: sums"): f"13:38: {OPERATORS}.sums.input: "
        "operators wait for each other: both after sums after both",
        ("build: all", "build: all, after: al"): f"12:45: {OPERATORS}.both.after: "
        "no such operator: expected one of find, all, both, sums: found 'al'",
        ("build_key: key", "build_key: id"): "both.build_key: no column 'id' in what it reads",
        ("group_by: t.a", "group_by: a"): "several tables have 'a': expected one of t.a, u.a",
        ("group_by: t.a", "groups: 3"): "sums.groups: without group_by there is one group",
        ("kind: aggregate", "kind: sort"): "sums: unknown kind: found 'sort', expected one of",
        ("clients: 4", "clients: 0"): "8:14: operations.q.clients: found '0', expected at least 1",
        ("clients: 4", "clients: 1_000_000"): "8:14: operations.q.clients: "
        "found '1000000', expected at most 100000",
        (CLIENTS, CLIENTS + "    object: t\n"): "operations.q.object: does not belong to kind",
    }.items(),
)
def test_one_clear_line(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    assert expected in told(tmp_path, change)


def test_clients_of_a_mix_and_of_a_query(tmp_path: Path) -> None:
    count = ("objects:", "clients: {kind: closed, count: 64}\nobjects:")
    assert "expected no count: all queries" in told(tmp_path, count)
    mixed = load_workload(written(tmp_path, count, (CLIENTS, "")))
    assert mixed.description.clients.count == 64
    assert "every share of the mix is 0" in told(
        tmp_path,
        count,
        (CLIENTS, "    share: 0\n"),
        (
            "  q:\n",
            "  own: {kind: query, clients: 1, operators: {s: {kind: scan, table: u}}}\n  q:\n",
        ),
    )
    arrivals = ("objects:", "clients: {kind: open, arrival_rate: 100 Hz}\nobjects:")
    assert "expected no clients of its own" in told(tmp_path, arrivals)


def test_together_clients_are_no_more_than_is_sensible(tmp_path: Path) -> None:
    other = "  own: {kind: query, clients: 100_000, operators: {s: {kind: scan, table: u}}}\n"
    assert "100004 clients together" in told(tmp_path, ("  q:\n", other + "  q:\n"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("instructions: 5, table: t, accesses: 1", "missing field 'structure'"),
        ("instructions: 5", "no entries: expected 'table', 'inputs' or 'entries'"),
        ("instructions: 5, table: t, entries: 5", "its entries are the rows of its table"),
        ("instructions: 5, inputs: [find], entries: 5", "its entries are those of its inputs"),
        ("instructions: 5, entries: 5, pipelined: true", "expected one operator in 'inputs'"),
        ("instructions: 5, entries: 5, memory: part", "without a table it has no part"),
        ("instructions: -5, entries: 5", "found '-5', expected at least 0"),
        ("table: t", "missing field 'instructions' (or 'loops', which have them)"),
        ("table: t, loops: [{read: 8 B}], read: 8 B", "each of its loops has its own"),
        ("table: t, loops: [{accesses: 1}]", "missing field 'structure'"),
    ],
)
def test_a_custom_operator_says_all_that_it_needs(
    tmp_path: Path, fields: str, expected: str
) -> None:
    own = f"      own: {{kind: custom, {fields}}}\n      all: "
    assert expected in told(tmp_path, ("      all: ", own))


def test_operators_come_after_those_that_they_need(tmp_path: Path) -> None:
    workload = load_workload(written(tmp_path))
    operators = workload.operations["q"].operators
    assert operators is not None
    upside_down = dict(reversed(operators.items()))
    nodes = query_graph(upside_down, workload.objects)
    assert [node.name for node in nodes] == ["all", "find", "both", "sums"]
    sums = nodes[-1]
    assert sums.passes_on == {ColumnOf("t", "a"), ColumnOf("u", "key")}
    assert sums.table is None


@given(st.floats(1e-3, 1))
def test_scaled_tables_keep_keys_as_keys(factor: float) -> None:
    small = scaled(load_workload("tpch-1"), factor)
    orders = small.objects["orders"]
    assert orders.columns is not None
    assert orders.rows == round(1_500_000 * factor)
    assert orders.columns["o_orderkey"].distinct == orders.rows
    assert orders.columns["o_orderstatus"].distinct == min(3, orders.rows)
    lines = small.objects["lineitem"]
    assert lines.columns is not None
    assert lines.columns["l_orderkey"].distinct == orders.rows  # a join compares them


@pytest.mark.parametrize("name", ["tpch-1", "tpch-100"])
def test_descriptions_of_queries_read_back_as_they_were_written(name: str) -> None:
    description = load_workload(name).description
    plain = description.model_dump(mode="json", exclude_none=True)
    assert WorkloadDescription.model_validate(plain) == description
