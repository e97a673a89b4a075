"""``numatwin crossvalidate``: rows, JSON, exit status, files; synthetic planes but for one run."""

import dataclasses
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import CommandLine, Refused
from known import known
from measured_hosts import figure, measured
from synthetic_planes import NO_MEMORY, SyntheticPlanes, by_round, steady

from numatwin import load_machine
from numatwin.sim.run.scenario import Scenario
from numatwin.topologies.export import machine_yaml
from numatwin.validate.crossvalidate import calibration_set as whole
from numatwin.validate.crossvalidate.session import Session
from numatwin.validate.measure import Result, measure_pass

layout = pytest.importorskip("numatwin.validate.measure.layout")
pytest.importorskip("numatwin.engine_native._engine", reason="the native engine is not built")

SUITE = """\
name: mine
title: Lookups <b>of mine</b>
rounds: 3
settings: {horizon: 50 ms, native_horizon: 50 ms, event_horizon: 2 ms}
runs:
  lookup:
    scenario: host-lookup
    grid: {size.index: [1/3 L2, 1 MiB]}
"""
ROW = {
    **dict.fromkeys(("scenario", "plane", "metric", "set"), str),
    **dict.fromkeys(("measured", "predicted", "relative_error"), float),
    **dict.fromkeys(("measured_interval", "predicted_interval"), list),
}
Planes = Callable[..., SyntheticPlanes]


@pytest.fixture(autouse=True)
def suite(tmp_path: Path) -> None:
    """A suite, and this host as the kernel tells it: nothing has to be measured."""
    (tmp_path / "mine.yaml").write_text(SUITE)
    (tmp_path / "host.yaml").write_text(machine_yaml(layout.host_layout().description))


@pytest.fixture
def planes(monkeypatch: pytest.MonkeyPatch) -> Planes:
    def make(**changes: Any) -> SyntheticPlanes:
        given = {
            "rates": {"native": steady(100.0), "flow": steady(104.0), "event": steady(97.0)},
            "p99_ns": {"native": 1e3, "event": 1.1e3},
            **changes,
        }
        made = SyntheticPlanes(**given)
        monkeypatch.setattr(whole, "run_scenario", made)
        # What facts make of real runs is not what they make of these.
        monkeypatch.setattr(whole, "Session", partial(Session, doubt=lambda record, _: record))
        monkeypatch.setattr("numatwin.validate.measure.noise.OTHERS_MAX", 1e9)
        monkeypatch.setattr("numatwin.validate.measure.noise.STEAL_MAX", 1e9)
        return made

    return make


WORDS = ("crossvalidate", "mine.yaml", "--machine", "host.yaml")


def test_one_json_object(numatwin: CommandLine, planes: Planes) -> None:
    planes()
    before = sorted(Path.cwd().rglob("*"))
    found = numatwin(*WORDS, "--json").json()
    assert sorted(Path.cwd().rglob("*")) == before  # without --out nothing is left behind
    assert {"suite", "rows", "summary", "checks", "holds", "noisy", "failures"} <= set(found)
    assert (found["suite"], found["rounds"], found["holds"]) == ("mine", 3, True)
    assert (found["noisy"], found["noise"]) == (False, [])
    assert len(found["rows"]) == 2 * 3
    for row in found["rows"]:
        for name, kind in ROW.items():
            assert isinstance(row[name], kind), name
        assert row["set"] == "test"
        for name in ("measured", "predicted"):
            low, high = row[f"{name}_interval"]
            assert low <= row[name] <= high
        expected = (row["predicted"] - row["measured"]) / row["measured"]
        assert row["relative_error"] == pytest.approx(expected)
    assert {row["scenario"] for row in found["rows"]} == {"lookup: 1/3 L2", "lookup: 1 MiB"}
    assert [left["what"] for left in found["left_out"]] == ["memory traffic"]


def test_a_table(numatwin: CommandLine, planes: Planes) -> None:
    planes()
    out = numatwin(*WORDS).said()
    assert re.search(r"lookup: 1/3 L2 +throughput.lookup +flow +100/s .* 104/s +\+4\.0%", out)
    p99 = r"lookup: 1 MiB +latency_ns.lookup.p99 +event +1 µs .* 1\.1 µs +\+10%"
    assert re.search(p99, out)
    assert re.search(r"throughput +median error +reached +≤ 5\.0% +3\.5%", out)
    assert re.search("memory traffic +lookup +this host shows no counters", out)


def test_a_missed_aim_is_status_1(numatwin: CommandLine, planes: Planes) -> None:
    rates = {"native": steady(100.0), "flow": steady(130.0), "event": steady(100.0)}
    planes(rates=rates)
    done = numatwin(*WORDS)
    assert (done.status, done.err) == (1, "")
    assert re.search(r"worst error +missed \* +≤ 25% +30\.0%", done.out)
    assert numatwin(*WORDS, "--json").status == 1


def test_a_noisy_host_is_reported_and_judged_by_values(
    numatwin: CommandLine, planes: Planes
) -> None:
    rates = {"native": by_round(100.0, 131.0, 90.0), "flow": steady(130.0), "event": steady(95.0)}
    planes(rates=rates)
    done = numatwin(*WORDS)
    assert done.status == 1
    assert "lie more than 10% apart, at worst 41%" in done.out.replace("\n", " ")
    # Of 100 measured, from 90 to 131, 130 and 95 are predicted: the measured interval holds both.
    assert re.search(r"throughput +median error +missed \* +≤ 5\.0% +17\.5%", done.out)
    assert re.search(r"throughput +rows within 10% +missed \* +≥ 90% +50\.0%", done.out)
    assert re.search(r"throughput +worst error +missed \* +≤ 25% +30\.0%", done.out)


def test_files(numatwin: CommandLine, planes: Planes) -> None:
    planes()
    done = numatwin(*WORDS, "--out", "kept")
    assert done.status == 0
    assert done.out.endswith("Rows: kept/rows.json\nReport: kept/report.html\n")
    kept = sorted(str(p.relative_to("kept")) for p in Path("kept").rglob("*") if p.is_file())
    assert {"machine.yaml", "rows.json", "report.html"} < set(kept)
    for name in ("native-1", "native-2", "native-3", "flow", "event"):
        assert f"records/lookup-1-MiB/{name}/record.json" in kept
    assert json.loads(Path("kept/rows.json").read_text()) == numatwin(*WORDS, "--json").json()
    page = Path("kept/report.html").read_text()
    assert "<b>of mine</b>" not in page
    assert "Lookups &lt;b&gt;of mine&lt;/b&gt;" in page


def test_a_run_that_fails(numatwin: CommandLine, planes: Planes) -> None:
    planes(failing={("native", 3): NO_MEMORY})
    done = numatwin(*WORDS, "--out", "kept")
    assert (done.status, done.err) == (1, "")
    told = "lookup: 1/3 L2 +native +2 +no memory left for the engine: expected"
    assert len(re.findall(told, done.out)) == 1
    rows = json.loads(Path("kept/rows.json").read_text())
    assert len(rows["rows"]) == 6
    assert [failure["round"] for failure in rows["failures"]] == [2]
    assert not rows["holds"]


@pytest.mark.parametrize("json_wanted", [False, True])
def test_interrupted(numatwin: CommandLine, planes: Planes, json_wanted: bool) -> None:
    planes(failing={("native", 4): KeyboardInterrupt()})
    done = numatwin(*WORDS, "--out", "kept", *(["--json"] if json_wanted else []))
    assert done.status == 130
    assert done.err == "numatwin: interrupted; what was finished is kept\n"
    rows = json.loads(Path("kept/rows.json").read_text())
    assert (rows["interrupted"], rows["rounds"], len(rows["rows"])) == (True, 1, 6)
    assert "interrupted" in Path("kept/report.html").read_text()
    if json_wanted:
        assert json.loads(done.out) == rows
    else:
        assert "lookup: 1 MiB" in done.out


def test_interrupted_while_the_host_is_measured(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch, planes: Planes
) -> None:
    """What was finished of it stays in the machine file, where one is asked for."""
    found = measure_pass(quick=True, only=["messages"])
    cut = dataclasses.replace(found, interrupted=True, missing=("walk",))
    monkeypatch.setattr(whole, "measure_pass", lambda **_: cut)
    made = planes()
    done = numatwin("crossvalidate", "mine.yaml", "--out", "kept")
    assert done.status == 130
    assert "What was measured of this host until then: kept/machine.yaml" in done.err
    kept = load_machine(str(Path("kept/machine.yaml"))).description
    assert known(kept.host).parts == ("messages",)
    assert kept.measurements == found.measurements
    assert numatwin("crossvalidate", "mine.yaml").status == 130
    assert made.played == []


def twelve_runs() -> None:
    runs = (f"  r{k}: {{scenario: host-lookup, settings: {{seed: {k}}}}}\n" for k in range(12))
    Path("mine.yaml").write_text(SUITE.partition("  lookup:")[0] + "".join(runs))


def test_figures_of_numpy_are_kept(numatwin: CommandLine, planes: Planes) -> None:
    """A run each, enough for calibrated intervals: NumPy's comparisons are NumPy's."""
    twelve_runs()

    def rate(scenario: Scenario, _: int) -> float:
        return np.float64(100.0 + scenario.seed)

    planes(rates=dict.fromkeys(("native", "flow", "event"), rate))
    assert numatwin(*WORDS, "--out", "kept").status == 0
    kept = json.loads(Path("kept/rows.json").read_text())
    assert {one["kind"]: one["rows"] for one in kept["coverage"]}["throughput"] == 24
    assert Path("kept/report.html").exists()


def test_intervals_as_wide_as_the_noise_are_not_judged(
    numatwin: CommandLine, planes: Planes
) -> None:
    """Real runs are ten times slower than predicted, or ten times faster."""
    twelve_runs()
    rates = dict.fromkeys(("flow", "event"), steady(100.0))
    real = {"native": lambda scenario, _: 100.0 * 10.0 ** (-1) ** scenario.seed}
    planes(rates=rates | real)
    told = "90% intervals of throughput: not judgeable on this host now: to hold nine of ten they"
    assert f"{told} would have the upper end " in numatwin(*WORDS).out


def test_rows_outlive_a_crash(numatwin: CommandLine, planes: Planes) -> None:
    planes(failing={("native", 4): AssertionError("a bug")})
    assert numatwin(*WORDS, "--out", "kept").status == 70
    rows = json.loads(Path("kept/rows.json").read_text())
    assert (rows["interrupted"], rows["rounds"], len(rows["rows"])) == (True, 1, 6)
    assert {len(row["values"]) for row in rows["rows"]} == {1, 2}


def passes(monkeypatch: pytest.MonkeyPatch, *latencies_ns: float) -> None:
    """The host measured in passes that find these latencies of its memory."""
    found = iter(latencies_ns)
    home = layout.host_layout().homes[0].id

    def one(**_: object) -> Result:
        figures = [figure("memory.latency", next(found) * 1e-9, "time", node=home, home=home)]
        return dataclasses.replace(measured(figures), layout=layout.host_layout())

    monkeypatch.setattr(whole, "measure_pass", one)


def by_latency(scenario: Scenario, _: int) -> float:
    return round(float(scenario.machine.latency_ns[0, 0]), 6)


def test_the_host_is_measured_in_passes(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch, planes: Planes
) -> None:
    passes(monkeypatch, 90.0, 140.0, 100.0)
    planes(rates={"native": steady(100.0), "flow": by_latency, "event": by_latency})
    done = numatwin("crossvalidate", "mine.yaml", "--out", "kept")
    assert done.status == 0
    rows = json.loads(Path("kept/rows.json").read_text())
    flow = [row for row in rows["rows"] if (row["plane"], row["set"]) == ("flow", "test")]
    assert [row["predicted"] for row in flow] == [100.0, 100.0]
    kept = load_machine("kept/machine.yaml")
    assert kept.latency_ns[0, 0] == pytest.approx(100.0)
    assert known(kept.description.host).passes == 3
    (node,) = kept.description.node_types.values()
    latency = known(node.memory.latency)
    assert (latency.low, latency.high) == (90e-9, 140e-9)  # the quartiles of three passes


def test_interrupted_before_all_passes_are_used(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch, planes: Planes
) -> None:
    """Rows and machine file are of the first pass, both."""
    passes(monkeypatch, 90.0, 140.0, 100.0)
    planes(
        rates={"native": steady(100.0), "flow": by_latency, "event": by_latency},
        failing={("native", 5): KeyboardInterrupt()},
    )
    assert numatwin("crossvalidate", "mine.yaml", "--out", "kept").status == 130
    rows = json.loads(Path("kept/rows.json").read_text())["rows"]
    predicted = {row["predicted"] for row in rows if (row["plane"], row["set"]) == ("flow", "test")}
    assert predicted == {90.0}
    assert load_machine("kept/machine.yaml").latency_ns[0, 0] == pytest.approx(90.0)


def test_what_would_run(numatwin: CommandLine, planes: Planes) -> None:
    made = planes()
    done = numatwin(*WORDS, "--list")
    assert re.search(r"lookup: 1 MiB +host-lookup +flow, event +1 MiB +50 ms", done.out)
    assert done.out.endswith("2 cases, each 3 times for real\n")
    listed = numatwin(*WORDS, "--list", "--quick", "--json").json()
    assert (listed["rounds"], len(listed["cases"])) == (2, 2)
    assert made.played == []


def test_refused_before_anything_runs(refused: Refused, planes: Planes) -> None:
    made = planes()
    assert "unknown suite: found 'nothing'" in refused("crossvalidate", "nothing")
    assert "No such file" in refused("crossvalidate", "none/mine.yaml")
    assert "unknown machine" in refused("crossvalidate", "mine.yaml", "--machine", "nothing")
    told = refused("crossvalidate", "mine.yaml", "--machine", "amd-8n-ht")
    assert "machine 'amd-8n-ht' has 64 hardware threads, and this host may use" in told
    assert "cannot be written" in refused(*WORDS, "--out", "mine.yaml/kept")
    assert made.played == []


def test_a_suite_of_which_nothing_can_run_here(numatwin: CommandLine, planes: Planes) -> None:
    made = planes()
    Path("rsi.yaml").write_text("name: rsi\nruns:\n  rsi: {scenario: nam-fig6-rsi}\n")
    done = numatwin("crossvalidate", "rsi.yaml", "--machine", "host.yaml")
    assert (done.status, done.out) == (2, "")
    assert "rsi.yaml: no run of the suite can run here: " in done.err
    assert made.played == []


TINY = """\
name: tiny
rounds: 1
settings: {horizon: 200 ms, native_horizon: 200 ms, event_horizon: 1 ms, statistics.replications: 2}
runs:
  lookup: {scenario: host-lookup, settings: {size.index: 1 MiB}}
"""


def test_for_real(numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host measured in some parts, in less memory than its last cache may hold; engine and
    planes as they are."""
    host = layout.host_layout()
    nodes = tuple(dataclasses.replace(node, last_cache_bytes=8 << 20) for node in host.nodes)
    small = dataclasses.replace(host, nodes=nodes, caches=host.caches[:-1])
    monkeypatch.setattr("numatwin.validate.measure.session.host_layout", lambda: small)
    some = partial(measure_pass, only=["latency", "routing"])
    monkeypatch.setattr(whole, "measure_pass", some)
    Path("tiny.yaml").write_text(TINY)
    done = numatwin("crossvalidate", "tiny.yaml", "--quick", "--out", "kept", "--json")
    assert done.status in (0, 1), done.err  # how far off it is, is no matter here
    found = json.loads(done.out)
    test = [row for row in found["rows"] if row["set"] == "test"]
    assert {(row["plane"], row["metric"]) for row in test} >= {
        ("flow", "throughput.lookup"),
        ("event", "throughput.lookup"),
    }
    # Where the host is busy, an engine may do nothing for a while.
    bad = [row for row in found["rows"] if row["measured"] < 0 or row["predicted"] <= 0]
    assert bad == []
    groups = {row["group"] for row in found["rows"] if row["set"] == "calibration"}
    assert {"latency", "routing"} <= groups
    assert found["host"]["quick"]
    assert done.status == (0 if found["holds"] else 1)
