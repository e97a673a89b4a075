"""Which record is faster, where facts of the machine are doubtful."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from command_line import CommandLine

from numatwin.cli.decisions import decision_lines, decisions
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario


@pytest.fixture(scope="module")
def record() -> Record:
    return run_scenario(load_scenario("eris-fig8-intel"))


def with_corners(record: Record, value: float, *corners: float) -> Record:
    return replace(
        record,
        throughput={"lookup": value},
        fact_range={
            "facts": 3,
            "throughput": {"lookup": [min(corners), max(corners)]},
            "corners": {f"corner {k}": {"lookup": one} for k, one in enumerate(corners)},
        },
    )


def test_with_the_same_facts_at_the_same_ends(record: Record) -> None:
    """Both vary by half, but one stays the faster."""
    first, other = with_corners(record, 100, 50, 150), with_corners(record, 80, 45, 110)
    (row,) = decisions([first, other])
    assert row["holds"]
    assert row["range"] == pytest.approx([110 / 150, 0.9])
    (line,) = decision_lines([row], ["A", "B"])
    assert line.startswith("lookup, B to A: ×0.80 [×0.73, ×0.90]: A is faster wherever")


def test_a_decision_that_hangs_on_doubtful_facts(record: Record) -> None:
    first, other = with_corners(record, 100, 50, 150), with_corners(record, 80, 60, 110)
    (row,) = decisions([first, other])
    assert not row["holds"]
    assert "depends on uncertain facts" in decision_lines([row], ["A", "B"])[0]


def test_what_differs_by_next_to_nothing_decides_nothing(record: Record) -> None:
    first, other = with_corners(record, 100, 50, 150), with_corners(record, 100.1, 50.1, 150)
    (row,) = decisions([first, other])
    assert not row["holds"]
    assert "[×1.00, ×1.00]: no difference, wherever" in decision_lines([row], ["A", "B"])[0]


def test_two_machines_are_each_off_by_themselves(record: Record) -> None:
    first, other = with_corners(record, 100, 50, 150), with_corners(record, 80, 45, 110)
    other = replace(other, machine={**other.machine, "name": "another"})
    (row,) = decisions([first, other])
    assert row["range"] == pytest.approx([45 / 150, 110 / 50])
    assert not row["holds"]
    (row,) = decisions([record, other])
    assert row["holds"]


def test_without_doubtful_facts_there_is_nothing_to_say(record: Record) -> None:
    assert decisions([record, record]) == []


def test_first_hour(numatwin: CommandLine) -> None:
    """A tree is imported, two placements are run, and compared."""
    Path("server.txt").write_text(
        "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 65536 MB\n"
        "node 1 cpus: 4 5 6 7\nnode 1 size: 65536 MB\n"
        "node distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n"
    )
    done = numatwin("machine", "import", "server.txt", "--out", "mine.yaml")
    assert "Still unknown: which processor it is (set --processor)" in done.out
    for scenario, out in (("eris-fig8-intel", "a"), ("eris-fig8-intel-shared", "b")):
        done = numatwin("run", scenario, "--machine", "mine.yaml", "--out", out)
        assert "uncertain " in done.out.split("policy")[0]
        assert "facts of the machine may be off" in done.out
    shown = numatwin("compare", "a", "b").out
    assert "lookup, B to A: ×" in shown
    (row,) = numatwin("compare", "a", "b", "--json").json()["decisions"]
    assert row["range"][0] <= row["ratio"] <= row["range"][1]
