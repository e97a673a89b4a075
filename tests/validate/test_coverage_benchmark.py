"""Calibrated intervals on the stored real runs hold what they say: in the flow plane."""

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_flow_plane_on_stored_runs() -> None:
    """40 rows tell the share to ± 8% (a binomial's deviation times 1.64); the aim is ± 5%."""
    command = [sys.executable, str(FOLDER / "coverage.py"), "--planes", "flow", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (line,) = map(json.loads, done.stdout.splitlines())
    assert set(line) == {"name", "value", "unit", "versus", "ratio"}
    assert line["name"].startswith("coverage/throughput, 40 rows")
    assert 0.85 <= line["value"] <= 0.95
