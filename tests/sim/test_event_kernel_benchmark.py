"""A tiny run of the event kernel's benchmark."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "event_kernel.py"

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None, reason="no C++ compiler"
)


HASHES = ["99ae19c3fce0fe61", "38a5ab5febdf3c6d"]


def test_tiny_run_prints_figures_and_hashes() -> None:
    sizes = ["--processes", "3", "--events", "20000", "--simpy-events", "2000", "--repeat", "2"]
    command = [sys.executable, str(SCRIPT), *sizes]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    names = ["hold/3_processes", "mm1"]
    assert [line["name"] for line in lines] == [f"event_kernel/{name}" for name in names]
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        # Far below what it is on a quiet machine: only that a figure is one.
        assert line["ratio"] > 1
    # The same on every machine: integer picoseconds, and a logarithm of the kernel's own.
    assert [line.rsplit(" ", 1)[1] for line in done.stderr.splitlines()] == HASHES
