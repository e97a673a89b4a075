"""A tiny run of the benchmark of native routing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "native_routing.py"

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None, reason="no C++ compiler"
)


def test_tiny_run_prints_figures_and_hashes() -> None:
    sizes = ["--owners", "2", "70", "--buffers", "1", "64", "--commands", "50000", "--repeat", "2"]
    command = [sys.executable, str(SCRIPT), *sizes]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    cases = ["routing", "with_receiving", "copy_into_cache", "copy_in_cache", "two_threads"]
    names = [f"{owners}_owners/{case}" for owners in (2, 70) for case in cases]
    names += [f"70_owners/routing/{buffer}_per_buffer" for buffer in (1, 64)]
    assert [line["name"] for line in lines] == [f"native_routing/{name}" for name in names]
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0
    # Whatever the owners and threads, the same commands arrive.
    hashes = {line.rsplit(" ", 1)[1] for line in done.stderr.splitlines()}
    assert len(done.stderr.splitlines()) == 4
    assert len(hashes) == 1
