"""A tiny run of the commit models' benchmark."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "commits.py"


def test_tiny_run_prints_figures_and_hashes() -> None:
    options = ["--repeat", "1", "--clients", "20", "--servers", "3", "--simulated-us", "50"]
    command = [sys.executable, str(SCRIPT), *options]
    runs = [subprocess.run(command, capture_output=True, text=True) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stderr == runs[1].stderr
    lines = [json.loads(line) for line in runs[0].stdout.splitlines()]
    assert [line["name"] for line in lines] == ["commits/rsi-20x3", "commits/kernel"]
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0
        assert line["ratio"] > 1
