"""Errors of rows, gaps between intervals, and what they sum up to: known answers, properties."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.run.statistics import Interval
from numatwin.validate.crossvalidate.rows import Row, apart, measured_interval, relative
from numatwin.validate.crossvalidate.summary import checks_of, errors_of, spread_warnings

positive = st.floats(1e-6, 1e12)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, value, high = sorted((draw(positive), draw(positive), draw(positive)))
    return Interval(value, low, high)


def exact(value: float) -> Interval:
    return Interval(value, value, value)


def row(
    measured: float,
    predicted: float,
    *,
    half: float = 0.0,
    kind: str = "throughput",
    plane: str = "flow",
    set: str = "test",
    scenario: str = "a",
    values: tuple[float, ...] = (),
) -> Row:
    """``half``: how far the measured interval reaches to each side."""
    return Row(
        scenario=scenario,
        group="lookup",
        plane=plane,
        metric="throughput.lookup",
        kind=kind,  # type: ignore[arg-type]
        unit="1/s",
        measured=Interval(measured, measured - half, measured + half),
        predicted=exact(predicted),
        set=set,  # type: ignore[arg-type]
        values=values,
    )


@pytest.mark.parametrize(
    ("predicted", "measured", "error"),
    [(110.0, 100.0, 0.1), (75.0, 100.0, -0.25), (0.0, 0.0, 0.0), (1.0, 0.0, 1.0), (0.0, 4.0, -1.0)],
)
def test_relative_error(predicted: float, measured: float, error: float) -> None:
    assert relative(predicted, measured) == pytest.approx(error)


@pytest.mark.parametrize(
    ("measured", "predicted", "gap"),
    [
        ((100, 90, 110), (105, 100, 120), 0.0),  # they overlap
        ((100, 90, 110), (120, 110, 130), 0.0),  # they touch
        ((100, 90, 110), (140, 132, 150), 0.2),  # 132 is 20% above 110
        ((100, 90, 110), (70, 60, 72), 0.2),  # 72 is 20% below 90
    ],
)
def test_gap_between_intervals(
    measured: tuple[float, ...], predicted: tuple[float, ...], gap: float
) -> None:
    assert apart(Interval(*measured), Interval(*predicted)) == pytest.approx(gap)


@given(intervals(), intervals())
def test_overlap_is_symmetrical(one: Interval, other: Interval) -> None:
    assert (apart(one, other) == 0) == (apart(other, one) == 0)
    assert (apart(one, other) == 0) == (max(one.low, other.low) <= min(one.high, other.high))


@given(intervals(), intervals())
def test_a_gap_is_never_more_than_the_error_of_exact_values(one: Interval, other: Interval) -> None:
    alone = apart(exact(one.value), exact(other.value))
    assert alone == pytest.approx(abs(relative(other.value, one.value)))
    wider = Interval(one.value, one.low / 2, one.high * 2)
    assert apart(wider, other) <= apart(one, other) <= alone * (1 + 1e-12)


@given(st.lists(positive, min_size=1, max_size=9))
def test_measured_is_the_median_within_its_span(values: list[float]) -> None:
    found = measured_interval(values)
    assert found.low == min(values) <= found.value <= max(values) == found.high
    below = sum(value < found.value for value in values)
    above = sum(value > found.value for value in values)
    assert max(below, above) <= len(values) / 2


# Errors of 2%, 4%, 8%, 12%: the median of four is 6%, half are within 5%, three within 10%.
ROWS = [row(100, 102), row(100, 96), row(100, 108), row(100, 88)]


def test_summary_by_hand() -> None:
    (found,) = errors_of(ROWS, noisy=False)
    assert (found.set, found.kind, found.plane, found.rows) == ("test", "throughput", None, 4)
    assert found.median == pytest.approx(0.06)
    assert found.worst == pytest.approx(0.12)
    assert found.near == 0.75


def test_planes_alone_and_sets_apart() -> None:
    rows = [
        *ROWS,
        row(100, 101, plane="event"),
        row(100, 150, set="calibration", kind="time"),
        row(100, 130, kind="p99 latency"),
    ]
    found = {(one.set, one.kind, one.plane): one for one in errors_of(rows, noisy=False)}
    assert {key: one.rows for key, one in found.items()} == {
        ("calibration", "time", None): 1,
        ("test", "throughput", None): 5,
        ("test", "throughput", "flow"): 4,
        ("test", "throughput", "event"): 1,
        ("test", "p99 latency", None): 1,
    }
    assert found["test", "throughput", None].median == pytest.approx(0.04)


def verdicts(rows: list[Row], noisy: bool = False) -> dict[tuple[str, str], bool]:
    return {(check.kind, check.name): check.holds for check in checks_of(rows, noisy)}


def test_the_aim_on_a_quiet_host() -> None:
    assert verdicts(ROWS) == {
        ("throughput", "median error"): False,  # 6% is above 5%
        ("throughput", "rows within 10%"): False,  # 75% are fewer than 90%
        ("throughput", "worst error"): True,
    }
    nine_of_ten = [row(100, 104)] * 9 + [row(100, 125)]
    assert verdicts(nine_of_ten) == {
        ("throughput", "median error"): True,
        ("throughput", "rows within 10%"): True,
        ("throughput", "worst error"): True,
    }
    assert not verdicts([*nine_of_ten, row(100, 126)])["throughput", "worst error"]


def test_p99_and_memory_traffic_have_aims_of_their_own() -> None:
    latency = [row(100, 124, kind="p99 latency"), row(100, 76, kind="p99 latency")]
    assert verdicts(latency) == {("p99 latency", "worst error"): True}
    assert verdicts([*latency, row(100, 74, kind="p99 latency")]) == {
        ("p99 latency", "worst error"): False
    }
    assert len(verdicts([row(100, 100, kind="memory traffic")])) == 3


def test_the_calibration_set_and_recoveries_are_not_judged() -> None:
    assert verdicts([row(100, 900, set="calibration"), row(100, 900, kind="recovery")]) == {}


def test_on_a_noisy_host_a_miss_is_a_gap_beyond_the_aim() -> None:
    wide = [row(100, 150, half=40)] * 10  # 150 is 7.1% above 140
    assert not any(verdicts(wide).values())
    assert verdicts(wide, noisy=True) == {
        ("throughput", "median error"): False,
        ("throughput", "rows within 10%"): True,
        ("throughput", "worst error"): True,
    }
    assert all(verdicts([row(100, 150, half=60)] * 3, noisy=True).values())


def test_rounds_far_apart_are_told_as_noise() -> None:
    steady = row(100, 100, half=2, values=(98, 102))
    unsteady = [row(100, 100, half=30, values=(70, 130), scenario=name) for name in "bcd"]
    assert list(spread_warnings([steady])) == []
    assert list(spread_warnings([steady, *unsteady])) == [
        "noisy host: the rounds of 3 of 4 measured throughputs lie more than 10% apart, "
        "at worst 60%"
    ]


def test_a_row_as_json() -> None:
    found = row(100, 90, half=5, values=(95, 100, 105)).as_json()
    assert found["relative_error"] == pytest.approx(-0.1)
    assert found["measured_interval"] == [95, 105]
    assert found["predicted_interval"] == [90, 90]
    assert found["rounds"] == 3
    assert math.isfinite(found["measured"])
