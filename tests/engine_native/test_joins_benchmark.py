"""A tiny run of the benchmark of joins."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from numatwin.engine_native import _engine
from numatwin.engine_native.systems.joins.cluster import OPERATORS

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "native_joins.py"

pytestmark = pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")


def test_tiny_run_prints_figures_and_rows() -> None:
    tables = ["--inner", "500", "--outer", "2000", "--groups", "50", "--partitions", "16"]
    command = [sys.executable, str(SCRIPT), *tables, "--rounds", "2", "--repeat", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == [
        f"native_joins/{operator}/{transport}"
        for operator in OPERATORS
        for transport in ("shm", "tcp")
    ]
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0
    assert done.stderr.splitlines() == [
        "rrj: 2000 rows",
        "ghj: 2000 rows",
        "ghj-bloom: 2000 rows",
        "rdma-ghj: 2000 rows",
        "aggregation: 50 rows",
        "rdma-aggregation: 50 rows",
    ]


def test_what_does_not_end_in_time_has_no_figure() -> None:
    # So many groups sent over TCP, so often, that they take longer than a second anywhere.
    sizes = ["--outer", "100000", "--groups", "50000", "--rounds", "100"]
    some = ["--operator", "rdma-aggregation", "--repeat", "1", "--seconds", "0"]
    command = [sys.executable, str(SCRIPT), *sizes, *some]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(lines) == {f"native_joins/rdma-aggregation/{name}" for name in ("shm", "tcp")}
    stopped = lines["native_joins/rdma-aggregation/tcp"]
    assert (stopped["value"], stopped["ratio"]) == (None, None)
    told = "rdma-aggregation/tcp: the native engine took longer than 1 s"
    assert told in done.stderr.splitlines()
