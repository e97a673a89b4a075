"""Pictures of predictions against measurements: where each point stands, and its bars."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import known
from plotly_figures import plotly

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


def test_ratios_and_their_intervals() -> None:
    one = row(100.0, 110.0, measured_interval=(90.0, 120.0), predicted_interval=(105.0, 115.0))
    assert one.ratio == pytest.approx(1.10)
    assert one.ratio_interval == pytest.approx((105 / 120, 115 / 90))
    assert row(0.0, 1.0).ratio is None
    assert row(0.0, 1.0).ratio_interval is None
    assert row(1.0, 0.0).ratio is None
    assert row(1.0, math.nan).ratio is None


@given(POSITIVE, POSITIVE, st.floats(0, 0.5), st.floats(0, 0.5))
def test_one_lies_within_where_intervals_overlap(m: float, p: float, a: float, b: float) -> None:
    mine, theirs = (m * (1 - a), m * (1 + a)), (p * (1 - b), p * (1 + b))
    found = known(row(m, p, measured_interval=mine, predicted_interval=theirs).ratio_interval)
    low, high = found
    overlap = mine[0] <= theirs[1] and theirs[0] <= mine[1]
    near = 1e-9
    assert (low <= 1 + near and high >= 1 - near) == overlap or min(
        abs(low - 1), abs(high - 1)
    ) < near


@pytest.mark.parametrize(
    ("ratios", "expected", "text"),
    [
        ([0.97, 1.04], {0.96: "-4%", 1.0: "0", 1.02: "+2%"}, "predicted over measured − 1"),
        ([0.5, 1.8], {0.5: "÷2", 1.0: "1", 2.0: "×2"}, "predicted over measured"),
        ([0.04, 14.0], {0.05: "÷20", 0.1: "÷10", 10.0: "×10"}, "predicted over measured"),
    ],
)  # fmt: skip
def test_half_and_twice_are_as_far_from_one(
    ratios: list[float], expected: dict[float, str], text: str
) -> None:
    figure = known(residuals_by_group([row(1.0, ratio) for ratio in ratios]))
    axis = plotly(figure).layout.xaxis
    assert axis.type == "log"
    assert axis.range[0] == -axis.range[1]
    assert all(axis.range[0] < math.log10(ratio) < axis.range[1] for ratio in ratios)
    ticks = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    assert 5 <= len(ticks) <= 14
    assert all(abs(math.log10(tick)) <= axis.range[1] for tick in ticks)
    for value, words in expected.items():
        near = min(ticks, key=lambda tick: abs(math.log(tick / value)))
        assert (near, ticks[near]) == (pytest.approx(value), words)
    assert axis.title.text == text


def test_an_interval_down_to_nothing_is_cut() -> None:
    figure = known(residuals_by_group([row(1.0, 1.0, predicted_interval=(0.0, 2.0))]))
    (points,) = plotly(figure).data
    assert points.x[0] - points.error_x.arrayminus[0] > 0


def test_no_two_of_many_groups_look_alike() -> None:
    rows = [Row("x", f"g{k}", of, "s", 1.0, 1.0) for k in range(40) for of in ("fitted", "test")]
    figure = known(predicted_against_measured(rows))
    looks = [
        (t.marker.color, t.marker.symbol)
        for t in plotly(figure).data
        if t.name and t.mode == "markers"
    ]
    assert len(set(looks)) == len(looks) == 80


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(POSITIVE, POSITIVE, st.sampled_from("abc")), min_size=1, max_size=20))
def test_every_row_is_a_point_within_the_axes(found: list[tuple[float, float, str]]) -> None:
    rows = [Row(g, g, "fitted", "s", m, p, size=2.0**k) for k, (m, p, g) in enumerate(found)]
    figure = known(predicted_against_measured(rows))
    points = [
        (x, y)
        for t in plotly(figure).data
        if t.mode == "markers"
        for x, y in zip(t.x, t.y, strict=True)
    ]
    assert sorted(points) == sorted((m, p) for m, p, _ in found)
    low, high = plotly(figure).layout.xaxis.range
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
    figure = known(predicted_against_measured(rows))
    marks = [(t.name, t.marker.symbol) for t in plotly(figure).data if t.mode == "markers"]
    assert marks == [("k, fitted", "circle"), ("k, held out", "circle-open")]


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
