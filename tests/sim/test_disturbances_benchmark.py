"""The table that the benchmark of disturbances writes, and its cases."""

import json
from pathlib import Path

import pytest

from numatwin.topologies import load_machine

FOLDER = Path(__file__).parents[2] / "benchmarks"


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
