"""What a scenario says about its statistics: defaults, what is kept, what is refused and where."""

from pathlib import Path
from typing import Any

import pytest
from refusals import told_by
from small_scenarios import LOOKUP, small_file

from numatwin.inputs import InputError
from numatwin.sim.run.scenario import Scenario, load_scenario, scenario_from_settings
from numatwin.sim.run.scenario_description import Statistics


def loaded(folder: Path, block: str = "", **options: Any) -> Scenario:
    """A scenario of 1 s whose file ends in that block."""
    path = small_file(folder, LOOKUP)
    path.write_text(path.read_text() + block)
    return load_scenario(path, **options)


def refused(folder: Path, block: str = "", **options: Any) -> str:
    told = told_by(loaded, folder, block, **options)
    return told.removeprefix(f"{folder / 'small.yaml'}:")


def test_defaults(tmp_path: Path) -> None:
    plan = loaded(tmp_path).statistics
    assert plan == Statistics()
    assert (plan.replications, plan.confidence, plan.half_width) == (5, 0.95, None)
    assert plan.warm_up_s is None


def test_all_of_it(tmp_path: Path) -> None:
    plan = loaded(
        tmp_path,
        "statistics: {replications: 3, confidence: 0.99, half_width: 0.02, "
        "replications_max: 30, warm_up: 20 ms}\n",
    ).statistics
    assert (plan.replications, plan.confidence, plan.half_width) == (3, 0.99, 0.02)
    assert (plan.replications_max, plan.warm_up_s) == (30, 0.02)


@pytest.mark.parametrize("warm_up", ["auto", "20 ms", "0 ns", "1234567.891 ns"])
def test_settings_make_it_again(tmp_path: Path, warm_up: str) -> None:
    scenario = loaded(tmp_path, f"statistics: {{replications: 7, warm_up: {warm_up}}}\n")
    again = scenario_from_settings(scenario.settings)
    assert again.statistics == scenario.statistics
    assert again.hash == scenario.hash


def test_the_option_stands_in_for_the_file(tmp_path: Path) -> None:
    block = "statistics: {replications: 7, confidence: 0.9}\n"
    plan = loaded(tmp_path, block, replications=2).statistics
    assert (plan.replications, plan.confidence) == (2, 0.9)
    plan = loaded(tmp_path, replications=2, settings=["statistics.warm_up=5 ms"]).statistics
    assert (plan.replications, plan.warm_up_s) == (2, 0.005)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("replications=0", "found '0', expected at least 1"),
        ("replications=2.5", "found '2.5', expected a whole number"),
        ("replications=true", "found 'True', expected a whole number"),
        ("confidence=0", "found '0', expected above 0"),
        ("confidence=1", "found '1', expected below 1"),
        ("confidence=95", "found '95', expected below 1"),
        ("confidence=.nan", "expected"),
        ("half_width=0", "found '0', expected above 0"),
        ("half_width=-0.01", "found '-0.01', expected above 0"),
        ("half_width=5%", "found '5%', expected a number"),
        ("replications_max=0", "found '0', expected at least 1"),
        ("warm_up=2 s", "nothing is left of horizon: found '2 s', expected less than 1 s"),
        ("warm_up=1 s", "nothing is left of horizon"),
        ("warm_up=-1 ms", "expected a time of at least 0, or auto"),
        ("warm_up=5", "a bare number has no unit"),
        ("warm_up=soon", "expected a time with its unit, such as '129 ns', or auto"),
        ("warmup=5 ms", "'warm_up'"),
    ],
)
def test_refused(tmp_path: Path, setting: str, told: str) -> None:
    found = refused(tmp_path, settings=[f"statistics.{setting}"])
    assert found.startswith(f"--set statistics.{setting}: ")
    assert told in found


def test_horizons_that_cannot_be_counted(tmp_path: Path) -> None:
    """In picoseconds and 64 bits; rates need no count, and what is not played is no matter."""
    long = "horizon=1000001 s"
    load_scenario(small_file(tmp_path, LOOKUP), settings=[long])
    load_scenario(small_file(tmp_path, LOOKUP), plane="event", settings=[long, "event_horizon=1 s"])
    with pytest.raises(InputError, match="found '1e\\+06 s', expected at most 1,000,000 s"):
        load_scenario(small_file(tmp_path, LOOKUP), plane="event", settings=[long])


def test_refused_in_a_file(tmp_path: Path) -> None:
    """With its line and column."""
    lines = len(small_file(tmp_path, LOOKUP).read_text().splitlines())
    found = refused(tmp_path, "statistics:\n  confidence: 1.5\n")
    assert found == f"{lines + 2}:15: statistics.confidence: found '1.5', expected below 1"
    found = refused(tmp_path, "statistics:\n  warm_up: 20 s\n")
    assert found.startswith(f"{lines + 2}:12: statistics.warm_up: nothing is left of horizon")


def test_targets_that_make_no_sense_together(tmp_path: Path) -> None:
    block = "statistics: {half_width: 0.01, replications: 1}\n"
    assert "replications: one replication has no half_width" in refused(tmp_path, block)
    block = "statistics: {half_width: 0.01, replications: 10, replications_max: 9}\n"
    assert "replications_max: found '9', expected at least 10, as replications" in refused(
        tmp_path, block
    )
    assert loaded(tmp_path, "statistics: {replications: 10, replications_max: 9}\n")


def test_no_mapping(tmp_path: Path) -> None:
    assert "statistics: expected a mapping" in refused(tmp_path, "statistics: 5\n", replications=3)
