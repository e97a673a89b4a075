"""A tiny run of the benchmark of commits."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from numatwin.engine_native import _engine

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "native_commits.py"

pytestmark = pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")


def test_tiny_run_prints_figures_and_hashes() -> None:
    sizes = ["--records", "300", "--commits", "200", "--repeat", "1"]
    fabric = ["--sizes", "8", "--seconds", "0.002"]
    command = [sys.executable, str(SCRIPT), *sizes, *fabric]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    names = [line["name"].removeprefix("native_commits/") for line in lines]
    assert names[:3] == ["commit", "commit/against_fabric", "commit/by_ucx"]
    operations = ["get/8", "put/8", "message/8", "compare-and-swap/8", "fetch-add/8"]
    assert names[3:] == [f"{way}/{one}" for way in ("shm", "tcp") for one in operations]
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0
    # The same commits, whichever way they went: the same on every machine.
    hashes = {line.rsplit(" ", 1)[1] for line in done.stderr.splitlines()}
    assert len(hashes) == 1
