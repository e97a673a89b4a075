"""A tiny run of the benchmark of disturbances, and the table that it writes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from numatwin.topologies import load_machine

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPT = FOLDER / "disturbances.py"


def test_tiny_run_prints_errors_with_and_without() -> None:
    options = ["--cases", "one-aeu: 1/2 L2", "--replications", "1", "--jobs", "1"]
    command = [sys.executable, str(SCRIPT), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == [
        "disturbances/throughput without interruptions",
        "disturbances/p99 without interruptions",
    ]
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0


def test_the_document_has_the_stored_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import disturbances

    page = disturbances.PAGE.read_text(encoding="utf-8")
    assert disturbances.written(page, json.loads(disturbances.ERRORS.read_text())) == page


def test_cases_name_no_host() -> None:
    cases = json.loads((FOLDER / "disturbances" / "cases.json").read_text())
    assert len(cases) == 56
    for case in cases:
        for metric, rounds in case["real"].items():  # of few transactions a run tells no p99
            assert len(rounds) == 5 or (metric.startswith("latency_ns") and 1 <= len(rounds) < 5)
    machine = load_machine(FOLDER / "disturbances" / "machine.yaml").description
    assert machine.host is None
    assert len(machine.interruptions) == 3
