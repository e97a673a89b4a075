"""Long work is announced before it begins; what would take over a month is refused."""

from pathlib import Path

import pytest
from command_line import CommandLine, Refused

from numatwin.cli.long_work import forecast, long_time


@pytest.fixture(autouse=True)
def no_forecasts() -> None:
    """They are what is tested here."""


HOURS = ("sweep", "nam-fig6-rsi", "--on", "event", "--set", "system.clients=1,2,3,4")
STUDY = """\
name: long
scenario: nam-fig6-rsi
set: {statistics.replications: 1}
factors:
  system.clients: [1, 2, 3, 4]
"""


def test_a_sweep_says_how_long_it_takes(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    each_s = iter([3_600.0, 7_200.0, 10_800.0])
    monkeypatch.setattr("numatwin.sim.run.expected_work.expected_cpu_s", lambda _: next(each_s))
    done = numatwin(*HOURS, "--jobs", "2", "--replications", "1")
    assert done.status == 0
    assert done.err == (
        "numatwin: this takes about 4 h: 4 runs, on average 2 h each (a shorter horizon, fewer "
        "replications or fewer points change that)\n"
    )


def test_a_study_says_it_of_what_is_left(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("long.yaml").write_text(STUDY, encoding="utf-8")
    monkeypatch.setattr("numatwin.sim.run.expected_work.expected_cpu_s", lambda _: 120.0)
    run = ("study", "run", "long.yaml", "--jobs", "1")
    assert "about 4 min: 2 runs" in numatwin(*run, "--limit", "2").err
    monkeypatch.setattr("numatwin.sim.run.expected_work.expected_cpu_s", lambda _: 1_200.0)
    assert "about 40 min: 2 runs" in numatwin(*run).err
    assert numatwin(*run).err == ""


def test_what_cannot_end_is_refused(refused: Refused) -> None:
    horizon = ("--set", "horizon=1e6 s", "--set", "event_horizon=1e6 s")
    ever = (*horizon, "--replications", "1000")  # years on any host
    told = refused(*HOURS, *ever)
    assert "this would take about" in told
    assert "days: 4 runs, on average" in told
    assert "expected at most 30 days" in told
    told = refused("run", "nam-fig6-rsi", "--on", "event", *ever)
    assert "this would take about" in told
    assert not Path("out").exists()


def test_off_a_terminal_long_work_is_forecast(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([0.0, 5.0, 20.0, 25.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    tell = forecast("simulating")
    for fraction in (0.01, 0.02, 0.03):
        tell(fraction)
    assert capsys.readouterr().err == "numatwin: simulating: 2.0% done, about 16 min to go\n"


@pytest.mark.parametrize(
    ("time_s", "text"), [(0.25, "0.25 s"), (90.0, "90 s"), (7_200.0, "2 h"), (3e5, "3 days")]
)
def test_times_in_words(time_s: float, text: str) -> None:
    assert long_time(time_s) == text
