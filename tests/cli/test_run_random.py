"""``numatwin run`` and ``compare`` on a plane that draws at random: what they print and keep.

A queue whose answers are known stands in for the event plane.
"""

import json
import math
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import CommandLine, Refused
from small_scenarios import LOOKUP, small_file
from toy_plane import Queue

from numatwin.sim.run import replications, scenario
from numatwin.sim.run import runner as run
from numatwin.sim.run.comparison import has_intervals
from numatwin.sim.run.record import load_record

ARGUMENTS = ("small.yaml", "--on", "event", "--set", "horizon=20 ms")


@pytest.fixture(autouse=True)
def queue(numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Queue:
    """The event plane is a queue; a scenario lies in the current folder."""
    toy = Queue()
    monkeypatch.setattr(run, "maker_of", lambda scenario: toy)
    monkeypatch.setattr(replications, "PARALLEL_MIN_S", math.inf)  # on a slow host too
    small_file(Path(), LOOKUP)
    return toy


def test_every_figure_has_its_interval(numatwin: CommandLine) -> None:
    found = numatwin("run", *ARGUMENTS, "--json").json()
    assert found["replications"] == 5
    assert found["warm_up_s"] >= 0
    sure = found["confidence"]
    assert sure["level"] == 0.95
    rate, (low, high) = found["throughput"]["lookup"], sure["throughput"]["lookup"]
    assert low < rate < high
    assert sure["bandwidth_Bps"]["memory"] == pytest.approx([64 * low, 64 * high])
    assert set(found["latency_ns"]["lookup"]) == {"mean", "p50", "p99", "p999"}
    for name, value in found["latency_ns"]["lookup"].items():
        low, high = sure["latency_ns"]["lookup"][name]
        assert low <= value <= high
    assert sure["resolution_ns"]["lookup"]["p99"] == pytest.approx(9_200 * 0.01 / 2, rel=0.3)
    assert len(found["replicates"]["throughput"]["lookup"]) == 5
    assert found["events"] > 50_000
    assert found["provenance"]["events_per_s"] > 0


def test_the_table_tells_all_of_it(numatwin: CommandLine) -> None:
    out = numatwin("run", *ARGUMENTS, "--replications", "3").out
    head = {line.split("  ")[0].strip(): line for line in out.splitlines()}
    runs = r"3, (the first .* [mµ]s|nothing) left out; intervals are 95% *$"
    assert re.search(runs, head["replications"])
    assert re.search(r"events +\d.* k, .*/s on each processor *$", head["events"])
    number = r"\d[\d.]* (k/s|µs)"
    for figure in ("throughput", "mean latency", "p50", "p99", "p99.9"):
        assert re.search(rf" {figure} +{number} +{number} to {number}", out), (figure, out)
    assert re.search(r"memory traffic +[\d.]+ MB/s, with 90% from [\d.]+ MB/s to [\d.]+ MB/s", out)
    assert re.search(r"server +[\d.]+% \[[\d.]+%, [\d.]+%\]", out)
    folder = out.rsplit("Record: ")[1].splitlines()[0]
    assert folder.startswith("out/small-on-event-replications-3-")
    assert load_record(folder).replications == 3


def test_one_replication_says_what_it_does_not_know(numatwin: CommandLine) -> None:
    out = numatwin("run", *ARGUMENTS, "--replications", "1").out
    assert re.search(r" p99 +\d.* µs +unknown; its bin alone ±\d+.* ns\n", out)


def test_fewer_is_told_where_more_was_asked_for(numatwin: CommandLine) -> None:
    words = ("--set", "statistics.half_width=0.0001", "--set", "statistics.replications_max=6")
    out = numatwin("run", *ARGUMENTS, *words).out
    assert "after 6 replications, not to the ±0.01% asked for" in out


def test_the_option_is_kept_with_the_record(numatwin: CommandLine) -> None:
    assert numatwin("run", *ARGUMENTS, "--replications", "2", "--out", "two").status == 0
    settings = json.loads(Path("two/record.json").read_text())["settings"]
    assert settings["statistics"]["replications"] == 2
    again = scenario.scenario_from_settings(settings)
    assert run.run_scenario(again).replicates == load_record("two").replicates


def test_ctrl_c_keeps_what_was_finished(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch, queue: Queue
) -> None:
    monkeypatch.setattr(run, "maker_of", lambda scenario: replace(queue, interrupted_in=3))
    done = numatwin("run", *ARGUMENTS, "--out", "kept")
    assert done.status == 130
    assert done.err == "numatwin: interrupted; what was finished is kept\n"
    assert "Note: interrupted: 2 of 5 replications" in done.out
    assert load_record("kept").replications == 2
    assert Path("kept/report.html").exists()


def test_ctrl_c_at_once_keeps_nothing(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch, queue: Queue
) -> None:
    monkeypatch.setattr(run, "maker_of", lambda scenario: replace(queue, interrupted_in=1))
    done = numatwin("run", *ARGUMENTS, "--out", "kept")
    assert (done.status, done.out) == (130, "")
    assert not Path("kept").exists()


def test_alternatives_side_by_side(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch, queue: Queue
) -> None:
    """A faster server answers sooner; that it does no more is seen too, as all work is done."""
    words = (*ARGUMENTS, "--set", "statistics.warm_up=1 ms")
    numatwin("run", *words, "--out", "slow")
    faster = replace(queue, services_per_s=1.1e6)
    monkeypatch.setattr(run, "maker_of", lambda scenario: faster)
    numatwin("run", *words, "--out", "fast")
    found = numatwin("compare", "slow", "fast", "--json").json()
    assert [record["replications"] for record in found["records"]] == [5, 5]
    rows = {row["metric"]: row["differences"][1] for row in found["rows"]}
    mean = rows["latency_ns.lookup.mean"]
    assert mean["paired"] is True
    assert mean["interval"][0] <= 1e9 / 6e5 - 1e9 / 5e5 <= mean["interval"][1] < 0
    done = rows["throughput.lookup"]["interval"]
    assert done[0] <= 0 <= done[1]
    out = numatwin("compare", "slow", "fast").out
    assert "no difference within ±0.0" in out
    assert "B: compared pair by pair with A's replications" in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--replications", "0"], "--replications"),
        (["--set", "statistics.replications=0"], "expected at least 1"),
        (["--set", "statistics.warm_up=20 ms"], "found '20 ms', expected less than 20 ms"),
        (["--set", "statistics.confidence=1"], "expected below 1"),
        (["--set", "statistics.half_width=-1"], "expected above 0"),
    ],
)
def test_refused(refused: Refused, words: list[str], text: str) -> None:
    assert text in refused("run", *ARGUMENTS, *words)


def test_what_has_not_settled_has_no_interval(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue that grows for ever: its latency is whatever the horizon makes of it. The command
    that is printed runs it for longer; nothing is claimed of how two such runs differ, and no
    replications are added for a precision that says nothing."""
    monkeypatch.setattr(run, "maker_of", lambda scenario: Queue(arrivals_per_s=1.5e6))
    precise = ("--set", "statistics.half_width=0.01")
    asked = ("run", "small.yaml", "--on", "event", "--set", "horizon=2 ms", *precise)
    shown = numatwin(*asked, "--out", "a").out
    record = load_record(Path("a"))
    assert record.replications == 5
    assert not has_intervals(record)
    assert not record.uncertainty
    assert "interval" not in shown.replace("figures have no intervals", "")
    assert "uncertain " not in shown
    longer = shlex.split(shown.partition("For long enough to settle: ")[2].splitlines()[0])
    assert longer[-2:] == ["--set", "horizon=20 ms"]
    assert numatwin(*longer[1:], "--json").json()["horizon_s"] == pytest.approx(0.02)
    other = numatwin(*asked, "--seed", "7", "--out", "b", "--json").json()
    assert other["confidence"]["throughput"] == {"lookup": None}
    compared = numatwin("compare", "a", "b").out
    assert "×" not in compared
    assert "faster" not in compared
    assert "does not settle" in compared
    rows = numatwin("compare", "a", "b", "--json").json()["rows"]
    assert all(row["ratios"] == [None, None] for row in rows)
    numatwin("report", "a", "b", "--out", "page.html")
    assert "Which does most is open" in Path("page.html").read_text()
    assert "too short to settle" in (Path("a") / "report.html").read_text()
