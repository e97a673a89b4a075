"""MSER-5: by its definition, against another implementation, on series with a known warm-up."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from numatwin.sim.kernel.arrays import Floats
from numatwin.sim.run.statistics import LEFT_OUT, Truncation, mser, mser5, trends


def autoregressive(seed: int, count: int, height: float, decay: float) -> Floats:
    """x_i = 0.7 x_(i-1) + normal, as White, Cobb and Spratt test with, on a decaying transient."""
    noise = np.random.default_rng(seed).normal(size=count)
    series = np.zeros(count)
    for k in range(1, count):
        series[k] = 0.7 * series[k - 1] + noise[k]
    return series + height * np.exp(-np.arange(count) / decay)


@given(st.lists(st.integers(-50, 50), min_size=7, max_size=40))
def test_by_the_definition(means: list[int]) -> None:
    expected = []
    for d in range(len(means) - LEFT_OUT):
        rest = [Fraction(z) for z in means[d:]]
        centre = sum(rest) / len(rest)
        expected.append(float(sum((z - centre) ** 2 for z in rest) / len(rest) ** 2))
    assert mser(np.array(means, dtype=np.float64)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_worked_by_hand() -> None:
    """Thirty means of five: 16, 8, 4, 2 and then 1 and -1 in turn, 26 of them.

    Without the first four all vary alike: MSER(4) = 26 / 26^2 = 1/26. With the 2 left in, mean
    2/27: MSER(3) = (26 + 4 - 4/27) / 27^2 > 1/26. Without the first 1 too, mean -1/25:
    MSER(5) = (25 - 1/25) / 25^2 > 1/26.
    """
    means = np.array([16.0, 8, 4, 2] + [1.0, -1.0] * 13)
    found = mser(means)
    assert found[3:6] == pytest.approx(
        [(30 - 4 / 27) / 27**2, 1 / 26, (25 - 1 / 25) / 25**2], rel=1e-12
    )
    assert mser5(np.repeat(means, 5)) == Truncation(20, settled=True)


@pytest.mark.parametrize(
    ("seed", "height", "decay", "first"),
    [
        (0, 0, 1, 0),
        (1, 3, 40, 40),
        (2, 5, 60, 65),
        (3, 8, 80, 190),
        (4, 10, 30, 65),
        (5, 20, 200, 500),
    ],
)
def test_against_another_implementation(seed: int, height: float, decay: float, first: int) -> None:
    """What ``mser_m(batch_size=5, ignore_end=5)`` of kim-convergence 0.1.0 finds."""
    assert mser5(autoregressive(seed, 1_000, height, decay)).first == first


def test_what_is_left_out_takes_the_bias_away() -> None:
    """The mean of what is left is nearer to the true one, 0, in most of 200 series.

    Untruncated, the transient adds 10 * 50 / 1,000 = 0.5 to the mean.
    """
    kept, whole, unsettled = [], [], 0
    for seed in range(200):
        series = autoregressive(seed, 1_000, 10.0, 50.0)
        found = mser5(series)
        unsettled += not found.settled
        assert 50 <= found.first <= 500, f"seed {seed}"  # at 50, 3.7 of the 10 are left
        kept.append(series[found.first :].mean())
        whole.append(series.mean())
    assert unsettled <= 6  # it happens that the last values lie close to each other
    assert np.mean(whole) == pytest.approx(0.5, abs=0.03)
    # MSER trades bias for variance: about a tenth of the bias is left, surely less than a fifth.
    test = stats.ttest_1samp(kept, 0.1, alternative="less")
    assert test.pvalue < 0.001, test
    assert np.mean(np.square(kept)) < 0.2 * np.mean(np.square(whole))


def test_a_series_without_warm_up_loses_little() -> None:
    lost = [mser5(autoregressive(seed, 1_000, 0.0, 1.0)).first for seed in range(200)]
    assert np.median(lost) <= 50
    assert np.mean(lost) < 150


def test_equal_values_need_no_warm_up() -> None:
    assert mser5(np.full(1_000, 0.1)) == Truncation(0, settled=True)
    assert mser5([5.0] * 200 + [7.0] * 800) == Truncation(200, settled=True)


@pytest.mark.parametrize(
    "series", [np.arange(1_000.0), np.sqrt(np.arange(1_000.0)), np.arange(1_000.0) > 900]
)
def test_what_is_still_changing_is_not_settled(series: Floats) -> None:
    assert mser5(series) == Truncation(500, settled=False)


@pytest.mark.parametrize("count", [0, 1, 4, 25, 99])
def test_too_few_values_to_tell(count: int) -> None:
    assert mser5(np.ones(count)) == Truncation(count // 2, settled=False)


def test_a_growing_queue_trends() -> None:
    """A random walk upwards, whose steps grow; MSER-5 alone passes many of these."""
    seen = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        walk = np.cumsum(rng.normal(1.0, 3.0, 1_000)) * rng.exponential(1.0, 1_000)
        seen += trends(walk)
    assert seen >= 97


def test_what_has_settled_seldom_trends() -> None:
    """One in a thousand, were its parts independent; they nearly are."""
    seen = sum(trends(autoregressive(seed, 1_000, 0.0, 1.0)) for seed in range(1_000))
    assert stats.binomtest(seen, 1_000, 0.005, alternative="greater").pvalue > 1e-4, seen
    assert not trends(np.ones(1_000))
    assert not trends(np.arange(19.0))
