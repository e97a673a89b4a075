"""Planes that play transactions: what their Records say, and that both say the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from numatwin.sim.kernel.histogram import Histogram
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.systems.commits.plane import CommitPlane, event_model, reference_model
from numatwin.sim.systems.commits.servers import IN, OUT

FIG6 = ("rsi", "two-sided", "ipoib", "ipoeth")
HORIZON = {"rsi": "200 µs", "two-sided": "200 µs", "ipoib": "4 ms", "ipoeth": "10 ms"}
REPLAY = "numatwin run {} --set system.clients=9 --set horizon='{}' --seed {}"


def scenario(name: str, *settings: str, plane: str = "event") -> Scenario:
    """One of figure 6, small: nine clients, for a short time, nothing left out."""
    return load_scenario(
        f"nam-fig6-{name}",
        plane=plane,
        settings=[
            "system.clients=9",
            f"horizon={HORIZON[name]}",
            "statistics.replications=1",
            "statistics.warm_up=0 ns",
            *settings,
        ],
    )


def run(name: str, *settings: str, plane: str = "event") -> Record:
    return run_scenario(scenario(name, *settings, plane=plane))


@pytest.mark.parametrize("name", FIG6)
def test_both_planes_have_the_same_record(name: str) -> None:
    """But for the plane, how long it took, and how many events its model is made of."""
    told = REPLAY.format(f"nam-fig6-{name}", HORIZON[name], 0)
    event, reference = (run(name, plane=plane).as_json() for plane in ("event", "reference"))
    for field in event:
        if field not in ("plane", "settings", "scenario_hash", "provenance", "wall_s", "events"):
            assert event[field] == reference[field], f"{field} ({told})"


def test_use_of_an_adapter_is_that_of_its_messages() -> None:
    """The timestamp server sends snapshots, and acknowledges bits as fast as its adapter can."""
    record = run("rsi", "horizon=1 ms")
    facts = record.model["checkout"]
    sent = next(use for use in record.resources if use.kind == OUT and use.node == 7)
    count = {
        name: each * facts["commits"] for name, each in facts["messages_per_commit_by_type"].items()
    }
    snapshot_s = (4 + 7_500 + 4 * 26) / 13.6e9
    busy_s = count["snapshot-data"] * snapshot_s + count["bit-done"] / 137e6
    # Of what was posted, nine clients' last answers may still be to come.
    assert sent.utilisation * 1e-3 == pytest.approx(busy_s, abs=9 * snapshot_s)


def test_time_of_interrupts_is_no_traffic() -> None:
    """All of IPoIB's messages interrupt one core: that took an adapter for 100% of its 3.5 GB/s."""
    uses = {(use.kind, use.node): use for use in run("ipoib").resources}
    assert uses[IN, 7].utilisation > 0.5
    assert uses[IN, 7].Bps is uses[IN, 7].capacity_Bps is None
    assert uses[OUT, 7].Bps
    assert {use.capacity_Bps for use in run("ipoeth").resources if use.kind == IN} == {125e6}


@pytest.mark.parametrize("make", [event_model, reference_model])
def test_where_time_stops_changes_nothing(make: Any) -> None:
    once, often = (CommitPlane(make, scenario("rsi"), 1) for _ in range(2))
    once.advance(200e-6)
    for step in range(1, 41):
        often.advance(step * 5e-6)
        often.totals()
    assert once.totals() == often.totals()
    assert once.outcome().model == often.outcome().model


@pytest.mark.parametrize("make", [event_model, reference_model])
def test_counting_from_a_time_on(make: Any) -> None:
    """What is counted before and after adds up to what is counted at once."""
    whole, parts = (CommitPlane(make, scenario("two-sided"), 1) for _ in range(2))
    whole.advance(200e-6)
    parts.advance(80e-6)
    before = parts.totals()
    parts.start_counting()
    assert not any(parts.totals().values())
    parts.advance(200e-6)
    for name, total in whole.totals().items():
        assert before[name] + parts.totals()[name] == pytest.approx(total, rel=1e-9)
    counted = parts.outcome()
    assert counted.throughput["checkout"] == pytest.approx(counted.operations["checkout"] / 120e-6)


@pytest.mark.parametrize("make", [event_model, reference_model])
def test_replications_draw_differently_and_seeds_too(make: Any) -> None:
    def commits(seed: int, replication: int) -> Sequence[float]:
        plane = CommitPlane(make, scenario("rsi", f"seed={seed}"), replication)
        plane.advance(200e-6)
        return list(plane.totals().values())

    assert commits(1, 1) == commits(1, 1)
    assert commits(1, 1) != commits(1, 2)
    assert commits(1, 1) != commits(2, 1)


def test_faults_are_told() -> None:
    record = run(
        "rsi",
        "system.faults=[{kind: client, client: 3, at: 50 µs}]",
        "system.stragglers=[{client: 5, factor: 10}]",
    )
    assert [(event.time_s, event.kind, event.text) for event in record.control_events] == [
        (0.0, "fault", "client 5 takes 10 times as long"),
        (50e-6, "fault", "client 3 dies"),
    ]


def test_why_names_what_is_full() -> None:
    """Seventy clients fill the timestamp server's adapter; one client fills nothing."""
    settings = ("horizon=1 ms", "statistics.warm_up=200 µs")
    full = run("rsi", "system.clients=70", *settings).why["checkout"]
    assert full.resource == "adapter of node 7, out"
    assert full.gains[0].resource == "network bandwidth and message rate"
    assert full.gains[0].gain_per_10pct == pytest.approx(0.1, abs=0.02)
    alone = run("rsi", "system.clients=1", *settings).why["checkout"]
    assert alone.resource.startswith("the time that each transaction takes")
    assert alone.gains[0].resource in ("clients", "processor speed")


def test_why_needs_no_timestamp_bits_to_spare() -> None:
    """More clients, as it asks about them, have more bits."""
    why = run("rsi", "system.timestamp_bits=9").why["checkout"]
    assert "clients" in [gain.resource for gain in why.gains]


def test_buckets_of_latencies() -> None:
    """Every value below 256 ps has one of its own; above, they are 1/128 to 1/256 wide."""
    edges_ps = Histogram.of_kernel([0] * 2_000, 0.0).edges * 1e3
    assert np.allclose(edges_ps[:257], np.arange(257))
    widths = np.diff(edges_ps)[256:] / edges_ps[256:-1]
    assert widths.max() <= 1 / 128 * (1 + 1e-9)
    assert widths.min() >= 1 / 256 * (1 - 1e-9)
