"""A tiny run of the engine's benchmark."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numatwin.engine_native._engine", reason="built without libnuma")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "native_engine.py"
HASH = "ee4f1db99fdab02211f9b521546970914287c22935fab1d47cd4397c38c4f8e4"


def test_tiny_run_prints_figures_and_hash() -> None:
    sizes = ["--keys", "20000", "--seconds", "0.3", "--rounds", "1"]
    done = subprocess.run([sys.executable, str(SCRIPT), *sizes], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == [
        f"native_engine/{kind}/20000_keys{what}"
        for kind in ("lookup", "upsert")
        for what in ("", "/cpu_time")
    ]
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0
    assert done.stderr.split()[-1] == HASH
