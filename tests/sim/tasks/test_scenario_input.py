"""What a scenario of tasks may not say: one clear line, with its place."""

from pathlib import Path

import pytest
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.sim.run.scenario import load_scenario

WORKLOAD = """\
name: mine
objects:
  t: {kind: table, rows: 1_000_000, columns: {a: {distinct: 1024}}}
operations:
  find: {kind: query, clients: 4, operators: {find: {kind: scan, table: t, columns: a}}}
"""
SCENARIO = """\
name: mine
machine: intel-4s-qpi
workload: workload.yaml
system: {kind: tasks}
policies: {cores: none}
horizon: 1 s
"""
SYSTEM = "kind: tasks"


def told(tmp_path: Path, *changes: tuple[str, str], settings: tuple[str, ...] = ()) -> str:
    """The error, from the file's name on."""
    for name, text in (("workload.yaml", WORKLOAD), ("mine.yaml", SCENARIO)):
        for old, new in changes:
            text = text.replace(old, new)
        (tmp_path / name).write_text(text, encoding="utf-8")
    error = told_by(load_scenario, tmp_path / "mine.yaml", settings=settings)
    return error.removeprefix(f"{tmp_path / 'mine.yaml'}:")


@pytest.mark.parametrize(
    ("more", "expected"),
    {
        "placement: nearby": "4:34: system.placement: found 'nearby', expected round-robin",
        "placement: []": "system.placement: expected round-robin, interleaved, first-touch, or",
        "placement: 4": "4:34: system.placement: node 4 of machine 'intel-4s-qpi' does not exist",
        "placement: [0, 9]": "4:38: system.placement.1: "
        "node 9 of machine 'intel-4s-qpi' does not exist",
        "tables: {u: 0}": "4:35: system.tables.u: no such table: expected one of t",
        "tables: {t: 7}": "4:35: system.tables.t: node 7 of machine 'intel-4s-qpi' does not exis",
        "concurrency: 0": "4:36: system.concurrency: found '0', expected at least 1",
        "parts: 0": "4:30: system.parts: found '0', expected at least 1",
        "nodes: 5": "system.nodes: machine 'intel-4s-qpi' has 4 nodes with cores: expected at",
        "affinity: node, nodes: []": "4:39: system.nodes: expected at least one node id",
        "affinity: []": "4:23: system.affinity: expected 'core', 'node' or 'none'",
        "affinity: none, nodes: 0": "system.nodes: found '0', expected at least 1",
        "nodes: [0, 0]": "system.nodes: a node id is listed twice",
        "nodes: 1, loaders: 2": "system.loaders: 1 nodes have workers: expected at most 1",
        "threads: 21": "system.threads: node 0 of machine 'intel-4s-qpi' has 20 hardware threads",
        "queue: table": "system.queue: found 'table', expected 'node', 'worker' or 'machine'",
        "look: 5": "system.look: a bare number has no unit: expected a time such as '129 ns'",
        "instructions: {scan: 5}": "unknown field 'scan' in system.instructions",
        "instructions: {scan_row: -1}": "scan_row: found '-1', expected at least 0",
    }.items(),
)
def test_one_clear_line(tmp_path: Path, more: str, expected: str) -> None:
    assert expected in told(tmp_path, (SYSTEM, f"{SYSTEM}, {more}"))


def test_data_fit_into_the_memory_of_their_nodes(tmp_path: Path) -> None:
    error = told(tmp_path, ("1_000_000", "100_000_000_000"), (SYSTEM, f"{SYSTEM}, placement: 2"))
    assert error == (
        "4:34: system.placement: node 2 of machine 'intel-4s-qpi' has 34.36 GB of memory, and "
        "parts of 125 GB lie there: expected a smaller workload, or another placement"
    )


@pytest.mark.parametrize(
    ("bare", "more", "expected"),
    [
        ("cores: 2, memory: {size: 0 B}", "placement: 1", "placement: node 1 {} memory for a part"),
        (
            "cores: 0, memory: {size: 1 GiB}",
            "affinity: node, nodes: [1]",
            "nodes.0: node 1 {} cores",
        ),
    ],
)
def test_parts_lie_on_nodes_with_memory_and_threads_run_on_such_with_cores(
    tmp_path: Path, bare: str, more: str, expected: str
) -> None:
    machine = "machine:\n  name: odd\n  node_types:\n"
    machine += f"    full: {{cores: 2, memory: {{size: 1 GiB}}}}\n    bare: {{{bare}}}\n"
    machine += "  nodes: [{ids: 0-0, type: full}, {ids: 1-1, type: bare}]"
    changes = ("machine: intel-4s-qpi", machine), (SYSTEM, f"{SYSTEM}, {more}")
    assert "system." + expected.format("of machine 'odd' has no") in told(tmp_path, *changes)


def test_rows_are_as_many_as_parts_however_small_the_scale(tmp_path: Path) -> None:
    error = told(tmp_path, ("rows: ", "parts: 8, rows: "), settings=("scale=0.000005",))
    assert error.endswith("table 't' has 5 rows left in 8 parts: expected a larger scale")


def test_thresholds_of_cores_rise(tmp_path: Path) -> None:
    cores = "cores: {policy: adaptive, th_min: 0.7, th_max: 0.7}"
    assert "th_min 0.7 is not below th_max 0.7" in told(tmp_path, ("cores: none", cores))


def test_only_tables_by_column_are_queried(tmp_path: Path) -> None:
    error = told(tmp_path, ("objects:\n", "objects:\n  i: {kind: index, keys: 10}\n"))
    assert "cannot run 'mine': object 'i' is not a table with rows and columns" in error
    other = told(tmp_path, ("kind: tasks", "kind: eris"))
    assert "operation 'find' is a query: expected a lookup or" in other


def test_facts_of_a_machine_are_read_with_their_place(tmp_path: Path) -> None:
    from numatwin.sim.systems.registry import check_engines
    from numatwin.topologies import load_machine

    path = tmp_path / "machine.yaml"
    path.write_text(
        "name: m\nnode_types: {n: {cores: 1, memory: {size: 1 GiB}}}\n"
        "nodes: [{ids: 0-0, type: n}]\nengines: {tasks: {move_page: 59}}\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=r":4:30: engines.tasks.move_page: a bare number has no"):
        check_engines(load_machine(path))
