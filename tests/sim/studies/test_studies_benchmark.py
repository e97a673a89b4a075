"""The benchmark of studies runs, and says what it shall."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "studies.py"


def played(*options: str) -> tuple[list[dict[str, Any]], str]:
    """The lines that it prints, and what it says of them."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--points", "12", *options],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(text) for text in done.stdout.splitlines()], done.stderr


def test_a_tiny_run() -> None:
    lines, told = played("--rows", "10000", "--workers", "0")
    names = [line["name"].removeprefix("studies/") for line in lines]
    assert names[:3] == ["resume 10,000 rows", "a run", "overhead"]
    assert all({"value", "unit", "versus", "ratio"} < set(line) for line in lines)
    assert told.startswith("studies: rows ")


def test_a_part_alone() -> None:
    lines, told = played("--part", "growth")
    names = [line["name"].removeprefix("studies/") for line in lines]
    assert names == ["4 runs", "memory of 4 runs", "12 runs", "memory of 12 runs"]
    assert lines[0]["ratio"] == 1.0
    assert 0 < lines[1]["value"] <= lines[3]["value"]
    assert told == ""
