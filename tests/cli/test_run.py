"""``numatwin run``: what is printed, what is written where, what is refused."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine, Refused

from numatwin.sim.record import load_record

SCAN, FIG13 = "eris-fig12-scan", "eris-fig13"
# The stable JSON form.
FIELDS = {
    "scenario",
    "plane",
    "seed",
    "horizon_s",
    "wall_s",
    "events",
    "throughput",
    "bandwidth_Bps",
    "resources",
    "latency_ns",
    "bottleneck",
    "energy_J",
    "control_events",
    "confidence",
}


def files() -> list[str]:
    """Every file below the current folder."""
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


def test_json_is_one_object_and_writes_nothing(numatwin: CommandLine) -> None:
    done = numatwin("run", SCAN, "--json")
    record = done.json()
    assert record.keys() >= FIELDS
    assert (record["scenario"], record["plane"]) == (SCAN, "flow")
    assert record["throughput"]["scan"] > 0
    assert record["bandwidth_Bps"].keys() == {"memory", "links"}
    assert record["bottleneck"].keys() == {"resource", "gain_of", "gain_per_unit"}
    for resource in record["resources"]:
        assert resource.keys() >= {"name", "utilisation", "Bps"}
        assert 0 <= resource["utilisation"] <= 1 + 1e-9
    assert done.err == ""
    assert files() == []


def test_table_record_and_report(numatwin: CommandLine) -> None:
    done = numatwin("run", SCAN)
    assert (done.status, done.err) == (0, "")
    folder = f"out/{SCAN}"
    assert files() == [
        f"{folder}/{name}" for name in ("record.json", "report.html", "series.parquet")
    ]
    record = load_record(folder)
    assert record.scenario == SCAN
    for text in ("throughput", "busiest resources", "scan is limited by: ", folder):
        assert text in done.out


def test_the_policy_asked_for_names_the_folder(numatwin: CommandLine) -> None:
    assert numatwin("run", FIG13, "--policy", "none").status == 0
    assert load_record(f"out/{FIG13}-none").policy == "none"


def test_out_with_json(numatwin: CommandLine) -> None:
    done = numatwin("run", SCAN, "--json", "--out", "here/it is")
    head = json.loads(Path("here/it is/record.json").read_text())
    assert done.json() == head


def test_one_seed_one_result(numatwin: CommandLine) -> None:
    """In fresh processes, under another hash seed; only ``provenance`` may differ."""
    found = []
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "numatwin", "run", FIG13, "--seed", "5", "--json"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        record = json.loads(done.stdout)
        for volatile in ("provenance", "wall_s"):
            del record[volatile]
        found.append(record)
    assert found[0] == found[1]
    assert found[0]["seed"] == 5


def test_replications_of_an_expectation(numatwin: CommandLine) -> None:
    done = numatwin("run", SCAN, "--replications", "3", "--json")
    assert done.json()["throughput"] == numatwin("run", SCAN, "--json").json()["throughput"]
    assert done.err.count("\n") == 1
    assert "runs one" in done.err


def test_progress_bar_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "numatwin", "run", FIG13, "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
        assert process.stdout is not None
        record = json.loads(process.stdout.read())
    os.close(ours)
    assert process.returncode == 0
    assert record["scenario"] == FIG13
    assert b"simulating" in seen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # what Linux says when the other end is closed
        return b""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["eris-fig31"], "'eris-fig31'"),
        (["./none.yaml"], "none.yaml"),
        ([SCAN, "--machine", "amd-8n-th"], "'amd-8n-ht'"),
        ([SCAN, "--workload", "none"], "workload"),
        ([FIG13, "--policy", "ma-8x"], "ma-8x"),
        ([SCAN, "--on", "native"], "native"),
        ([SCAN, "--set", "horizon"], "path=value"),
        ([SCAN, "--set", "colour=red"], "colour"),
        ([SCAN, "--set", "horizon=60"], "unit"),
        ([SCAN, "--set", "horizon=-1s"], "horizon"),
    ],
)
def test_refused(refused: Refused, words: list[str], text: str) -> None:
    assert text in refused("run", *words)


def test_a_folder_that_cannot_be_written(numatwin: CommandLine) -> None:
    Path("taken").write_text("")
    done = numatwin("run", SCAN, "--out", "taken")
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "taken" in done.err
    assert files() == ["taken"]
