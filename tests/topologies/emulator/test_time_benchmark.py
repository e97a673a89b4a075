"""A tiny run of the benchmark of times that counts predict."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from emulator_needed import needs_emulator

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "emulator_time.py"


@needs_emulator
@pytest.mark.sweep
def test_tiny_run_predicts_a_chase() -> None:
    tiny = "--machine intel-4s-qpi --mebibytes 1 --runs 1 --programs chase"
    command = [sys.executable, str(SCRIPT), *tiny.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (row,) = [json.loads(line) for line in done.stdout.splitlines()]
    least, most = row["interval_s"]
    assert 0 < least <= row["value"] <= most
