"""Histograms: quantiles within their bin, exact means, merging."""

import math
from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.kernel.histogram import Histogram, merged

EDGES = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0])
values_of = st.lists(st.floats(0.0, 15.9), min_size=1, max_size=60)
parts = st.floats(0.001, 1.0)


def histogram_of(values: list[float], edges: np.ndarray = EDGES) -> Histogram:
    counts, _ = np.histogram(values, edges)
    return Histogram(edges, counts, math.fsum(values))


@given(values_of, parts)
def test_a_quantile_lies_in_the_bin_of_its_value(values: list[float], part: float) -> None:
    """The smallest value that at least this part of all do not exceed."""
    needed = part * len(values) * (1 - 1e-12)
    true = next(v for v in sorted(values) if sum(w <= v for w in values) >= needed)
    histogram = histogram_of(values)
    low, high = histogram.around(part)
    assert low <= true < high
    assert histogram.quantile(part) == (low + high) / 2
    assert histogram.mean == pytest.approx(sum(values) / len(values))


def test_the_99th_of_100_values_is_their_99th_percentile() -> None:
    edges = np.arange(102.0)
    histogram = histogram_of([float(k) for k in range(1, 101)], edges)
    for percent in range(1, 101):
        assert histogram.around(percent / 100) == (percent, percent + 1)


@given(values_of, values_of)
def test_merged_is_as_if_counted_together(one: list[float], other: list[float]) -> None:
    together = merged([histogram_of(one), histogram_of(other)])
    whole = histogram_of(one + other)
    assert together.counts.tolist() == whole.counts.tolist()
    assert together.total == pytest.approx(whole.total)


def test_the_shorter_one_may_end_before() -> None:
    short = Histogram(EDGES[:3], np.array([1, 2]), 3.0)
    assert merged([short, histogram_of([9.0])]).counts.tolist() == [1, 2, 0, 0, 1]
    with pytest.raises(ValueError, match="different edges"):
        merged([histogram_of([1.0]), histogram_of([1.0], EDGES * 2)])


def test_nothing_counted() -> None:
    nothing = histogram_of([])
    assert (nothing.count, math.isnan(nothing.mean)) == (0, True)
    assert math.isnan(nothing.quantile(0.5))


@pytest.mark.parametrize(
    ("edges", "counts", "told"),
    [([0, 1], [1, 2], "edges"), ([0, 0, 1], [1, 2], "edges"), ([0, 1, 2], [1, -2], "counts")],
)
def test_what_is_no_histogram(edges: list[int], counts: list[int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Histogram(np.array(edges, dtype=np.float64), np.array(counts), 0.0)


@pytest.mark.parametrize("part", [0.0, 1.1, -0.5])
def test_no_quantile(part: float) -> None:
    with pytest.raises(ValueError, match="part"):
        histogram_of([1.0]).quantile(part)
    with pytest.raises(ValueError, match="rank"):
        histogram_of([1.0]).order_bin(2)


@given(st.integers(0, 2**40))
def test_the_kernels_buckets(value_ps: int) -> None:
    """A value v from 256 on lies in a bucket of width 2^(floor(log2 v) - 7); below, in its own."""
    histogram = Histogram.of_kernel(np.zeros(5_000, dtype=np.int64), 0.0)
    edges_ps = (histogram.edges * 1e3).round()
    bucket = bisect_right(edges_ps.tolist(), value_ps) - 1
    width = edges_ps[bucket + 1] - edges_ps[bucket]
    assert width == (1 if value_ps < 256 else 2 ** (value_ps.bit_length() - 8))
    assert edges_ps[bucket] % width == 0
