"""``numatwin compare``: figures, ratios to the first record, intervals, what one record lacks."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import CommandLine, Refused
from scipy import stats

from numatwin.reports.comparison import NOT_BY_THE_END
from numatwin.sim.planes.outcome import ControlEvent, ResourceUse
from numatwin.sim.run.record import Record
from numatwin.sim.run.replications import UNSETTLED


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


def test_long_paths_show_what_differs(numatwin: CommandLine) -> None:
    folder = "a-folder-of-a-long-name/" * 5
    one, other = saved(f"{folder}one/flow"), saved(f"{folder}other/flow")
    lines = numatwin("compare", one, other).out.splitlines()
    assert [line.split()[-1] for line in lines[1:3]] == ["…/one/flow", "…/other/flow"]
    # What they have in common is kept where they have no folder in common; nothing is cut off.
    lines = numatwin("compare", one, saved(f"other/{folder}flow")).out.split("\n\n")[0].split("\n")
    paths = "".join(line.split()[-1] for line in lines[1:])
    assert paths == f"{folder}one/flowother/{folder}flow"


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


def drawn(name: str, *rates: float, **changes: Any) -> str:
    """A record of so many replications."""
    mean = sum(rates) / len(rates)
    values: dict[str, Any] = {
        "plane": "event",
        "throughput": {"lookup": mean},
        "replications": len(rates),
        "replicates": {"throughput": {"lookup": list(rates)}},
        "confidence": {"level": 0.95, "throughput": {"lookup": [0.9 * mean, 1.1 * mean]}},
    }
    return saved(name, **{**values, **changes})


def test_replications_with_the_same_draws_are_paired(numatwin: CommandLine) -> None:
    """Worked by hand: differences 2, 3, 4: 3 ± t(2; 97.5%) * 1 / sqrt(3), t = 4.3027."""
    names = drawn("a", 100.0, 120.0, 140.0), drawn("b", 102.0, 123.0, 144.0)
    row = rows(numatwin, *names)["throughput.lookup"]
    assert row["differences"][0] is None
    found = row["differences"][1]
    assert (found["value"], found["paired"]) == (3.0, True)
    half = 4.302653 / 3**0.5
    assert found["interval"] == pytest.approx([3 - half, 3 + half], rel=1e-6)
    # Of the ratio r = 123 / 120: (b - r a) / 120 is -0.5, 0 and 0.5 over 120.
    half = 4.302653 * (0.5 / 120) / 3**0.5
    assert found["ratio_interval"] == pytest.approx([1.025 - half, 1.025 + half], rel=1e-6)
    out = numatwin("compare", *names).out
    assert "×1.02 [1.01, 1.04]" in out
    assert "Intervals: 95%, each on its own, over replications (A: 3, B: 3)." in out
    assert "B: compared pair by pair with A's replications, which have the same draws." in out


def test_no_ratio_is_below_nothing(numatwin: CommandLine) -> None:
    """Two replications that hardly agree: an interval wider than the ratio itself."""
    names = drawn("a", 100.0, 100.0), drawn("b", 10.0, 190.0)
    found = rows(numatwin, *names)["throughput.lookup"]["differences"][1]
    assert found["interval"][0] < -100.0
    assert found["ratio_interval"][0] == 0.0
    assert found["ratio_interval"][1] > 10.0


@pytest.mark.parametrize("change", [{"seed": 2}, {}])
def test_other_draws_are_independent_samples(numatwin: CommandLine, change: dict[str, Any]) -> None:
    """Welch: another seed, or another number of replications; too few to tell anything."""
    rates = [102.0, 123.0, 144.0] if change else [102.0, 123.0, 144.0, 123.0]
    names = drawn("a", 100.0, 120.0, 140.0), drawn("b", *rates, **change)
    found = rows(numatwin, *names)["throughput.lookup"]["differences"][1]
    test = stats.ttest_ind(rates, [100.0, 120.0, 140.0], equal_var=False)
    expected = test.confidence_interval(0.95)
    assert found["paired"] is False
    assert found["interval"] == pytest.approx([expected.low, expected.high])
    out = numatwin("compare", *names).out
    assert f"cannot tell: ±{100 * max(-expected.low, expected.high) / 120:.2g}%" in out
    assert "B: compared with A as independent samples (Welch)." in out


def test_against_a_record_that_draws_nothing(numatwin: CommandLine) -> None:
    flow = saved("a", throughput={"lookup": 100.0})
    row = rows(numatwin, flow, drawn("b", 102.0, 103.0, 104.0))["throughput.lookup"]
    found = row["differences"][1]
    assert found["interval"] == pytest.approx([3 - 2.484138, 3 + 2.484138], rel=1e-5)
    assert found["paired"] is False


@pytest.mark.parametrize("rates", [(100.0, 120.0, 140.0), (0.0, 0.0, 0.0)])
def test_one_trace_on_two_planes(numatwin: CommandLine, rates: tuple[float, ...]) -> None:
    """What both do alike does not differ, but for the last digit."""
    again = tuple(rate * (1 + 2e-16) for rate in rates)
    lines = numatwin("compare", drawn("a", *rates), drawn("b", *again, plane="reference")).out
    assert "no difference\n" in re.sub(" +", " ", lines)


def test_no_difference_is_a_narrow_interval(numatwin: CommandLine) -> None:
    names = drawn("a", 100.0, 120.0, 140.0), drawn("b", 100.1, 119.8, 140.2)
    out = numatwin("compare", *names).out
    assert "no difference within ±0.4" in out
    assert "cannot tell" not in out


def test_one_replication_tells_no_difference(numatwin: CommandLine) -> None:
    row = rows(numatwin, drawn("a", 100.0), drawn("b", 103.0))["throughput.lookup"]
    assert row["differences"] == [None, None]
    assert row["ratios"] == [1.0, 1.03]


def test_records_of_flows_have_no_differences(numatwin: CommandLine) -> None:
    found = rows(numatwin, saved("a"), saved("b"))
    assert all(row["differences"] == [None, None] for row in found.values())
    assert "Intervals" not in numatwin("compare", "a", "b").out


def test_damaged_replicates_tell_nothing(numatwin: CommandLine) -> None:
    for broken in ({}, {"throughput": [1]}, {"throughput": {"lookup": [1.0, "x", 2.0]}}):
        names = drawn("a", 100.0, 120.0, 140.0), drawn("b", 1.0, 2.0, 3.0, replicates=broken)
        assert rows(numatwin, *names)["throughput.lookup"]["differences"] == [None, None]


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
    notes = [None, "not recovered by the end"]
    assert found["recovery.lookup.time_s"]["notes"] == notes
    assert found["recovery.lookup.depth"]["level"] == "best"
    lines = numatwin("compare", "a", "b").out.splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("recovery"))
    assert [line.split()[:5] for line in lines[at : at + 2]] == [
        ["recovery", "lookup", "depth", "↓", "80.0%"],
        ["recovery", "lookup", "time", "↓", "2"],
    ]
    assert "↑ more is better, ↓ less is better" in lines
    assert "to the best level that any of these records settles at" in lines[-2]


def test_not_recovered_by_the_end(numatwin: CommandLine) -> None:
    """Null, with a note: the level that the first one would be back at still rises."""
    rising = shifting("a", *[10.0] * 2, *(4 + 0.25 * k for k in range(20)))
    flat = shifting("b", *[5.0] * 22)
    found = rows(numatwin, rising, flat)["recovery.lookup.time_s"]
    assert found["values"] == [None, None]
    assert found["notes"] == [NOT_BY_THE_END] * 2
    out = numatwin("compare", "a", "b").out
    assert out.count("not recovered") == 3
    assert f"A, B: lookup: {NOT_BY_THE_END}." in out


def test_use_of_nothing_has_no_line(numatwin: CommandLine) -> None:
    idle, used = (
        ResourceUse(name="link", kind=kind, utilisation=use, Bps=None, capacity_Bps=None)
        for kind, use in (("link", 2e-4), ("memory", 0.3))
    )
    out = numatwin("compare", *(saved(name, resources=(idle, used)) for name in "ab")).out
    assert "utilisation memory busiest" in out
    assert "utilisation link" not in out


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
    row = next(line for line in lines if line.startswith("throughput lookup ↑"))
    assert row.split()[3:] == ["200", "M/s", "300", "M/s", "×1.50"]


def test_identity_in_json(numatwin: CommandLine) -> None:
    found = numatwin("compare", saved("a"), saved("b", seed=2), "--json").json()["records"]
    assert [record["path"] for record in found] == ["a", "b"]
    assert [record["seed"] for record in found] == [1, 2]
    assert found[0]["machine"] == "amd-8n-ht"
    assert (found[0]["replications"], found[0]["warm_up_s"]) == (0, 0.0)


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


def test_energies_over_different_times_are_compared_as_power(numatwin: CommandLine) -> None:
    first = saved("a", energy_J=50.0)
    second = saved(
        "b",
        plane="event",
        energy_J=3.0,
        horizon_s=3.0,
        warm_up_s=2.0,
        replications=2,
        confidence={"level": 0.95, "energy_J": [2.0, 4.0]},
        replicates={"energy_J": [2.9, 3.1]},
    )
    found = rows(numatwin, first, second)
    assert "energy_J" not in found
    assert found["power_W"]["values"] == [5.0, 3.0]
    assert found["power_W"]["intervals"] == [None, [2.0, 4.0]]
    assert found["power_W"]["differences"][1]["value"] == pytest.approx(-2.0)
    assert rows(numatwin, first, first)["energy_J"]["values"] == [50.0, 50.0]


def test_how_records_were_compared_is_told(numatwin: CommandLine) -> None:
    exact = saved("a")
    random = {"throughput": {"lookup": [1.9e8, 2.1e8]}}
    drawn = [
        saved(name, plane="event", seed=seed, replications=2, replicates=random)
        for name, seed in (("b", 1), ("c", 2))
    ]
    assert (
        "B, C: compared with A, whose plane draws nothing at random"
        in numatwin("compare", exact, *drawn).out
    )
    told = numatwin("compare", *drawn, exact).out
    assert "B: compared with A as independent samples (Welch)." in told
    assert "C: compared with the mean of A; its own plane draws nothing at random" in told


def test_runs_that_did_not_settle_are_named(numatwin: CommandLine) -> None:
    """What beats what may change in longer runs."""
    settled = saved("a", plane="event", replications=2)
    random = {"plane": "event", "replications": 2, "warnings": (f"{UNSETTLED}too short", "other")}
    told = numatwin("compare", settled, saved("b", **random), saved("c", **random)).out
    assert told.endswith("\nNote (B, C): warm-up: too short\n")
    assert "other" not in told
