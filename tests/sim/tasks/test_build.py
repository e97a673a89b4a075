"""From a scenario to a Program: tables in parts, queries as stages, what an entry demands."""

from pathlib import Path

import pytest

from numatwin.sim.run.scenario import load_scenario
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
    # 2.5 instructions a row, 5 a match, 1.7 a cycle of 0.4 ns.
    assert stage.cost.instructions_s == pytest.approx([(2.5 + 0.16 * 5) / 1.7 * 0.4e-9] * 4)
    assert stage.cost.misses_at_once == pytest.approx([16.0] * 4)
    assert stage.entries.count(500_000, 1, 0) == 500_000


def test_tables_have_their_parts_round_robin_over_nodes(tmp_path: Path) -> None:
    (table,) = made(tmp_path).tables
    assert table.parts == (Part(500_000, 0), Part(500_000, 1))
    assert (table.bytes_per_row, table.fixed_bytes) == (1.25, 8 * 1024)


def test_workers_are_one_a_core_by_default(tmp_path: Path) -> None:
    assert made(tmp_path).scheduling.workers.tolist() == [15] * 4
    more = made(tmp_path, ("kind: tasks", "kind: tasks, nodes: [1, 2], threads: hardware-threads"))
    assert more.scheduling.workers.tolist() == [0, 30, 30, 0]
