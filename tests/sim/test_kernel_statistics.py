"""The kernel's streaming quantiles: errors as stated, merging, spreading."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim._kernel import Histogram

pytestmark = pytest.mark.kernel

values = st.lists(
    st.one_of(st.integers(0, 2000), st.integers(0, 2**63 - 1)), min_size=1, max_size=60
)
LEVELS = (0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0)


def histogram(of: list[int]) -> Histogram:
    made = Histogram()
    made.add_all(np.array(of, dtype=np.int64))
    return made


@given(values)
def test_quantiles_are_within_the_stated_error(of: list[int]) -> None:
    made, rising = histogram(of), sorted(of)
    for q in LEVELS:
        exact = rising[max(ceil(q * len(of)), 1) - 1]
        assert abs(made.quantile(q) - exact) <= made.relative_error * exact
    assert made.relative_error <= 0.005
    assert (made.count, made.least, made.greatest) == (len(of), rising[0], rising[-1])
    assert made.mean == pytest.approx(sum(of) / len(of), rel=1e-15)


def facts(of: Histogram) -> object:
    first, count = of.buckets()
    levels = [of.quantile(q) for q in LEVELS]
    return first.tolist(), count.tolist(), of.count, of.mean, of.least, of.greatest, levels


@given(values, values)
def test_merging_is_adding_all(one: list[int], other: list[int]) -> None:
    merged = histogram(one)
    merged.merge(histogram(other))
    assert facts(merged) == facts(histogram(one + other))


@given(st.integers(0, 10**13), st.integers(1, 50))
def test_a_count_is_as_many_values(value: int, count: int) -> None:
    made = Histogram()
    made.add(value, count)
    assert facts(made) == facts(histogram([value] * count))
    made.add(value, 0)
    assert made.count == count


# Where each value gets a whole number, spreading is adding each.
@given(st.integers(0, 3000), st.integers(1, 3000), st.integers(1, 5))
def test_spreading_is_adding_every_value(low: int, width: int, each: int) -> None:
    made = Histogram()
    made.add_even(low, low + width - 1, each * width)
    assert facts(made) == facts(histogram(list(range(low, low + width)) * each))


@given(st.integers(0, 2**62), st.integers(0, 2**62 - 1), st.integers(1, 2**63 - 1))
def test_spreading_loses_nothing(low: int, width: int, count: int) -> None:
    made = Histogram()
    made.add_even(low, low + width, count)
    first, counts = made.buckets()
    assert int(sum(counts.tolist())) == made.count == count
    assert made.mean == pytest.approx(low + width / 2)
    # As many lie below the start of a bucket as its place in the range says, to within one.
    below = 0
    for start, number in zip(first.tolist(), counts.tolist(), strict=True):
        share = count * max(start - low, 0) // (width + 1)
        assert abs(below - share) <= 1
        below += number


def test_an_empty_one_and_wrong_values() -> None:
    empty = Histogram()
    assert (empty.count, empty.mean, empty.quantile(0.5), empty.greatest) == (0, 0.0, 0, 0)
    for wrong in (
        lambda: empty.add(-1),
        lambda: empty.add_even(5, 4, 1),
        lambda: empty.quantile(1.5),
        lambda: empty.quantile(float("nan")),
        lambda: empty.add_all(np.array([3, -2])),
    ):
        with pytest.raises(ValueError, match="expected"):
            wrong()
