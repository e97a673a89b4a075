"""Suite files: what they may say, and the one line about what they may not."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.validate.metrics import BIN_HALF, RECOVERIES, Metric
from numatwin.validate.suite import LoadedCheck, load_suite

CHECK = """\
name: mine
checks:
  one:
    scenario: eris-fig8-amd
    metric: throughput.lookup
"""
LATENCY = CHECK.replace("throughput.lookup", "latency_ns.lookup.p99") + "    plane: event\n"


def suite_file(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def loaded(folder: Path, text: str) -> LoadedCheck:
    (check,) = load_suite(suite_file(folder, text)).checks
    return check


def test_what_a_check_is_by_default(tmp_path: Path) -> None:
    check = loaded(tmp_path, CHECK)
    assert (check.name, check.kind, check.tolerance, check.line) == ("one", "baseline", 0.01, 3)
    assert check.higher_is_better
    assert check.scenario.plane == "flow"
    suite = load_suite(str(tmp_path / "mine.yaml"))
    assert suite.baseline_path == tmp_path / "mine.baseline.json"


def test_bounds_are_meant_as_they_stand(tmp_path: Path) -> None:
    check = loaded(tmp_path, CHECK + "    at_least: 500 M/s\n")
    assert (check.kind, check.bound, check.tolerance) == ("bound", 500e6, 0.0)
    assert check.higher_is_better
    check = loaded(tmp_path, LATENCY + "    at_most: 2 ms\n")
    assert (check.bound, check.higher_is_better) == (2e6, False)
    check = loaded(tmp_path, CHECK + "    at_most: 500 M/s\n    tolerance: 0.1\n")
    assert (check.higher_is_better, check.tolerance) == (False, 0.1)


def test_another_alternative_keeps_what_it_does_not_say(tmp_path: Path) -> None:
    text = CHECK + (
        "    policy: ma-8\n    settings: {horizon: 3 s, system.buffer_commands: 64}\n"
        "    against: {policy: none, settings: {system.buffer_commands: 32}}\n"
    )
    check = loaded(tmp_path, text)
    assert check.kind == "against"
    assert check.other is not None
    assert isinstance(check.scenario, Scenario)
    assert (check.scenario.policy_name, check.other.policy_name) == ("ma-8", "none")
    assert check.scenario.horizon_s == check.other.horizon_s == 3.0
    systems = [one.settings["system"]["buffer_commands"] for one in (check.scenario, check.other)]
    assert systems == [64, 32]
    assert check.scenario.seed == check.other.seed  # the same draws on both sides


def test_paths_are_relative_to_the_suite(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("extends: eris-fig8-amd\nname: my\nseed: 7\n")
    (tmp_path / "my.py").write_text(
        "from numatwin.sim.systems.eris.balancing import OneShot\nclass Mine(OneShot): pass\n"
    )
    text = CHECK.replace("eris-fig8-amd", "./my.yaml") + "    policy: my.py:Mine\n"
    check = loaded(tmp_path, text)
    assert check.scenario.name == "my"
    assert check.scenario.policy_name.endswith("Mine")


def test_a_seed_for_all(tmp_path: Path) -> None:
    suite = load_suite(suite_file(tmp_path, CHECK), seed=5)
    assert [check.scenario.seed for check in suite.checks] == [5]


def test_chosen_checks_count_as_all(tmp_path: Path) -> None:
    """A verdict does not depend on which others are run."""
    text = CHECK + "  two:\n    scenario: eris-fig9\n    metric: bandwidth_Bps.memory\n"
    suite = load_suite(suite_file(tmp_path, text), only=["two"])
    assert (suite.size, [check.name for check in suite.checks]) == (2, ["two"])


BAD = {
    "": (1, "empty file"),
    "name: mine\nchecks: {}\n": (2, "checks"),
    "name: mine\nchecks: [one]\n": (2, "checks"),
    "name: mine\nchekcs: {}\n": (2, "expected 'checks'"),
    CHECK.replace("metric", "metrik"): (5, "expected 'metric'"),
    CHECK.replace("eris-fig8-amd", "eris-fig8-amdd"): (4, "eris-fig8-amd"),
    CHECK.replace("eris-fig8-amd", "./none.yaml"): (4, "none.yaml"),
    CHECK + "    metrik: energy_J\n": (6, "metrik"),
    CHECK.replace("throughput.lookup", "throughput"): (5, "throughput.OPERATION"),
    CHECK.replace("throughput.lookup", "throughput.lokup"): (5, "lookup"),
    CHECK.replace("throughput.lookup", "latency_ns.lookup.p98"): (5, "latency_ns.lookup.p98"),
    CHECK.replace("throughput.lookup", "latency_ns.lookup.p99"): (5, "plane event"),
    LATENCY.replace("latency_ns.lookup.p99", "recovery.lookup.depth"): (5, "plane flow"),
    CHECK + "    plane: fast\n": (6, "flow or event or reference"),
    CHECK + "    plane: native\n": (6, "flow or event or reference"),
    CHECK + "    policy: ma-x\n": (6, "ma-x"),
    CHECK + "    policy: none.py:Mine\n": (6, "none.py"),
    CHECK + "    machine: amd\n": (6, "'amd'"),
    CHECK + "    workload: nothing\n": (6, "nothing"),
    CHECK + "    settings: {system.bufer_commands: 5}\n": (6, "bufer_commands"),
    CHECK + "    settings: {system.buffer_commands: 0}\n": (6, "0"),
    CHECK + "    settings: {system.buffer_commands: [5]}\n": (6, "settings"),
    CHECK + "    scale: 2\n": (6, "2"),
    CHECK + "    tolerance: -0.1\n": (6, "-0.1"),
    CHECK + "    tolerance: 1\n": (6, "below 1"),
    CHECK + "    tolerance: 1%\n": (6, "1%"),
    LATENCY + "    tolerance: 0.001\n": (7, f"at least {2 * BIN_HALF:g}"),
    CHECK + "    better: more\n": (6, "more"),
    CHECK + "    at_least: 5\n": (6, "a number with its unit"),
    CHECK + "    at_least: true\n": (6, "at_least"),
    CHECK + "    at_least: 5 ms\n": (6, "5 ms"),
    CHECK + "    at_least: -5 M/s\n": (6, "-5 M/s"),
    CHECK.replace("throughput.lookup", "energy_J") + "    at_most: .nan\n": (6, "from 0 on"),
    CHECK.replace("throughput.lookup", "energy_J") + "    at_most: 5 J\n": (6, "a number"),
    CHECK + "    at_least: 5 M/s\n    at_most: 4 M/s\n": (7, "conflicts with at_least"),
    CHECK + "    at_least: 5 M/s\n    against: {policy: none}\n": (6, "such as 1.2 ×"),
    CHECK + "    at_least: 0 ×\n    against: {policy: none}\n": (6, "such as 1.2 ×"),
    CHECK + "    at_least: 1.2 ×\n": (6, "Expected 'against' too"),
    CHECK + "    at_least: 5 M/s\n    better: lower\n": (7, "expected higher"),
    CHECK + "    against: {polcy: none}\n": (6, "polcy"),
    CHECK + "    against: {policy: ma-y}\n": (6, "ma-y"),
    CHECK + "    against: {policy: none}\n": (6, "it is what is checked itself"),
    "name: mine\nreplications: 1\n" + CHECK.removeprefix("name: mine\n"): (2, "replications"),
    "name: mine\nchecks:\n  one: {scenario: a\n": (4, ""),
}


@pytest.mark.parametrize(("text", "where"), BAD.items(), ids=range(len(BAD)))
def test_what_is_wrong_is_told_where_it_stands(
    text: str, where: tuple[int, str], tmp_path: Path
) -> None:
    line, token = where
    path = suite_file(tmp_path, text)
    told = told_by(load_suite, path)
    assert told.startswith(f"{path}:{line}:"), told
    assert token in told, told


def test_a_fault_of_the_scenario_is_told_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("extends: eris-fig8-amd\nname: my\nseed: x\n")
    path = suite_file(tmp_path, CHECK.replace("eris-fig8-amd", "./my.yaml"))
    assert f"{tmp_path}/my.yaml:3:" in told_by(load_suite, path)


@pytest.mark.parametrize("name", ["polices", "policies.yml", "no/such.yaml"])
def test_unknown_suites(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"unknown suite.*policies|cannot be read|no such file"):
        load_suite(name)


def test_an_unknown_check(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown check: found 'on', expected 'one'"):
        load_suite(suite_file(tmp_path, CHECK), only=["on"])


def test_the_length_and_the_depth_of_drops() -> None:
    """Two workers; all accesses go from the first to the last quarter of the keys, or back.

    One-Shot takes loads to lie evenly on the keys of a partition, and halves them: the hot quarter
    has 1 worker, 1 worker, then an eighth and 7 eighths of it each, and is halved exactly 3 periods
    after the change; here the first change comes when half of a period is over. One worker of two
    has all the work in that time, but the other one goes on making commands.
    """
    scenario = load_scenario(
        "eris-fig13-small",
        machine="zen5-2c",
        workload="lookup-hot-ends",
        policy="one-shot",
        settings=[
            "policies.balancing.period=40 ms",
            "workload.phases.0.start=300 ms",
            "horizon=1520 ms",
        ],
    )
    record = run_scenario(scenario)
    found = {
        name: Metric.parsed(f"recovery.lookup.{name}").of_record(record) for name in RECOVERIES
    }
    assert [found["typical_time"], found["time"]] == pytest.approx([0.12, 0.12])
    assert 0.2 < found["typical_depth"] <= found["depth"] < 0.5


@settings(deadline=None)
@given(st.lists(st.sampled_from(["throughput", "latency_ns", "p99", "lookup", "", "energy_J"])))
def test_a_metric_is_known_or_refused(parts: list[str]) -> None:
    text = ".".join(parts)
    with contextlib.suppress(InputError):
        metric = Metric.parsed(text)
        assert str(metric) == text
        assert Metric.parsed(str(metric)) == metric
        assert len(parts) <= 3
