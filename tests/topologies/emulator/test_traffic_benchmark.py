"""A tiny run of the counting benchmark."""

import json
import subprocess
import sys
from pathlib import Path

from emulator_needed import needs_emulator

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "emulator_traffic.py"


@needs_emulator
def test_tiny_run_prints_rates() -> None:
    tiny = "--mebibytes 1 --rounds 1 --processors 1 --details accesses --no-errors"
    command = [sys.executable, str(SCRIPT), *tiny.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == [
        f"emulator_traffic/accesses/{pattern}/1_processor"
        for pattern in ("read", "write", "random", "atomic")
    ]
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0
