"""An operation with a share of 0 changes nothing, so that a sweep over shares can reach its end."""

from pathlib import Path

import pytest
from small_scenarios import CACHE, LOOKUP, SCAN, UPSERT, ran, rate, small_file

from numatwin.inputs import InputError
from numatwin.sim.run.limit import limits
from numatwin.sim.run.scenario import load_scenario

PAIRS = [(LOOKUP, UPSERT), (LOOKUP, SCAN), (SCAN, LOOKUP), (UPSERT, LOOKUP)]
PLACEMENTS = ["partitioned", "interleaved", "single-ram"]


def file_of(folder: Path, placement: str, one: str, *with_none: str) -> Path:
    """The scenario of one operation, and of others with a share of 0."""
    operations = (one, *(other.replace("}", ", share: 0}") for other in with_none))
    text = "\n    ".join(operations)
    return small_file(folder, text, placement, nodes=2, caches=CACHE)


def name_of(operation: str) -> str:
    return operation.partition(":")[0]


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_the_flow_plane_has_the_same_rates(
    tmp_path: Path, placement: str, one: str, other: str
) -> None:
    alone = ran(file_of(tmp_path, placement, one))
    both = ran(file_of(tmp_path, placement, one, other))
    assert both.throughput == {**alone.throughput, name_of(other): 0.0}
    assert both.resources == alone.resources
    assert both.why[name_of(one)] == alone.why[name_of(one)]


@pytest.mark.parametrize(
    ("one", "other", "placement"),
    [
        pytest.param(
            *(one, other, placement),
            marks=[] if k == 0 or placement == "partitioned" else [pytest.mark.sweep],
        )
        for k, (one, other) in enumerate(PAIRS)
        for placement in PLACEMENTS
    ],
)
def test_the_event_plane_does_none_of_it(
    tmp_path: Path, placement: str, one: str, other: str
) -> None:
    settings = (
        *("plane=event", "horizon=100 ms" if one == SCAN else "horizon=2 ms"),
        "statistics={replications: 4, warm_up: 200 us}",
    )
    alone = ran(file_of(tmp_path, placement, one), *settings)
    both = ran(file_of(tmp_path, placement, one, other), *settings)
    assert both.operations[name_of(other)] == 0.0
    found = both.throughput[name_of(one)]  # a run that has not settled has no interval
    low, high = both.interval("throughput", name_of(one)) or (0.95 * found, 1.05 * found)
    expected = alone.throughput[name_of(one)]
    assert low <= expected * 1.02
    assert expected * 0.98 <= high


def test_the_end_of_a_sweep_is_where_it_leads_to(tmp_path: Path) -> None:
    """Upserts take longer: the fewer there are, the more is done, up to lookups alone."""
    rates = [
        rate(file_of(tmp_path, "partitioned", LOOKUP, UPSERT), f"workload.operations.upsert.{s}")
        for s in ("share=1", "share=0.1", "share=0.001", "share=0")
    ]
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(rates[-2], rel=1e-3)


def test_a_hot_range_that_nothing_falls_into(tmp_path: Path) -> None:
    """Lookups of the other 90% of the keys alone: those of the first workers rest."""
    keys = "keys: {distribution: hot_range, from: 0, to: 10_000_000, share: 0}"
    cold = LOOKUP.replace("}", f", {keys}}}")
    assert (
        0
        < rate(file_of(tmp_path, "partitioned", cold))
        < rate(file_of(tmp_path, "partitioned", LOOKUP))
    )


def test_a_phase_may_end_an_operation(tmp_path: Path) -> None:
    """From 0.5 s on no upserts: then lookups are as fast as alone."""
    phases = "phases: [{start: 0.5 s, name: later, operations: {upsert: {share: 0}}}]"
    path = small_file(tmp_path, f"{LOOKUP}\n    {UPSERT}\n  {phases}", caches=CACHE)
    record = ran(path)
    alone = rate(small_file(tmp_path, LOOKUP, caches=CACHE))
    assert record.series["throughput/upsert"][-1] == 0.0
    assert record.series["throughput/lookup"][-1] == pytest.approx(alone, rel=1e-6)


@pytest.mark.parametrize(
    ("operations", "place"),
    [
        (LOOKUP.replace("}", ", share: 0}"), ": workload.operations: every"),
        (
            f"{LOOKUP}\n  phases: [{{start: 1 ms, name: b, operations: {{lookup: {{share: 0}}}}}}]",
            ": workload.phases.0.operations: every",
        ),
    ],
)
def test_somebody_asks_for_something(tmp_path: Path, operations: str, place: str) -> None:
    with pytest.raises(InputError, match=f"{place} share is 0: expected one above 0"):
        load_scenario(small_file(tmp_path, operations))


def test_nothing_limits_what_is_not_done(tmp_path: Path) -> None:
    record = ran(file_of(tmp_path, "partitioned", LOOKUP, UPSERT))
    assert list(limits(record.why, record.throughput)) == ["lookup"]
    assert limits(record.why, dict.fromkeys(record.throughput, 0.0)) == record.why
