"""A tiny run of the benchmark of ERIS in the event plane."""

import json
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "eris_events.py"


def test_tiny_run_prints_figures_and_the_same_hashes_again() -> None:
    options = ["--workers", "8", "16", "--events", "20000", "--nodes", "2", "--simulated-us", "500"]
    runs = [
        subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True)
        for _ in range(2)
    ]
    for done in runs:
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert [line["name"] for line in lines] == [
            "eris_events/cost_16_aeus",
            "eris_events/cost_16_aeus_growth",
            "eris_events/command_cost_16_aeus",
            "eris_events/command_cost_16_aeus_growth",
            "eris_events/fig1_16_aeus_500_us",
        ]
        units = [line["unit"] for line in lines]
        assert units == ["ns/event", "x", "ns/command", "x", "s"]
        for line in lines:
            assert set(line) == {"name", "value", "unit", "versus", "ratio"}
            assert line["value"] > 0
            assert line["ratio"] > 0
        assert len(re.findall(r"events, executed [0-9a-f]{16}\n", done.stderr)) == 3
    assert runs[0].stderr == runs[1].stderr
