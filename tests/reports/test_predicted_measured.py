"""Pictures of predictions against measurements: where each point stands, and its bars."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.reports.predicted_measured import (
    Row,
    in_unit,
    predicted_against_measured,
    residuals_by_group,
    residuals_over_size,
    units,
)

POSITIVE = st.floats(1e-12, 1e15)


def row(measured: float, predicted: float, **more: object) -> Row:
    return Row("one", "kind", "fitted", "s", measured, predicted, **more)  # type: ignore[arg-type]


def test_errors_and_their_intervals() -> None:
    one = row(100.0, 110.0, measured_interval=(90.0, 120.0), predicted_interval=(105.0, 115.0))
    assert one.relative_error == pytest.approx(0.10)
    assert one.error_interval == pytest.approx((105 / 120 - 1, 115 / 90 - 1))
    assert row(0.0, 1.0).relative_error is None
    assert row(0.0, 1.0).error_interval is None
    assert row(1.0, math.nan).relative_error is None


@given(POSITIVE, POSITIVE, st.floats(0, 0.5), st.floats(0, 0.5))
def test_zero_lies_within_where_intervals_overlap(m: float, p: float, a: float, b: float) -> None:
    mine, theirs = (m * (1 - a), m * (1 + a)), (p * (1 - b), p * (1 + b))
    low, high = row(m, p, measured_interval=mine, predicted_interval=theirs).error_interval or (
        1,
        1,
    )
    overlap = mine[0] <= theirs[1] and theirs[0] <= mine[1]
    assert (low <= 1e-9 and high >= -1e-9) == overlap or abs(low) < 1e-9 or abs(high) < 1e-9


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(POSITIVE, POSITIVE, st.sampled_from("abc")), min_size=1, max_size=20))
def test_every_row_is_a_point_within_the_axes(found: list[tuple[float, float, str]]) -> None:
    rows = [Row(g, g, "fitted", "s", m, p, size=2.0**k) for k, (m, p, g) in enumerate(found)]
    figure = predicted_against_measured(rows)
    assert figure is not None
    points = [
        (x, y) for t in figure.data if t.mode == "markers" for x, y in zip(t.x, t.y, strict=True)
    ]
    assert sorted(points) == sorted((m, p) for m, p, _ in found)
    low, high = figure.layout.xaxis.range
    assert all(low <= math.log10(v) <= high for point in points for v in point)
    assert residuals_by_group(rows) is not None
    assert (residuals_over_size(rows) is None) == (len(rows) < 2)


def test_rows_of_several_units_are_refused() -> None:
    mixed = [row(1.0, 1.0), Row("two", "kind", "fitted", "B/s", 1.0, 1.0)]
    assert units(mixed) == ["s", "B/s"]
    with pytest.raises(ValueError, match="several units"):
        predicted_against_measured(mixed)


def test_nothing_gives_no_picture() -> None:
    assert predicted_against_measured([]) is None
    assert residuals_by_group([row(0.0, 1.0)]) is None
    assert residuals_over_size([row(1.0, 1.0, size=8.0)]) is None


def test_what_was_fitted_comes_first() -> None:
    rows = [Row("b", "k", "held out", "s", 1.0, 1.0), Row("a", "k", "fitted", "s", 1.0, 1.0)]
    figure = predicted_against_measured(rows)
    assert figure is not None
    assert [t.name for t in figure.data if t.mode == "markers"] == ["k, fitted", "k, held out"]
    assert [t.marker.symbol for t in figure.data if t.mode == "markers"] == [
        "circle",
        "circle-open",
    ]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.29e-7, "s", "129 ns"),
        (2.67e10, "B/s", "26.7 GB/s"),
        (0.93, "1", "0.93"),
        (4.5e6, "/s", "4.50 M/s"),
    ],
)
def test_values_with_their_units(value: float, unit: str, text: str) -> None:
    assert in_unit(value, unit) == text
