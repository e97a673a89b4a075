"""A tiny run of the flow plane's benchmark."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "flow_plane.py"


def test_tiny_run_prints_figures_and_hashes() -> None:
    """Twice the same hash, a figure for each case."""
    command = [sys.executable, str(SCRIPT), "--repeat", "1", "--only", "fig8-intel"]
    runs = [subprocess.run(command, capture_output=True, text=True) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stderr == runs[1].stderr
    lines = [json.loads(line) for line in runs[0].stdout.splitlines()]
    names = ["flow_plane/eris-fig8-intel", "flow_plane/eris-fig8-intel-shared"]
    assert [line["name"] for line in lines] == names
    assert [line.split(": result ")[0] for line in runs[0].stderr.splitlines()] == names
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0
        assert line["unit"] == "ms"
        # The ratio is of the time that was allowed, before either was rounded.
        assert abs(line["ratio"] * line["value"] / 50 - 1) < 0.05
