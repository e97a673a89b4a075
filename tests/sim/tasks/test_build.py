"""From a scenario to a Program: tables in parts, queries as stages, what an entry demands."""

import re
from pathlib import Path

import pytest

from numatwin.sim.run.scenario import load_scenario, scenario_from_settings
from numatwin.sim.systems.tasks.build import program_of
from numatwin.sim.systems.tasks.program import MemoryUse, Part, Program

WORKLOAD = """\
name: mine
objects:
  t: {kind: table, rows: 1_000_000, parts: 2, columns: {a: {distinct: 1024}}}
operations:
  find:
    kind: query
    clients: 4
    operators:
      find: {kind: scan, table: t, columns: a, selectivity: 0.16}
"""
SCENARIO = """\
name: mine
machine: xeon-4s-ivb
workload: workload.yaml
system: {kind: tasks}
horizon: 1 s
"""


def made(tmp_path: Path, *changes: tuple[str, str]) -> Program:
    """The program of the scenario with these changes to its two files."""
    for name, text in (("workload.yaml", WORKLOAD), ("scenario.yaml", SCENARIO)):
        for old, new in changes:
            text = text.replace(old, new)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return program_of(load_scenario(tmp_path / "scenario.yaml"))


def test_scan_reads_its_index_vector_in_order_and_writes_positions(tmp_path: Path) -> None:
    # 1,024 values: 10 bits a row, 10/8/64 lines. Positions of every sixth row would take 0.64 B a
    # row: a bit for each is less, and the lines are fetched before they are written.
    program = made(tmp_path)
    (stage,) = program.queries[0].stages
    of_part, local = stage.cost.memory
    assert of_part == MemoryUse("part", 10 / 512)
    assert local.place == "local"
    assert (local.read, local.written) == (1 / 512, 1 / 512)
    # 2.5 instructions a row, 1.7 a cycle of 0.4 ns.
    assert stage.cost.instructions_s == pytest.approx([2.5 / 1.7 * 0.4e-9] * 4)
    assert stage.cost.misses_at_once == pytest.approx([16.0] * 4)
    assert stage.entries.count(500_000, 1, 0) == 500_000


def test_who_makes_positions_of_bits_pays_for_it(tmp_path: Path) -> None:
    """Of a scan that lets every 16th row through: 5 instructions each, 25 a word with any."""
    a_row = 5 / 16 + 25 / 64 * (1 - (15 / 16) ** 64)
    summed = "      sums: {kind: aggregate, input: find, sums: a}\n"
    fewer = ("selectivity: 0.16}\n", "selectivity: 0.0625%s}\n" + summed)
    costs = [
        [
            float(stage.cost.instructions_s[0]) * 1.7 / 0.4e-9
            for stage in made(tmp_path, (fewer[0], fewer[1] % result)).queries[0].stages
            if stage.name in ("find", "sums")
        ]
        for result in (", result: positions", "")
    ]
    (scan, sums), (bits, from_bits) = costs
    assert (scan, bits) == pytest.approx((2.5 + a_row, 2.5))
    assert from_bits - sums == pytest.approx(16 * a_row)


def test_tables_have_their_parts_round_robin_over_nodes(tmp_path: Path) -> None:
    (table,) = made(tmp_path).tables
    assert table.parts == (Part(500_000, 0), Part(500_000, 1))
    assert (table.bytes_per_row, table.fixed_bytes) == (1.25, 8 * 1024)


def test_workers_are_one_a_core_by_default(tmp_path: Path) -> None:
    assert made(tmp_path).scheduling.workers.tolist() == [15] * 4
    more = made(tmp_path, ("kind: tasks", "kind: tasks, nodes: [1, 2], threads: hardware-threads"))
    assert more.scheduling.workers.tolist() == [0, 30, 30, 0]


def test_recorded_tasks_are_stages_by_operator_and_part(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(
        "operator,part,bytes,accesses,instructions\n"
        "scan,t,6400,0,1700\nscan,t,6400,0,1700\njoin,t,0,10,850\n",
        encoding="utf-8",
    )
    recorded = "{kind: recorded, file: trace.csv, structure: 1 TiB}"
    program = made(tmp_path, ("{kind: scan, table: t, columns: a, selectivity: 0.16}", recorded))
    scan, join = program.queries[0].stages
    assert (scan.task_class, scan.inputs, scan.concurrency) == ("scan", (), 2)
    assert (join.task_class, join.inputs, join.concurrency) == ("join", (0,), 1)
    assert scan.entries.count(1_000_000, 2, 0) == 2
    assert scan.cost.memory == (MemoryUse("part", 100.0),)
    assert scan.cost.instructions_s == pytest.approx([0.4e-6] * 4)  # 1.7 a cycle of 0.4 ns
    assert join.cost.memory[0].read == pytest.approx(10.0, rel=1e-3)


def test_a_scenario_with_a_trace_is_made_again_from_its_settings(tmp_path: Path) -> None:
    test_recorded_tasks_are_stages_by_operator_and_part(tmp_path)
    scenario = load_scenario(tmp_path / "scenario.yaml")
    again = scenario_from_settings(scenario.settings)
    assert again.hash == scenario.hash
    (tmp_path / "trace.csv").write_text(
        "operator,part,bytes,accesses,instructions\nscan,t,6400,0,1700\n", encoding="utf-8"
    )
    assert load_scenario(tmp_path / "scenario.yaml").hash != scenario.hash


def test_a_scenario_may_say_the_parts_of_all_tables_as_far_as_rows_go(tmp_path: Path) -> None:
    more = made(tmp_path, ("kind: tasks", "kind: tasks, parts: 4"))
    assert [part.rows for part in more.tables[0].parts] == [250_000] * 4
    few = made(tmp_path, ("kind: tasks", "kind: tasks, parts: 4"), ("rows: 1_000_000", "rows: 3"),
               ("parts: 2, ", ""), ("1024", "3"))  # fmt: skip
    assert [part.rows for part in few.tables[0].parts] == [1] * 3


def test_the_document_on_queries_shows_what_can_be_run(tmp_path: Path) -> None:
    document = (Path(__file__).parents[3] / "docs" / "describe-queries.md").read_text("utf-8")
    for name, text in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", document, re.S):
        (tmp_path / name).write_text(text, encoding="utf-8")
    own = re.search(r"```yaml\n( +filter:.*?)```", document, re.S)
    assert own
    with (tmp_path / "sales.yaml").open("r+", encoding="utf-8") as file:
        text = file.read().replace("      shops:", f"{own[1]}      shops:", 1)
        file.seek(0)
        file.write(text)
    program = program_of(load_scenario(tmp_path / "scenario.yaml"))
    assert [len(query.stages) for query in program.queries] == [6, 3]
    scenario = (tmp_path / "scenario.yaml").read_text(encoding="utf-8")
    scenario = scenario.replace("sales.yaml", "traced.yaml").replace("articles: 3", "sales: [2]")
    (tmp_path / "traced-scenario.yaml").write_text(scenario, encoding="utf-8")
    traced = program_of(load_scenario(tmp_path / "traced-scenario.yaml"))
    assert traced.classes == ("scan", "probe")
