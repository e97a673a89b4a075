"""A tiny run of the scans' benchmark."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numatwin.engine_native._engine", reason="built without libnuma")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "native_scan.py"


@pytest.mark.sweep
def test_tiny_run_prints_figures_and_a_hash() -> None:
    command = [sys.executable, str(SCRIPT), "--mebibytes", "8", "--steps", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # The same on any machine: what was found, of the same entries.
    assert done.stderr == "native_scan: result df072eea1c3cf8ce\n"
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0
        assert line["ratio"] > 0
    names = {line["name"] for line in lines}
    for scan in "bitmap", "count", "sum", "positions", "8 predicates":
        for threads in "1_thread", "2_threads":
            assert f"native_scan/scan/{scan}/{threads}/10%" in names
