"""A tiny run of the benchmark that holds our measurements against plain loops."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numatwin.engine_native._engine", reason="the native engine is not built")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "native_measure.py"

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None, reason="no C++ compiler"
)


def test_tiny_run_prints_figures_and_a_hash() -> None:
    sizes = ["--sizes", "16384", "--triad-size", "3145728", "--seconds", "0.02", "--rounds", "1"]
    command = [sys.executable, str(SCRIPT), *sizes]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["name"] == "native_measure/latency/16_KiB"
    assert lines[-1]["name"].startswith("native_measure/triad/")
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        # Both loops are bound by the same cache; only that a figure is one.
        assert 0.05 < line["ratio"] < 20
    assert done.stderr.startswith("native_measure: result ")
