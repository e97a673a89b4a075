"""``numatwin compare``: figures, ratios to the first record, intervals, what one record lacks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import CommandLine, Refused

from numatwin.sim.record import ControlEvent, Record, ResourceUse


def saved(name: str, **changes: Any) -> str:
    """A small record in a folder of that name."""
    values: dict[str, Any] = {
        "scenario": "small",
        "title": "",
        "scenario_hash": "0123",
        "plane": "flow",
        "policy": "none",
        "seed": 1,
        "horizon_s": 10.0,
        "machine": {"name": "amd-8n-ht"},
        "settings": {},
        "throughput": {"lookup": 2e8},
        "operations": {"lookup": 2e9},
        "bandwidth_Bps": {"memory": 100e9, "links": 10e9},
        "resources": (
            ResourceUse("cores 0", "cores", 0.5, node=0),
            ResourceUse("cores 1", "cores", 1.0, node=1),
        ),
        "latency_ns": {"lookup": {"mean": 400.0, "p99": None}},
        "why": {},
        "energy_J": None,
        "control_events": (),
        "confidence": {},
        "model": {},
        "warnings": (),
        "provenance": {},
    }
    Record(**{**values, **changes}).save(name)
    return name


def rows(numatwin: CommandLine, *names: str) -> dict[str, dict[str, Any]]:
    found = numatwin("compare", *names, "--json").json()["rows"]
    return {row["metric"]: row for row in found}


def test_ratios_are_to_the_first(numatwin: CommandLine) -> None:
    first = saved("a")
    second = saved("b", throughput={"lookup": 3e8}, bandwidth_Bps={"memory": 50e9, "links": 0.0})
    found = rows(numatwin, first, second)
    assert found["throughput.lookup"]["values"] == [2e8, 3e8]
    assert found["throughput.lookup"]["ratios"] == [1.0, 1.5]
    assert found["throughput.lookup"]["unit"] == "1/s"
    assert found["bandwidth_Bps.memory"]["ratios"] == [1.0, 0.5]
    assert found["utilisation.cores.mean"]["values"] == [0.75, 0.75]
    assert found["utilisation.cores.busiest"]["values"] == [1.0, 1.0]
    assert found["latency_ns.lookup.p99"]["values"] == [None, None]


def test_what_only_one_record_has(numatwin: CommandLine) -> None:
    found = rows(numatwin, saved("a"), saved("b", throughput={"scan": 7.0}, energy_J=12.0))
    assert found["throughput.lookup"]["values"] == [2e8, None]
    assert found["throughput.lookup"]["ratios"] == [1.0, None]
    assert found["throughput.scan"]["values"] == [None, 7.0]
    assert found["throughput.scan"]["ratios"] == [None, None]
    assert found["energy_J"]["values"] == [None, 12.0]


def test_nothing_is_divided_by_zero(numatwin: CommandLine) -> None:
    found = rows(numatwin, saved("a", throughput={"lookup": 0.0}), saved("b"))
    assert found["throughput.lookup"]["ratios"] == [None, None]


def test_intervals(numatwin: CommandLine) -> None:
    interval = {"throughput": {"lookup": [1.9e8, 2.1e8]}}
    found = rows(numatwin, saved("a", confidence=interval), saved("b"))
    assert found["throughput.lookup"]["intervals"] == [[1.9e8, 2.1e8], None]
    assert "[190 M/s, 210 M/s]" in numatwin("compare", "a", "b").out


def shifting(name: str, *rates: float, change_s: float = 2.0) -> str:
    """A record with a change of the workload, and a throughput per second of time."""
    series = {
        "time_s": np.arange(len(rates), dtype=float),
        "duration_s": np.ones(len(rates)),
        "throughput/lookup": np.array(rates),
    }
    event = ControlEvent(change_s, "phase", "hot range")
    return saved(name, horizon_s=float(len(rates)), control_events=(event,), series=series)


def test_drop_and_recovery_are_to_the_best_level(numatwin: CommandLine) -> None:
    first = shifting("a", 10, 10, 2, 5, 10, 10)
    found = rows(numatwin, first, shifting("b", 10, 10, 4, 4, 4, 4))
    assert found["recovery.lookup.depth"]["values"] == pytest.approx([0.8, 0.6])
    assert found["recovery.lookup.time_s"]["values"] == [2.0, None]
    assert found["recovery.lookup.depth"]["level"] == "best"
    lines = numatwin("compare", "a", "b").out.splitlines()
    assert [line.split()[:4] for line in lines[-5:-3]] == [
        ["recovery", "lookup", "depth", "80.0%"],
        ["recovery", "lookup", "time", "2"],
    ]
    assert "to the best level that any of these records settles at" in lines[-2]


def test_drop_and_recovery_are_to_their_own_level_where_changes_differ(
    numatwin: CommandLine,
) -> None:
    first = shifting("a", 10, 10, 2, 5, 10, 10)
    found = rows(numatwin, first, shifting("b", 10, 10, 10, 2, 4, 4, change_s=3.0))
    assert found["recovery.lookup.depth"]["values"] == pytest.approx([0.8, 0.5])
    assert found["recovery.lookup.depth"]["level"] == "own"
    last = numatwin("compare", "a", "b").out.splitlines()[-1]
    assert last == (
        "Recovery: to the level that each record itself settles at before the next change."
    )


def test_records_without_changes_have_no_recovery(numatwin: CommandLine) -> None:
    out = numatwin("compare", saved("a"), saved("b")).out
    assert "ecovery" not in out


def test_a_folder_of_records_stands_for_them(numatwin: CommandLine) -> None:
    for name in ("b", "a", "none"):
        saved(f"runs/{name}")
    saved("other")
    Path("runs/report.html").write_text("")
    found = numatwin("compare", "other", "runs", "--json").json()["records"]
    assert [record["path"] for record in found] == ["other", "runs/a", "runs/b", "runs/none"]


def test_table(numatwin: CommandLine) -> None:
    names = [saved("a"), saved("b", policy="ma-8", throughput={"lookup": 3e8})]
    lines = numatwin("compare", *names).out.splitlines()
    assert lines[0].split() == ["scenario", "policy", "machine", "plane", "record"]
    assert lines[2].split() == ["B", "small", "ma-8", "amd-8n-ht", "flow", "b"]
    row = next(line for line in lines if line.startswith("throughput lookup"))
    assert row.split()[2:] == ["200", "M/s", "300", "M/s", "×1.50"]


def test_identity_in_json(numatwin: CommandLine) -> None:
    found = numatwin("compare", saved("a"), saved("b", seed=2), "--json").json()["records"]
    assert [record["path"] for record in found] == ["a", "b"]
    assert [record["seed"] for record in found] == [1, 2]
    assert found[0]["machine"] == "amd-8n-ht"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "No such file"),
        ("not JSON", "not JSON"),
        ("[]", "not a record"),
        ('{"schema": 1}', "missing field"),
        ('{"schema": 99}', "'99'"),
    ],
)
def test_what_is_no_record(
    numatwin: CommandLine, refused: Refused, content: str | None, text: str
) -> None:
    saved("a")
    if content is not None:
        Path("b").mkdir()
        Path("b/record.json").write_text(content)
    assert text in refused("compare", "a", "b")
