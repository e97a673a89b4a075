"""How long a plane plays: which horizon counts, what is told of it, what a run too short says."""

from pathlib import Path

import pytest
from refusals import told_by
from small_scenarios import LOOKUP, small_file

from numatwin.inputs import InputError
from numatwin.reports import write_report
from numatwin.sim.run.record import load_record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario, scenario_from_settings

ARRIVALS = "workload.clients={{kind: open, arrival_rate: {}}}"


def small(folder: Path, block: str = "") -> Path:
    path = small_file(folder, LOOKUP)
    path.write_text(path.read_text() + block)
    return path


@pytest.mark.parametrize(
    ("plane", "settings", "played_s"),
    [
        ("flow", [], 1.0),
        ("event", [], 0.02),
        ("event", ["horizon=50 ms"], 0.05),
        ("event", ["horizon=50 ms", "event_horizon=30 ms"], 0.03),
        ("event", ["event_horizon=2 s"], 1.0),
        ("native", [], 3.0),
        ("native", ["horizon=50 ms"], 0.05),
        ("native", ["horizon=50 ms", "native_horizon=2 s"], 2.0),
    ],
)
def test_a_horizon_that_is_set_counts(
    tmp_path: Path, plane: str, settings: list[str], played_s: float
) -> None:
    path = small(tmp_path, "event_horizon: 20 ms\nnative_horizon: 3 s\n")
    scenario = load_scenario(path, plane=plane, settings=settings)
    assert scenario.horizon_s == played_s
    assert scenario_from_settings(scenario.settings).horizon_s == played_s


def test_what_was_not_played_is_told(tmp_path: Path) -> None:
    path = small(tmp_path, "event_horizon: 2 ms\nstatistics: {replications: 2, warm_up: 1 ms}\n")
    told = "runs 2 ms (event_horizon) of the 1 s that the scenario lasts"
    assert told in run_scenario(load_scenario(path, plane="event"), workers=1).warnings
    set_ = load_scenario(path, plane="event", settings=["horizon=2 ms"])
    assert not any("event_horizon" in line for line in run_scenario(set_, workers=1).warnings)


def test_the_place_of_a_horizon_that_is_too_short(tmp_path: Path) -> None:
    """The file's warm-up came first: the setting is at fault."""
    path = small(tmp_path, "statistics: {warm_up: 5 ms}\n")
    assert told_by(load_scenario, path, plane="event", settings=["horizon=2 ms"]) == (
        "--set horizon=2 ms: horizon: nothing is left of it after statistics.warm_up: "
        "found '2 ms', expected more than 5 ms"
    )


def test_nothing_done_is_told_and_explains_nothing(tmp_path: Path) -> None:
    settings = ["horizon=1 ns", "statistics.warm_up=0 s", "statistics.replications=2"]
    scenario = load_scenario(small(tmp_path), plane="event", settings=settings)
    record = run_scenario(scenario, workers=1)
    assert record.throughput == {"lookup": 0.0}
    assert record.interval("throughput", "lookup") is None
    assert record.why == {}
    assert "no operation was done while it was counted" in record.warnings


@pytest.mark.parametrize("rate", ["1e-6/s", "1e-9/s", "7.9e-5/s"])
@pytest.mark.parametrize("plane", ["event", "reference"])
def test_arrivals_too_rare_to_be_counted(tmp_path: Path, plane: str, rate: str) -> None:
    setting = ARRIVALS.format(rate)
    assert told_by(load_scenario, small(tmp_path), plane=plane, settings=[setting]) == (
        f"--set {setting}: clients.arrival_rate: out of the range of plane {plane}: "
        f"found '{rate}', expected at least 8e-05/s, one in 50,000 s for each of 4 workers"
    )


def test_the_rarest_arrivals_that_can_be_counted(tmp_path: Path) -> None:
    """For as long as may be: 2^62 ps are not reached, whatever is drawn."""
    settings = [ARRIVALS.format("8e-5/s"), "horizon=1e6 s", "statistics.warm_up=0 s"]
    scenario = load_scenario(
        small(tmp_path), plane="event", settings=[*settings, "statistics.replications=20"]
    )
    record = run_scenario(scenario, workers=1)
    assert record.throughput["lookup"] == pytest.approx(8e-5, rel=0.2)


@pytest.mark.parametrize("plane", ["event", "native"])
def test_a_pause_too_long_to_be_counted(tmp_path: Path, plane: str) -> None:
    with pytest.raises(InputError, match="found '1e9 s', expected at most 50,000 s"):
        load_scenario(small(tmp_path), plane=plane, settings=["workload.clients.think_time=1e9 s"])


@pytest.mark.parametrize("plane", ["event", "native"])
def test_a_horizon_of_months_is_refused(tmp_path: Path, plane: str) -> None:
    with pytest.raises(InputError, match=rf"horizon: too long for plane {plane}: found '1e\+30 s'"):
        load_scenario(small(tmp_path), plane=plane, settings=["horizon=1e30 s"])
    load_scenario(small(tmp_path), plane="flow", settings=["horizon=1e18 s"])


def test_a_horizon_that_no_record_could_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found '1e\+37 s', expected at most 1e\+18 s"):
        load_scenario(small(tmp_path), plane="flow", settings=["horizon=1e37 s"])
    scenario = load_scenario(small(tmp_path), plane="flow", settings=["horizon=1e18 s"])
    run_scenario(scenario).save(tmp_path / "kept")
    assert load_record(tmp_path / "kept").horizon_s == 1e18


def test_policies_that_would_be_asked_for_ever() -> None:
    with pytest.raises(InputError, match=r"horizon: policies would be asked 2e\+18 times: found"):
        load_scenario("eris-fig13", policy="ma-8", settings=["horizon=1e18 s"])
    load_scenario("eris-fig13", policy="none", settings=["horizon=1e18 s"])


def test_a_long_horizon_is_reported(tmp_path: Path) -> None:
    scenario = load_scenario("eris-fig13", policy="none", settings=["horizon=1e18 s"])
    write_report([run_scenario(scenario)], tmp_path / "report.html")
