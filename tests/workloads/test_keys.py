"""Key distributions: cases worked by hand, and what must hold for all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from key_cases import bounds_over, distributions, moving_ranges, piecewise, times_s
from numpy.testing import assert_allclose
from scipy.stats import chisquare

from numatwin.workloads.keys import HotRange, KeyDistribution, MovingHotRange, Recorded, Uniform

ROUNDING = 1e-9
CHANCE = 1e-9  # a correct draw fails a chi-square test once in 10^9 examples


def test_uniform_shares_follow_the_width() -> None:
    assert_allclose(Uniform(100).shares([0, 10, 10, 50, 100]), [0.1, 0, 0.4, 0.5])


# Keys 20-39 have 80%: 4% each; the other 80 keys share 20%: 0.25% each.
def test_hot_range_leaves_the_rest_to_the_other_keys() -> None:
    hot = HotRange(100, 20, 40, 0.8)
    assert_allclose(hot.shares([0, 20, 21, 40, 41, 100]), [0.05, 0.04, 0.76, 0.0025, 0.1475])
    assert hot.density().breaks.tolist() == [0, 20, 40, 100]


def test_hot_range_at_an_edge_has_no_empty_part() -> None:
    assert HotRange(100, 0, 40, 0.8).density().breaks.tolist() == [0, 40, 100]
    assert HotRange(100, 0, 100).density().mass.tolist() == [1.0]


def moving(step: int = -8, moves: int | None = 4, first_move_s: float | None = None) -> HotRange:
    return MovingHotRange(
        512, 128, 384, step=step, every_s=20.0, moves=moves, first_move_s=first_move_s
    )


@pytest.mark.parametrize(
    ("time_s", "first"),
    [(0, 128), (19.99, 128), (20, 120), (39.99, 120), (40, 112), (80, 96), (1e6, 96)],
)
def test_range_moves_at_its_times(time_s: float, first: int) -> None:
    assert_allclose(moving().shares([0, first, first + 256, 512], time_s), [0, 1, 0])


def test_change_times_are_the_moves() -> None:
    assert moving().change_times(100.0) == [20, 40, 60, 80]
    assert moving().change_times(60.0) == [20, 40]
    assert moving(first_move_s=5.0).change_times(50.0) == [5, 25, 45]
    assert Uniform(10).change_times(100.0) == []


def test_moves_by_default_fill_the_domain() -> None:
    # To the right there is room for 384 + 16·8 = 512.
    rightwards = moving(step=8, moves=None)
    assert len(rightwards.change_times(1e9)) == 16
    assert_allclose(rightwards.shares([0, 256, 512], 1e9), [0, 1])


# Row by row: 0-9 has 1 of 4, 10-19 nothing, 20-29 has 3; nobody asked for 30-39.
def test_recorded_gaps_have_no_share() -> None:
    first, end = np.array([0, 10, 20]), np.array([10, 20, 30])
    recorded = Recorded(40, first, end, np.array([1.0, 0.0, 3.0]))
    assert_allclose(recorded.shares([0, 5, 20, 25, 40]), [0.125, 0.125, 0.375, 0.375])
    assert recorded.draw([0.0, 0.2499, 0.25, 0.9999]).tolist() == [0, 9, 20, 29]


def test_counts_near_the_largest_float() -> None:
    recorded = Recorded(2, np.array([0, 1]), np.array([1, 2]), np.array([1.7e308, 1.7e308]))
    assert_allclose(recorded.shares([0, 1, 2]), [0.5, 0.5])


@given(distributions, times_s, st.data())
def test_shares_are_a_distribution(
    keys: KeyDistribution, time_s: float, data: st.DataObject
) -> None:
    shares = keys.shares(bounds_over(data, keys.keys), time_s)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1.0, abs=ROUNDING)


@given(distributions, times_s, st.data())
def test_shares_add_up_when_ranges_are_split(
    keys: KeyDistribution, time_s: float, data: st.DataObject
) -> None:
    bounds = bounds_over(data, keys.keys)
    fine, coarse = bounds, bounds[::2]
    if len(fine) % 2 == 0:
        coarse = np.append(coarse, fine[-1])
    sums = np.add.reduceat(keys.shares(fine, time_s), np.arange(0, len(fine) - 1, 2))
    assert_allclose(keys.shares(coarse, time_s), sums, atol=ROUNDING)


@given(distributions, times_s)
def test_density_covers_the_domain(keys: KeyDistribution, time_s: float) -> None:
    density = keys.density(time_s)
    assert density.breaks[0] == 0
    assert density.breaks[-1] == keys.keys
    assert (np.diff(density.breaks) > 0).all()
    assert len(density.mass) == len(density.breaks) - 1
    assert (density.mass >= 0).all()
    assert density.mass.sum() == pytest.approx(1.0, abs=ROUNDING)


@given(distributions.filter(lambda keys: not keys.scattered), times_s)
def test_density_agrees_with_shares(keys: KeyDistribution, time_s: float) -> None:
    density = keys.density(time_s)
    assert_allclose(keys.shares(density.breaks, time_s), density.mass, atol=ROUNDING)


@given(distributions, times_s, st.lists(st.floats(0, 1, exclude_max=True), max_size=50))
def test_draws_stay_in_the_domain(
    keys: KeyDistribution, time_s: float, uniforms: list[float]
) -> None:
    drawn = keys.draw(uniforms, time_s)
    assert drawn.dtype == np.int64
    assert drawn.shape == (len(uniforms),)
    assert ((drawn >= 0) & (drawn < keys.keys)).all()


@given(piecewise, times_s, st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=50))
def test_keys_without_mass_are_never_drawn(
    keys: KeyDistribution, time_s: float, uniforms: list[float]
) -> None:
    density = keys.density(time_s)
    part = np.searchsorted(density.breaks, keys.draw(uniforms, time_s), side="right") - 1
    assert (density.mass[part] > 0).all()


@given(moving_ranges(), times_s)
def test_a_moving_range_keeps_its_mass_and_its_width(keys: MovingHotRange, time_s: float) -> None:
    shift = keys.step * keys.moves_by(time_s)
    first, end = keys.first + shift, keys.end + shift
    assert 0 <= first < end <= keys.keys
    inside = keys.shares([0, first, end, keys.keys], time_s)[1]
    assert inside == pytest.approx(keys.share, abs=ROUNDING)


@given(moving_ranges(), st.floats(0.0, 500.0), st.integers(0, 400))
def test_a_moving_range_goes_on_when_time_is_counted_anew(
    keys: MovingHotRange, elapsed_s: float, more: int
) -> None:
    # Half-way between two moves, so that rounding cannot decide.
    time_s = elapsed_s + (more + 0.5) * keys.every_s
    offset = (time_s - keys.first_move_s) / keys.every_s % 1.0
    if 1e-6 < offset < 1 - 1e-6:
        assert keys.later(elapsed_s).moves_by(time_s - elapsed_s) == keys.moves_by(time_s)


@given(moving_ranges(), st.floats(0.0, 1e6))
def test_each_change_time_sees_its_move(keys: MovingHotRange, start_s: float) -> None:
    for k, change_s in enumerate(keys.change_times(5 * keys.every_s)):
        moved = keys.moves_by(start_s + change_s - start_s)  # as one who keeps absolute time asks
        assert moved == keys.moves_by(0.0) + k + 1


@settings(max_examples=30)
@given(distributions.filter(lambda keys: keys.keys <= 10**6), times_s, st.integers(0, 2**32 - 1))
def test_draws_follow_the_shares(keys: KeyDistribution, time_s: float, seed: int) -> None:
    bins = np.unique(np.linspace(0, keys.keys, 33).astype(np.int64))
    uniforms = np.random.default_rng(seed).random(20_000)
    drawn = np.histogram(keys.draw(uniforms, time_s), bins)[0]
    assert_chi_square(drawn, keys.shares(bins, time_s) * len(uniforms))


def assert_chi_square(seen: np.ndarray, expected: np.ndarray) -> None:
    """Bins where fewer than 10 are expected count as one; those without any hold none."""
    assert seen[expected == 0].sum() == 0
    many = expected >= 10
    seen, expected = (np.append(x[many], x[~many].sum()) for x in (seen, expected))
    if expected[-1] < 10:
        assert seen[-1] <= expected[-1] + 8 * np.sqrt(expected[-1]) + 8
        seen, expected = seen[:-1], expected[:-1] * (seen[:-1].sum() / expected[:-1].sum())
    if len(seen) > 1:
        assert chisquare(seen, expected, sum_check=False).pvalue > CHANCE
