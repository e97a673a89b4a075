"""Intervals: how often they hold the truth, on processes whose truth is known.

An interval of 95% must hold it in 95% of many repetitions; how far the count may be off is
binomial, and bounds it at 1 in 10,000 (``holds``). Where a method is known to fall short, a test
says by how much.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known import known
from scipy import stats

from numatwin.sim.kernel.arrays import Floats
from numatwin.sim.kernel.histogram import Histogram
from numatwin.sim.run.statistics import (
    Interval,
    Sample,
    batch_means_interval,
    dependent,
    difference,
    mean_interval,
    quantile_interval,
    ratio,
    replicated_quantile,
    value_error,
)

REPEATS, LEVEL = 2_000, 0.95


def coverage(draw: Callable[[np.random.Generator], Interval | None], truth: float) -> int:
    """How many of ``REPEATS`` intervals hold the truth; each must be known."""
    held = 0
    for seed in range(REPEATS):
        interval = draw(np.random.default_rng([2016, seed]))
        assert interval is not None, f"seed {seed}"
        assert interval.low <= interval.value <= interval.high, f"seed {seed}"
        held += interval.low <= truth <= interval.high
    return held


def holds(held: int, least: float = LEVEL, most: float = LEVEL) -> bool:
    """Whether so many of ``REPEATS`` may come of a coverage between ``least`` and ``most``."""
    low, _ = stats.binom.interval(0.9999, REPEATS, least)
    _, high = stats.binom.interval(0.9999, REPEATS, most)
    return bool(low <= held <= high)


def sample(values: Floats) -> Sample:
    return Sample(float(values.mean()), tuple(values.tolist()))


def ends(interval: Interval | None) -> tuple[float, float]:
    found = known(interval)
    return found.low, found.high


def autoregressive(rng: np.random.Generator, count: int, factor: float) -> Floats:
    """A stationary series with mean 0 and variance 1, each value ``factor`` of that before it."""
    noise = rng.normal(size=count) * math.sqrt(1 - factor**2)
    noise[0] = rng.normal()
    series = np.empty(count)
    last = 0.0
    for k, each in enumerate(noise):
        series[k] = last = factor * last + each
    return series


@pytest.mark.parametrize("count", [2, 5, 20])
def test_mean_of_normal_values(count: int) -> None:
    held = coverage(lambda rng: mean_interval(rng.normal(7.0, 2.0, count), LEVEL), 7.0)
    assert holds(held), held


def test_mean_as_scipy_says() -> None:
    """The interval of a t-test, from another way to it."""
    values = [3.1, 2.7, 4.4, 3.9, 3.0]
    found = known(mean_interval(values, 0.9))
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    assert ends(found) == pytest.approx((expected.low, expected.high))
    assert found.value == pytest.approx(np.mean(values))


def test_mean_of_skewed_values_falls_short() -> None:
    """Five exponential values: t covers about 88%; ten times as many each come near 95%."""
    held = coverage(lambda rng: mean_interval(rng.exponential(1.0, 5), LEVEL), 1.0)
    assert holds(held, 0.86, 0.90), held
    means = coverage(
        lambda rng: mean_interval(rng.exponential(1.0, (5, 200)).mean(axis=1), LEVEL), 1.0
    )
    assert holds(means, 0.94), means


def test_about_another_figure() -> None:
    """Squared distances from it take the place of the variance: 3^2 + 1 + 1 over 2, over 3."""
    found = known(mean_interval([1.0, 3.0, 5.0], LEVEL, about=4.0))
    half = stats.t.ppf(0.975, 2) * math.sqrt(11 / 2 / 3)
    assert (found.low, found.value, found.high) == pytest.approx((4 - half, 4, 4 + half))


@pytest.mark.parametrize("values", [[], [1.0]])
def test_no_interval_of_one_value(values: list[float]) -> None:
    assert mean_interval(values, LEVEL) is None


def test_relative_width() -> None:
    assert Interval(10.0, 9.0, 12.0).relative == pytest.approx(0.2)
    assert Interval(0.0, 0.0, 0.0).relative == 0.0
    assert Interval(0.0, -1.0, 1.0).relative == math.inf


def test_stopping_where_the_interval_is_narrow() -> None:
    """The sequential procedure: known to hold the truth a little less often than it says.

    Normal values with a standard deviation of a tenth, from five on, until ±5%.
    """

    def sequential(rng: np.random.Generator) -> Interval | None:
        values = rng.normal(1.0, 0.1, 5).tolist()
        while (found := mean_interval(values, LEVEL)) is None or found.relative > 0.05:
            values.append(rng.normal(1.0, 0.1))
        return found

    held = coverage(sequential, 1.0)
    assert holds(held, 0.90, 0.95), held


@pytest.mark.sweep
def test_batch_means_of_a_dependent_series() -> None:
    """Where they tell, they hold the truth; taking values for independent holds far less."""
    held = naive = told = 0
    for seed in range(600):
        series = autoregressive(np.random.default_rng([1982, seed]), 1_000, 0.8)
        found = batch_means_interval(series, LEVEL)
        alone = mean_interval(series, LEVEL)
        assert alone is not None
        naive += alone.low <= 0 <= alone.high
        if found is not None:
            told += 1
            held += found.low <= 0 <= found.high
    assert told > 400
    assert stats.binomtest(held, told, 0.92, alternative="less").pvalue > 1e-4, (held, told)
    assert naive < 0.6 * 600


@pytest.mark.sweep
def test_batches_that_depend_on_each_other_tell_nothing() -> None:
    """Batches of fifty are far shorter than what the series remembers."""
    told = sum(
        batch_means_interval(autoregressive(np.random.default_rng(seed), 1_000, 0.999), LEVEL)
        is not None
        for seed in range(100)
    )
    assert told <= 10


@pytest.mark.parametrize(("count", "enough"), [(99, False), (100, True), (0, False)])
def test_too_few_values_for_batches(count: int, enough: bool) -> None:
    values = np.tile([1.0, 2.0, 4.0, 2.0, 1.0, 3.0, 5.0], 20)[:count]
    assert (batch_means_interval(values, LEVEL) is not None) is enough


def test_independent_values_pass_the_test_as_often_as_it_says() -> None:
    rejected = sum(
        dependent(np.random.default_rng(seed).normal(size=20)) for seed in range(REPEATS)
    )
    assert holds(rejected, 0.08, 0.12), rejected


def test_values_that_do_not_change_are_exact() -> None:
    found = batch_means_interval(np.full(200, 3.0), LEVEL)
    assert found == Interval(3.0, 3.0, 3.0)


def pairs(rng: np.random.Generator, count: int, correlation: float) -> tuple[Sample, Sample]:
    """Normal samples with means 10 and 12 and standard deviation 1, paired."""
    shared = rng.normal(size=count)
    own = rng.normal(size=(2, count))
    mixed = math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own
    return sample(10 + mixed[0]), sample(12 + mixed[1])


def test_pairs_that_move_together_are_told_apart_better() -> None:
    """By the root of 1 - correlation: a third of the width at 0.9, freedom apart."""
    rng = np.random.default_rng(7)
    width = {True: 0.0, False: 0.0}
    for _ in range(300):
        samples = pairs(rng, 20, 0.9)
        for paired in width:
            found = difference(*samples, LEVEL, paired)
            assert found is not None
            width[paired] += found.high - found.low
    assert width[True] / width[False] == pytest.approx(math.sqrt(0.1), rel=0.1)


def unequal(rng: np.random.Generator) -> tuple[Sample, Sample]:
    return sample(rng.normal(10.0, 0.3, 5)), sample(rng.normal(12.0, 1.0, 9))


Two = Callable[[np.random.Generator], tuple[Sample, Sample]]


@pytest.mark.parametrize(
    ("of", "truth", "samples", "paired", "within"),
    [
        (difference, 2.0, lambda rng: pairs(rng, 5, 0.0), True, (LEVEL, LEVEL)),
        (difference, 2.0, lambda rng: pairs(rng, 5, 0.9), True, (LEVEL, LEVEL)),
        (difference, 2.0, unequal, False, (0.945, 0.955)),  # Welch
        # Linearised: exact in the limit of many replications, near it for a tenth of spread.
        (ratio, 1.2, lambda rng: pairs(rng, 8, 0.9), True, (0.94, 0.96)),
        (ratio, 1.2, unequal, False, (0.94, 0.96)),
    ],
)
def test_intervals_of_two_samples_hold_as_often_as_they_say(
    of: Any, truth: float, samples: Two, paired: bool, within: tuple[float, float]
) -> None:
    held = coverage(lambda rng: of(*samples(rng), LEVEL, paired), truth)
    assert holds(held, *within), held


def test_welch_as_scipy_says() -> None:
    first, second = unequal(np.random.default_rng(3))
    found = difference(first, second, 0.9, False)
    test = stats.ttest_ind(second.replicates, first.replicates, equal_var=False)
    expected = test.confidence_interval(0.9)
    assert ends(found) == pytest.approx((expected.low, expected.high))


def test_paired_as_scipy_says() -> None:
    first, second = pairs(np.random.default_rng(3), 6, 0.5)
    found = difference(first, second, 0.9, True)
    expected = stats.ttest_rel(second.replicates, first.replicates).confidence_interval(0.9)
    assert ends(found) == pytest.approx((expected.low, expected.high))


def test_against_an_exact_value() -> None:
    """That of a plane that draws nothing: then it is one sample's own interval, moved."""
    drawn = sample(np.random.default_rng(5).normal(12.0, 1.0, 6))
    own = mean_interval(drawn.replicates, LEVEL)
    apart = difference(Sample(10.0), drawn, LEVEL, False)
    times = ratio(Sample(10.0), drawn, LEVEL, False)
    low, high = ends(own)
    assert ends(apart) == pytest.approx((low - 10, high - 10))
    assert ends(times) == pytest.approx((low / 10, high / 10))
    assert difference(Sample(10.0), Sample(12.0), LEVEL, False) == Interval(2.0, 2.0, 2.0)


def test_where_nothing_can_be_said() -> None:
    one, two = Sample(1.0, (1.0,)), Sample(2.0, (1.5, 2.5))
    assert difference(one, two, LEVEL, False) is None
    assert difference(one, one, LEVEL, True) is None
    assert ratio(Sample(0.0, (0.0, 0.0)), two, LEVEL, True) is None


def test_the_same_draws_give_no_difference() -> None:
    """Two planes with one trace: each pair is equal."""
    values = sample(np.random.default_rng(1).normal(size=5))
    found = difference(values, values, LEVEL, True)
    assert found == Interval(0.0, 0.0, 0.0)


@given(st.floats(1e-12, 1e12), st.floats(0.5, 0.999))
def test_units_do_not_matter(scale: float, level: float) -> None:
    first, second = unequal(np.random.default_rng(11))
    larger = [
        Sample(one.value * scale, tuple(np.multiply(one.replicates, scale)))
        for one in (first, second)
    ]
    for of, power in ((difference, scale), (ratio, 1.0)):
        plain, scaled = of(first, second, level, False), of(larger[0], larger[1], level, False)
        assert ends(scaled) == pytest.approx([end * power for end in ends(plain)])


FINE = np.linspace(0.0, 20.0, 20_001)


def counted(values: Floats, edges: Floats = FINE) -> Histogram:
    counts, _ = np.histogram(values, edges)
    return Histogram(edges, counts, float(values.sum()))


def test_median_of_a_hundred_by_order_statistics() -> None:
    """The 40th and the 61st of 100 values, as tables of the sign test say."""
    ranks = Histogram(np.arange(1.0, 102.0), np.ones(100, dtype=np.int64), 5_050.0)
    found = quantile_interval(ranks, 0.5, LEVEL)
    assert ends(found) == (40.0, 62.0)  # the outer edges of their bins
    assert value_error(ranks, 0.5) == 0.5


@pytest.mark.sweep
@pytest.mark.parametrize("part", [0.5, 0.9])
def test_percentiles_of_independent_values(part: float) -> None:
    """At least as sure as asked for, as counts are whole; and not much surer."""
    truth = -math.log(1 - part)
    held = coverage(
        lambda rng: quantile_interval(counted(rng.exponential(1.0, 200)), part, LEVEL), truth
    )
    assert holds(held, 0.95, 0.975), held


def test_coarse_bins_count_as_error() -> None:
    """However many values: the truth lies somewhere in their bin."""
    edges = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 40.0])
    values = np.random.default_rng(2).exponential(1.0, 1_000_000)
    found = quantile_interval(counted(values, edges), 0.9, LEVEL)
    assert ends(found) == (2.0, 4.0)


@pytest.mark.parametrize(
    ("count", "enough"), [(0, False), (300, False), (368, False), (7_000, True)]
)
def test_too_few_values_for_a_percentile(count: int, enough: bool) -> None:
    values = np.random.default_rng(4).exponential(1.0, count)
    assert (quantile_interval(counted(values), 0.999, LEVEL) is not None) is enough


@pytest.mark.sweep
def test_percentiles_over_replications_of_dependent_values() -> None:
    """Ten runs of values that remember those before them for a while.

    Order statistics of all of them together, as if independent, hold the truth far less often.
    """
    held = naive = 0
    repeats, truth = 300, stats.norm.ppf(0.9)
    edges = np.linspace(-8.0, 8.0, 3_201)
    for seed in range(repeats):
        rng = np.random.default_rng([1984, seed])
        noise = rng.normal(size=(300, 10)) * math.sqrt(1 - 0.9**2)
        series = np.empty((300, 10))
        series[0] = rng.normal(size=10)
        for k in range(1, 300):
            series[k] = 0.9 * series[k - 1] + noise[k]
        found = replicated_quantile([counted(run, edges) for run in series.T], 0.9, LEVEL)
        alone = quantile_interval(counted(series.ravel(), edges), 0.9, LEVEL)
        assert found is not None
        assert alone is not None
        held += found.low <= truth <= found.high
        naive += alone.low <= truth <= alone.high
    assert stats.binomtest(held, repeats, 0.94, alternative="less").pvalue > 1e-4, held
    assert naive < 0.7 * repeats


def test_percentiles_of_one_replication_are_unknown() -> None:
    one = counted(np.random.default_rng(1).exponential(1.0, 1_000))
    nothing = counted(np.array([]))
    assert replicated_quantile([one], 0.5, LEVEL) is None
    assert replicated_quantile([one, nothing], 0.5, LEVEL) is None
    assert math.isnan(value_error(nothing, 0.5))
