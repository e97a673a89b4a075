"""Runs of the scripts of ``benchmarks/``, which print a JSON object a line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "benchmarks"


def printed_by(script: str, *options: str) -> tuple[list[dict[str, Any]], str]:
    """The lines that the script prints, and what it says of them (stderr)."""
    command = [sys.executable, str(FOLDER / f"{script}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr
