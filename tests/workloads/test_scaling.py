"""Workloads made smaller: by hand, and what must hold for every distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from key_cases import bounds_over, distributions, piecewise, times_s
from numpy.testing import assert_allclose

from numatwin.inputs import DescriptionError
from numatwin.workloads import load_workload, scaled
from numatwin.workloads.keys import HotRange, KeyDistribution, MovingHotRange, Recorded, Uniform


def test_a_hot_range_shrinks_with_its_object() -> None:
    hot = HotRange(100, 20, 40, 0.8).scaled(10)
    assert_allclose(hot.shares([0, 2, 4, 10]), [0.05, 0.8, 0.15])


def test_a_moving_range_takes_smaller_steps_at_the_same_times() -> None:
    moving = MovingHotRange(512, 128, 384, step=-8, every_s=20.0, moves=4).scaled(128)
    assert moving.change_times(1e9) == [20, 40, 60, 80]
    assert_allclose(moving.shares([0, 32, 96, 128]), [0, 1, 0])
    assert_allclose(moving.shares([0, 24, 88, 128], 1e6), [0, 1, 0])


# Keys 0-3 have 4 accesses, 4-7 none, 8-9 one: of two keys in one, both accesses count.
def test_recorded_keys_keep_their_accesses() -> None:
    recorded = Recorded(10, np.array([0, 8]), np.array([4, 10]), np.array([4.0, 1.0])).scaled(5)
    assert_allclose(recorded.shares([0, 1, 2, 3, 4, 5]), [0.4, 0.4, 0, 0, 0.2])


@given(distributions, st.floats(0.0, 1.0), times_s, st.data())
def test_a_scaled_distribution_is_one(
    keys: KeyDistribution, factor: float, time_s: float, data: st.DataObject
) -> None:
    fewer = max(round(keys.keys * factor), 1)
    small = keys.scaled(fewer)
    shares = small.shares(bounds_over(data, fewer), time_s)
    assert small.keys == fewer
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1.0)


@given(piecewise, st.integers(2, 5))
def test_shares_stay_where_the_scale_divides_the_ranges(keys: KeyDistribution, factor: int) -> None:
    """A distribution over factor times the keys, made small again, is the same."""
    density = keys.density()
    if keys.keys * factor > 2**53:
        return
    large = Recorded(
        keys.keys * factor, density.breaks[:-1] * factor, density.breaks[1:] * factor, density.mass
    )
    assert_allclose(
        large.scaled(keys.keys).shares(density.breaks), keys.shares(density.breaks), atol=1e-9
    )


def test_objects_shrink_and_phases_stay() -> None:
    whole = load_workload("eris-moving-range")
    small = scaled(whole, 1 / 64)
    for name, stored in small.objects.items():
        assert (stored.keys or 0) * 64 == whole.objects[name].keys
    assert small.change_times(110.0) == whole.change_times(110.0)
    assert [phase.name for phase in small.phases] == [phase.name for phase in whole.phases]
    keys = small.phases[0].operations["lookup"].keys
    assert isinstance(keys, Uniform)
    assert keys.keys == 8_000_000


def test_whole_is_the_same_object() -> None:
    whole = load_workload("eris-moving-range")
    assert scaled(whole, 1.0) is whole


def test_a_transaction_needs_records_to_read() -> None:
    with pytest.raises(DescriptionError, match=r"reads 3 different records.* has 1 left"):
        scaled(load_workload("checkout"), 1e-6)
