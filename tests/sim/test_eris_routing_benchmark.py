"""A tiny run of the benchmark of ERIS's routing."""

import json
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "eris_routing.py"


def test_tiny_run_prints_a_figure_and_the_hash_of_the_trace() -> None:
    command = [sys.executable, str(SCRIPT), "--simulated-us", "200", "--repeat", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    assert set(line) == {"name", "value", "unit", "versus", "ratio"}
    assert line["name"] == "eris_routing/amd_64_aeus"
    assert line["unit"] == "events/CPU-s"
    # Far below what it is on a quiet machine: only that a figure is one.
    assert line["ratio"] > 5
    # Both planes gave this trace, or the script had failed.
    assert re.fullmatch(
        r"eris_routing/amd_64_aeus: \d{4,} events, trace [0-9a-f]{16}\n", done.stderr
    )
