"""Zipf keys against direct sums, the zeta function, and draws counted."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from key_cases import exponents
from numpy.testing import assert_allclose
from scipy.special import zeta
from scipy.stats import chisquare

from numatwin.workloads.zipf import PLACED, TABLE, PowerSum, Zipf, scatter

EXPONENTS = [0.1, 0.5, 0.99, 1.0, 1.0 + 1e-12, 1.01, 1.5, 2.0, 4.0, 10.0]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_sums_agree_with_direct_sums(exponent: float) -> None:
    keys, power = 1_000_000, PowerSum(exponent)
    terms = np.arange(1.0, keys + 1.0) ** -exponent
    for low, high in ((0, keys), (0, TABLE), (0, TABLE + 1), (TABLE - 1, 5_000), (7_777, keys)):
        direct = math.fsum(terms[low:high])
        assert float(power.between(low, high)) == pytest.approx(direct, rel=1e-12, abs=1e-16)


# ζ(s, a+1) - ζ(s, b+1) is the sum over a+1 … b.
@pytest.mark.parametrize("exponent", [1.2, 1.5, 2.0, 3.0])
def test_sums_over_a_billion_keys_agree_with_zeta(exponent: float) -> None:
    power = PowerSum(exponent)
    for low, high in ((0, 10**9), (10**3, 10**9), (10**6, 10**8)):
        expected = zeta(exponent, low + 1.0) - zeta(exponent, high + 1.0)
        assert float(power.between(low, high)) == pytest.approx(expected, rel=1e-9)


# H(n) = ln n + γ + 1/(2n) - …
def test_harmonic_number_of_a_billion() -> None:
    expected = math.log(1e9) + np.euler_gamma + 0.5e-9
    assert float(PowerSum(1.0).between(0, 10**9)) == pytest.approx(expected, rel=1e-14)


@given(exponents)
def test_single_keys_far_out_keep_their_digits(exponent: float) -> None:
    ranks = np.array([TABLE, 10**5, 10**9, 10**12])
    alone = PowerSum(exponent).between(ranks, ranks + 1)
    assert_allclose(alone, (ranks + 1.0) ** -exponent, rtol=1e-9)


# Shares 1, 1/2, 1/3, 1/4 over 25/12.
def test_sorted_shares_of_four_keys() -> None:
    zipf = Zipf(4, 1.0, scattered=False)
    assert_allclose(zipf.shares([0, 1, 2, 3, 4]), np.array([12, 6, 4, 3]) / 25)
    drawn = zipf.draw([0, 0.479, 0.481, 0.719, 0.721, 0.879, 0.881])
    assert drawn.tolist() == [0, 0, 1, 1, 2, 2, 3]


# Shares 2/3 and 1/3: the second rank begins exactly at 2/3.
def test_a_rank_begins_with_its_own_bound() -> None:
    assert Zipf(2, 1.0, scattered=False).draw([2 / 3]).tolist() == [1]


def test_one_key() -> None:
    for scattered in (False, True):
        zipf = Zipf(1, 0.99, scattered=scattered)
        assert zipf.shares([0, 1]).tolist() == [1.0]
        assert zipf.draw([0.0, 0.999]).tolist() == [0, 0]
        assert zipf.density().breaks.tolist() == [0, 1]


@pytest.mark.parametrize("keys", [10, TABLE, TABLE + 1, 10**9])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_draws_invert_the_shares(keys: int, exponent: float) -> None:
    """Rank k is drawn for u just above the share of the ranks below it, k-1 just below."""
    zipf = Zipf(keys, exponent, scattered=False)
    ranks = np.unique(np.geomspace(1, keys - 1, 30).astype(np.int64))
    below = np.array([zipf.shares([0, k])[0] for k in ranks])
    width = np.array([zipf.shares([k, k + 1])[0] for k in ranks])
    clear = (width > 1e-12) & (below < 1.0)  # where a float tells the rank's two ends apart
    assert zipf.draw(below[clear] + 0.01 * width[clear]).tolist() == ranks[clear].tolist()
    before = below[clear] - 0.01 * width[clear]
    assert zipf.draw(before).tolist() == (ranks[clear] - 1).tolist()


@given(st.integers(1, 2**53), exponents, st.lists(st.floats(0, 1, exclude_max=True), max_size=30))
def test_draws_rise_with_the_uniforms(keys: int, exponent: float, uniforms: list[float]) -> None:
    drawn = Zipf(keys, exponent, scattered=False).draw(sorted(uniforms))
    assert (np.diff(drawn) >= 0).all()


@given(st.integers(1, 2**53), exponents, st.lists(st.floats(0, 1, exclude_max=True), max_size=30))
def test_the_uniform_lies_within_the_share_of_its_rank(
    keys: int, exponent: float, uniforms: list[float]
) -> None:
    zipf = Zipf(keys, exponent, scattered=False)
    for uniform, rank in zip(uniforms, zipf.draw(uniforms), strict=True):
        below, own = zipf.shares([0, rank, rank + 1])
        assert below - 1e-12 <= uniform <= below + own + 1e-12


@pytest.mark.parametrize("exponent", [0.5, 0.99, 1.0, 1.3])
@pytest.mark.parametrize("scattered", [False, True])
def test_draws_of_a_billion_keys_follow_the_shares(exponent: float, scattered: bool) -> None:
    zipf = Zipf(10**9, exponent, scattered=scattered)
    even, logarithmic = np.linspace(0, 10**9, 65), np.append(0, np.geomspace(100, 10**9, 13))
    bins = (even if scattered else logarithmic).astype(np.int64)
    uniforms = np.random.default_rng(20_140_901).random(100_000)
    seen = np.histogram(zipf.draw(uniforms), bins)[0]
    expected = zipf.shares(bins) * len(uniforms)
    assert expected.min() >= 10
    assert chisquare(seen, expected, sum_check=False).pvalue > 1e-4


@given(st.integers(1, 2**53), exponents)
def test_density_has_few_parts_that_fall(keys: int, exponent: float) -> None:
    density = Zipf(keys, exponent).density()
    assert len(density.mass) <= 64
    height = density.mass / np.diff(density.breaks)
    assert (np.diff(height) <= 1e-12 * height[:-1]).all()


@settings(max_examples=50)
@given(st.integers(1, 5_000))
def test_scatter_is_a_permutation(keys: int) -> None:
    assert np.sort(scatter(np.arange(keys), keys)).tolist() == list(range(keys))


@pytest.mark.parametrize("keys", [10**9, 2**30, 2**30 + 1, 2**53])
def test_scatter_spreads_the_popular_keys_evenly(keys: int) -> None:
    places = scatter(np.arange(100_000), keys)
    seen = np.histogram(places, np.linspace(0, keys, 129))[0]
    assert chisquare(seen).pvalue > 1e-4


def test_scattered_shares_place_every_popular_key() -> None:
    keys, hottest = 10**9, 3
    zipf = Zipf(keys, 1.0)
    for rank in range(hottest):
        place = int(scatter(np.array([rank]), keys)[0])
        alone = float(zipf.shares([place, place + 1])[0])
        ranked = float(Zipf(keys, 1.0, scattered=False).shares([rank, rank + 1])[0])
        assert alone == pytest.approx(ranked, rel=1e-9)


@given(st.integers(2, PLACED), exponents)
@settings(max_examples=20)
def test_scattered_shares_are_the_sorted_ones_elsewhere(keys: int, exponent: float) -> None:
    by_rank = Zipf(keys, exponent, scattered=False).shares(np.arange(keys + 1))
    by_place = Zipf(keys, exponent).shares(np.arange(keys + 1))
    assert_allclose(by_place[scatter(np.arange(keys), keys)], by_rank, atol=1e-12)


def test_a_scalar_draws_a_scalar() -> None:
    assert Zipf(10**9, 0.99).draw(0.5).shape == ()
