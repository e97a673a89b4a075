"""Errors of rows, widths of intervals, and what they sum up to: known answers, properties."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.run.statistics import Interval
from numatwin.validate.crossvalidate.result import checks_of, errors_of, spread_warnings
from numatwin.validate.crossvalidate.rows import Row, measured_interval, relative

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


@given(intervals(), intervals())
def test_no_interval_excuses_an_error(measured: Interval, predicted: Interval) -> None:
    found = replace(row(1, 1), measured=measured, predicted=predicted)
    bare = replace(found, measured=exact(measured.value), predicted=exact(predicted.value))
    assert found.error == bare.error == abs(relative(predicted.value, measured.value))


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
    (found,) = errors_of(ROWS)
    assert (found.set, found.kind, found.plane, found.rows) == ("test", "throughput", None, 4)
    assert found.median_error == pytest.approx(0.06)
    assert found.worst_error == pytest.approx(0.12)
    assert found.within_10_percent == 0.75


def test_planes_alone_and_sets_apart() -> None:
    rows = [
        *ROWS,
        row(100, 101, plane="event"),
        row(100, 150, set="calibration", kind="time"),
        row(100, 130, kind="p99 latency"),
    ]
    found = {(one.set, one.kind, one.plane): one for one in errors_of(rows)}
    assert {key: one.rows for key, one in found.items()} == {
        ("calibration", "time", None): 1,
        ("test", "throughput", None): 5,
        ("test", "throughput", "flow"): 4,
        ("test", "throughput", "event"): 1,
        ("test", "p99 latency", None): 1,
    }
    assert found["test", "throughput", None].median_error == pytest.approx(0.04)


def verdicts(rows: list[Row]) -> dict[tuple[str, str], bool]:
    return {(check.kind, check.name): check.holds for check in checks_of(rows)}


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


def test_wide_intervals_reach_no_aim() -> None:
    wide = [replace(row(100, 150, half=60), predicted=Interval(150, 50, 250))] * 3
    assert not any(verdicts(wide).values())


def test_widths_of_intervals_and_how_many_hold_by_hand() -> None:
    rows = [
        replace(row(100, 110, half=20), predicted=Interval(110, 99, 121)),  # holds 100; ± 10%
        replace(row(100, 110, half=10), predicted=Interval(110, 104.5, 115.5)),  # does not; ± 5%
        replace(row(100, 100, half=40), predicted=Interval(100, 70, 110)),  # holds 100; ± 30%
    ]
    (found,) = errors_of(rows)
    assert found.predicted_half_width == pytest.approx(0.10)
    assert found.measured_half_width == pytest.approx(0.20)
    assert found.held_by_predicted_interval == pytest.approx(2 / 3)
    about_zero = replace(row(0, 0), predicted=Interval(0, -1, 1))
    assert math.isfinite(errors_of([about_zero])[0].predicted_half_width)


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
