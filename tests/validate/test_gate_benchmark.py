"""The benchmark of the gate: a tiny run, and its arithmetic."""

import json
from pathlib import Path

from benchmark_runs import printed_by


def run(log: Path) -> tuple[list[dict[str, float]], str]:
    options = ["--system", "rsi", "--runs", "1", "--jobs", "1", "--log", str(log)]
    return printed_by("regress_gate", *options)


def test_a_tiny_run(tmp_path: Path) -> None:
    log = tmp_path / "runs.jsonl"
    rows, told = run(log)
    assert [row["versus"] for row in rows] == [0.01, 0.01, 0.95, 0.95]
    for row in rows:
        assert set(row) == {"name", "value", "unit", "versus", "ratio"}
        assert row["ratio"] == row["value"] / row["versus"]
    kept = log.read_text()
    assert 0.02 < json.loads(kept)["loss"] < 0.04
    # Of 0 or 1 in one run is known: from 0 to 97.5%, or from 2.5%.
    assert told.count("0.00% to 97.50%") + told.count("2.50% to 100.00%") == 4
    assert "regress_gate: rsi: result " in told
    assert run(log) == (rows, told)  # what is in the log is not played again
    assert log.read_text() == kept
