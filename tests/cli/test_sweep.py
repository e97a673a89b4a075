"""``numatwin sweep``: grids, table and curve, JSON and CSV, pictures, bad input."""

import csv
import io
import re
from pathlib import Path

import pytest
from command_line import CommandLine, Refused

from numatwin import sweep
from numatwin.sim.studies.results import Response

SWEEP = ("sweep", "eris-fig5", "--set")


def test_rows_are_those_of_runs(numatwin: CommandLine) -> None:
    found = numatwin(*SWEEP, "system.buffer_commands=16:64:2log", "--exact", "--json").json()
    assert found["factors"] == [{"path": "system.buffer_commands", "unit": "", "values": [16, 64]}]
    assert len(found["rows"]) == 2
    for row, value in zip(found["rows"], (16, 64), strict=True):
        run = numatwin(
            "run", "eris-fig5", "--set", f"system.buffer_commands={value}", "--exact", "--json"
        ).json()
        assert row["settings"] == {"system.buffer_commands": value}
        assert row["error"] is None
        assert row["throughput"] == run["throughput"]
        assert row["bandwidth_Bps"] == run["bandwidth_Bps"]
        assert row["bottleneck"]["resource"] == run["bottleneck"]["resource"]
        assert row["scenario_hash"] == run["scenario_hash"]


def test_intervals_of_some_rows(numatwin: CommandLine) -> None:
    """Five of six, evenly chosen; none where that is not wanted."""
    words = ("sweep", "eris-fig8-amd", "--set", "system.buffer_commands=16,32,48,64,96,128")
    rows = numatwin(*words, "--json").json()["rows"]
    assert sum("uncertainty" in row for row in rows) == 5
    low, high = rows[0]["uncertainty"]["throughput"]["lookup"]
    assert low < rows[0]["throughput"]["lookup"] < high
    assert "90% interval" not in numatwin(*words, "--exact").out


def test_a_grid_of_several(numatwin: CommandLine) -> None:
    done = numatwin(
        *SWEEP,
        "system.buffer_commands=16,64",
        "--set",
        "workload.clients.think_time=1 us:4 us:2",
        "--machine",
        "amd-8n-ht,intel-4s-qpi",
        "--set",
        "scale=0.5",
        *("--exact", "--csv"),
    )
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["machine"] for row in rows] == ["amd-8n-ht"] * 4 + ["intel-4s-qpi"] * 4
    think = [float(row["workload.clients.think_time"]) for row in rows]
    assert think == [1.0, 4.0] * 4
    assert all(float(row["throughput.lookup"]) > 0 for row in rows)
    assert "scale" not in rows[0]


def test_the_same_from_python(numatwin: CommandLine) -> None:
    rows = numatwin(*SWEEP, "system.buffer_commands=16,64", "--exact", "--json").json()["rows"]
    table = sweep("eris-fig5", ["system.buffer_commands=16,64"], jobs=1)
    rates = [row["throughput"]["lookup"] for row in rows]
    assert table["throughput.lookup"].to_pylist() == rates


def test_table_and_curve(numatwin: CommandLine) -> None:
    out = numatwin(*SWEEP, "system.buffer_commands=1:1024:6log").said()
    head = out.splitlines()[0].split()
    assert head == ["buffer", "commands", "lookup/s", "90%", "interval", "bottleneck"]
    assert "buffer commands (log)" in out
    assert out.count("o") > 6


def test_pictures(numatwin: CommandLine, tmp_path: Path) -> None:
    done = numatwin(*SWEEP, "system.buffer_commands=1:1024:6log", "--exact", "--out", "here")
    assert done.status == 0
    names = {path.name for path in (tmp_path / "here").iterdir()}
    assert names == {"sweep.csv", "sweep.svg"}
    svg = (tmp_path / "here" / "sweep.svg").read_text("utf-8")
    assert svg.count("<circle") == 6
    assert "buffer commands (log)" in svg


def test_p99_against_load_with_its_knee(numatwin: CommandLine, tmp_path: Path) -> None:
    short = ("--set", "event_horizon=60us", "--set", "statistics.warm_up=10us")
    words = ("sweep", "eris-fig13-small", "--on", "event", "--load", "20M/s:500M/s:3", *short)
    done = numatwin(*words, "--replications", "2", "--jobs", "1", "--exact", "--out", "here")
    assert done.status == 0
    assert "lookup p99" in done.out
    assert re.search(r"^Knee: (none|\d+\.0 M/s, .+ µs)$", done.out, re.MULTILINE)
    assert "latency_ns.lookup.p99" in (tmp_path / "here" / "sweep.svg").read_text("utf-8")


def test_a_load_needs_latencies(refused: Refused) -> None:
    assert "no run has a p99" in refused("sweep", "eris-fig9", "--load", "1/s,2/s")


def test_the_knee_of_a_queue() -> None:
    """1 / (1 - x) is steepest like its chord where 1 - x is the root of both ends' product."""
    points = [(k / 1000, 1 / (1 - k / 1000), None, None) for k in range(991)]
    curves = {"queue": points, "line": [(0.0, 0.0, None, None), (1.0, 1.0, None, None)]}
    found = Response("load", "", "latency_ns.x.p99", curves, 0, False).knees
    assert list(found) == ["queue"]
    assert found["queue"] == pytest.approx((0.9, 10.0))


def test_a_failed_run_does_not_stop_the_others(numatwin: CommandLine) -> None:
    done = numatwin("sweep", "eris-fig8-amd", "--set", "system.nodes=4,99,8", "--exact", "--json")
    errors = [row["error"] for row in done.json()["rows"]]
    assert [error is None for error in errors] == [True, False, True]
    assert "1 of 3 runs failed" in done.err


def test_a_field_that_needs_another_to_be_set(numatwin: CommandLine) -> None:
    words = ("workload.clients.arrival_rate=10M/s,20M/s", "--set", "workload.clients.kind=open")
    rows = numatwin("sweep", "eris-fig8-amd", "--set", *words, "--exact", "--json").json()["rows"]
    assert [row["throughput"]["lookup"] for row in rows] == [1e7, 2e7]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("system.nodez=1,2",), "unknown field 'nodez' in system: expected 'nodes'"),
        (("system.buffer_commands=1:8:0",), "an empty range: found '0 values'"),
        (("system.buffer_commands=1:8",), "not a range: found '1:8', expected from:to:n"),
        (("system.buffer_commands",), "not a factor: expected path=v1,v2,v3"),
        (("system.buffer_commands=1,,2",), "an empty value"),
        (("machine.node_types.none.cores=1,2",), "unknown field 'none' in node_types"),
        (("system.nodes=99,100",), "expected at most 8"),
        (("seed=1,2", "--set", "seed=3,4"), "set twice"),
        (("seed=1:2000:2000", "--set", "system.buffer_commands=1:1000:1000"), "too many runs"),
        (("seed=1,2", "--metric", "throughput.scan"), "unknown metric: found 'throughput.scan'"),
        (("seed=1,2", "--metric", "speed"), "unknown metric: found 'speed'"),
        (("seed=1,2", "--metric", "model.what"), "--metric: no run has such a figure"),
        (("seed=1,2", "--metric", "latency_ns.lookup.p98"), "unknown metric"),
        (("seed=1,2", "--json", "--csv"), "expected --json or --csv, not both"),
        (("seed=1,2", "--machine", "amd-8n-ht,none"), "--machine amd-8n-ht,none: unknown machine"),
        (("seed=1,2", "--policy", "none,one"), "--policy none,one: unknown policy: found 'one'"),
        (("policy=none,one",), "--set policy=none,one: unknown policy: found 'one'"),
    ],
)
def test_bad_input(refused: Refused, words: tuple[str, ...], message: str) -> None:
    scenario = "eris-fig8-amd" if "system.nodes=99" in words[0] else "eris-fig5"
    assert message in refused("sweep", scenario, "--set", *words)
