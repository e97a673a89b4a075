"""What helps a profiled workload: its placement and its threads."""

import json
from pathlib import Path
from typing import Any

import pytest
from profiles import GROUPS, SCAN

from numatwin import run_scenario
from numatwin.cli import main
from numatwin.sim.run.numactl import numactl_settings
from numatwin.sim.run.uncertainty import DRAWS
from numatwin.validate.profile.timed_rates import one_query
from numatwin.validate.profile.what_if import predictions


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The alternatives by name."""
    assert main(["what-if", *words, "--json"]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)["alternatives"]}


def test_a_scan_of_what_one_thread_has_loaded_gains_by_interleaving(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four nodes' controllers in place of one; threads of the loader's node alone gain what those
    of other nodes wait longer for. Commands are those whose settings were predicted."""
    workload = tmp_path / "scan.yaml"
    workload.write_text(SCAN)
    rows = asked(capsys, str(workload), "--machine", "xeon-4s-ivb")
    assert 2.0 < rows["interleave"]["gain"] <= 4.0
    assert 1.0 < rows["bind to node 0, 1, 2, 3"]["gain"] < rows["interleave"]["gain"]
    assert rows["as it is"]["gain_interval"] == [1.0, 1.0]
    for row in rows.values():
        low, high = row["interval_s"]
        assert low <= row["time_s"] <= high
        settings = (
            numactl_settings(row["command"])
            if row["command"].startswith("numactl")
            else [f"system.threads={row['name'].split()[0]}"] * ("thread" in row["name"])
        )
        found = run_scenario(one_query(tmp_path, "xeon-4s-ivb", workload, None, settings))
        assert 1 / found.throughput["scan"] == pytest.approx(row["time_s"])


def test_threads_of_all_nodes_compute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On what one of them has loaded, too: who only computes loses by fewer nodes."""
    workload = tmp_path / "scan.yaml"
    workload.write_text(SCAN.replace("instructions: 2", "instructions: 500"))
    rows = asked(capsys, str(workload), "--machine", "xeon-4s-ivb")
    assert rows["bind to node 0, 1, 2, 3"]["gain"] == pytest.approx(0.25, rel=0.01)
    assert rows["1 thread a node"]["gain"] == pytest.approx(1 / 15, rel=0.01)


def test_on_one_node_there_are_threads_alone_to_try(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = tmp_path / "one.yaml"
    one.write_text(
        "name: one\nnode_types: {n: {cores: 4, memory: {size: 8 GiB, bandwidth: 20 GB/s, "
        "latency: 90 ns}}}\nnodes: [{ids: 0-0, type: n}]\n"
    )
    rows = asked(capsys, str(GROUPS), "--machine", str(one))
    assert list(rows) == ["as it is", "2 threads a node", "1 thread a node"]


def test_of_nodes_that_are_alike_one_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "scan.yaml").write_text(SCAN)
    told: list[float] = []
    rows = predictions(tmp_path, "xeon-4s-ivb", tmp_path / "scan.yaml", None, told.append)
    assert (len(told), told[-1], told) == (len(rows) * DRAWS, 1.0, sorted(told))
