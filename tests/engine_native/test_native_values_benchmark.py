"""A tiny run of the benchmark of value sizes, and its intervals."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numatwin.engine_native._engine", reason="built without libnuma")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "native_values.py"
TINY = ["--keys", "20000", "--sizes", "1000", "--seconds", "0.1", "--rounds", "2"]


def printed(*more: str) -> list[str]:
    command = [sys.executable, str(SCRIPT), *TINY, *more]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_tiny_run_prints_ratios_and_their_intervals() -> None:
    lines = [json.loads(line) for line in printed()]
    assert [line["name"] for line in lines] == [
        f"native_values/{kind}/1000_B" for kind in ("lookup", "upsert")
    ]
    for line in lines:
        low, high = line["interval"]
        assert low <= line["ratio"] <= high
        assert line["ratio"] > 1  # sixteen lines more
        assert line["predicted"] > 1
        assert line["error"] == pytest.approx(line["predicted"] / line["ratio"] - 1)


def test_as_a_table() -> None:
    head, _, *rows = printed("--table")
    assert [row.split(" | ")[1] for row in rows] == ["lookup", "upsert"]
    assert {row.count("|") for row in rows} == {head.count("|")}
