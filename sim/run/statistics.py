"""Confidence intervals: of means, differences, ratios and percentiles of random runs.

Replications are runs with independent draws, so that their figures are independent and, being
means over much that happens, nearly normal: intervals are Student's t of them. Where a figure is no
mean of the replications' (a percentile of all latencies, the use of the resource that is busiest on
average) the interval stands around that figure, with their squared distances from it in place of
the variance (sectioning: Asmussen and Glynn, Stochastic Simulation, 2007, III.5a).

Each interval holds the truth with its confidence on its own; of many, some miss it.

Where a warm-up ends: MSER-5, the marginal standard error rule on means of five.

Series x_1 … x_n of counts in equally long intervals; z_1 … z_m the means of five of them each,
m = n / 5 rounded down. With the first d of the z left out, their marginal standard error is

    MSER(d) = 1 / (m - d)^2 * sum over j > d of (z_j - mean of z_(d+1) … z_m)^2,

and the warm-up ends at the d with the smallest, the first of equals. The last few d are not looked
at, as a handful of values may be close to each other by chance. Where the smallest stands in the
second half, the series is too short to tell.

K. P. White, M. J. Cobb, S. C. Spratt: A comparison of five steady-state truncation heuristics for
simulation, WSC 2000. K. Hoad, S. Robinson, R. Davies: Automating warm-up length estimation, JORS
61 (2010), for the last few values and for the rule of the second half.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernel.arrays import Floats
from ..kernel.histogram import Histogram, merged

Values = Sequence[float] | Floats

# Within one run: twenty batches, as more batches are little gain (Schmeiser, Batch size effects,
# Operations Research 30, 1982, 10 to 30), each of at least this many intervals.
BATCHES, BATCH_MIN = 20, 5
# Batches pass for independent unless von Neumann's test rejects it, one-sided, at this level.
TEST_LEVEL = 0.1


@dataclass(frozen=True)
class Interval:
    """An estimate and the bounds between which the truth is expected, all in the same unit."""

    value: float
    low: float
    high: float

    @property
    def relative(self) -> float:
        """The larger half over the estimate's size; infinite about 0, unless there is none."""
        half = max(self.value - self.low, self.high - self.value)
        if half == 0:
            return 0.0
        return half / abs(self.value) if self.value else math.inf


def mean_interval(values: Values, confidence: float, about: float | None = None) -> Interval | None:
    """Of the mean of independent ``values``, or of a figure ``about`` it that they estimate too.

    None of fewer than two values.
    """
    found = np.asarray(values, dtype=np.float64)
    if len(found) < 2:
        return None
    centre = float(found.mean()) if about is None else about
    error = math.sqrt(float(((found - centre) ** 2).sum()) / (len(found) - 1) / len(found))
    return _t_interval(centre, error, len(found) - 1, confidence)


def batch_means_interval(
    series: Values, confidence: float, about: float | None = None
) -> Interval | None:
    """Of the mean of a stationary ``series`` whose values depend on those before them.

    Its values are averaged in twenty batches, of which t tells. None, "unknown", of fewer than a
    hundred values, and where the batches themselves are seen to depend on each other: the run is
    too short to tell how far its mean is off. The oldest values that fill no batch are left out.
    """
    found = np.asarray(series, dtype=np.float64)
    size = len(found) // BATCHES
    if size < BATCH_MIN:
        return None
    means = batch_means(found[len(found) - BATCHES * size :], size)
    return None if dependent(means) else mean_interval(means, confidence, about)


def dependent(values: Values) -> bool:
    """Whether values rise and fall together with their neighbours, by von Neumann's ratio.

    Under independence C = 1 - sum (y_i - y_(i+1))^2 / (2 sum (y_i - mean)^2) is nearly normal, with
    mean 0 and variance (n - 2) / (n^2 - 1) (Fishman and Yarberry, An implementation of the batch
    means method, INFORMS Journal on Computing 9, 1997).
    """
    from scipy.special import ndtr  # slow to import

    found = np.asarray(values, dtype=np.float64)
    count = len(found)
    squares = float(((found - found.mean()) ** 2).sum())
    if squares == 0 or count < 3:
        return False
    statistic = 1.0 - float((np.diff(found) ** 2).sum()) / (2.0 * squares)
    deviation = math.sqrt((count - 2) / (count**2 - 1))
    return bool(ndtr(-statistic / deviation) < TEST_LEVEL)


@dataclass(frozen=True)
class Sample:
    """A figure of one alternative: its ``value``, and that of each replication.

    ``replicates`` is empty where nothing was drawn at random: the value is exact.
    """

    value: float
    replicates: tuple[float, ...] = ()


def difference(first: Sample, second: Sample, confidence: float, paired: bool) -> Interval | None:
    """Of ``second`` less ``first``. ``paired``: both have the same draws, replication by
    replication, so that much of what is random cancels; else Welch's interval.

    None where either has one replication only.
    """
    value = second.value - first.value
    if paired:
        differences = np.subtract(second.replicates, first.replicates)
        return mean_interval(differences, confidence, about=value)
    return _welch(value, (_squared_error(first), _squared_error(second)), confidence)


def ratio(first: Sample, second: Sample, confidence: float, paired: bool) -> Interval | None:
    """Of ``second`` over ``first``: t of the linearised ratio r = b / a, whose error is that of
    (b_i - r a_i) / a (Cochran, Sampling Techniques, 1977, chapter 6); None if unknown.
    """
    if first.value == 0:
        return None
    value = second.value / first.value
    if paired:
        left = np.subtract(second.replicates, np.multiply(value, first.replicates)) / first.value
        around = mean_interval(left, confidence, about=0.0)
        return around and Interval(value, value + around.low, value + around.high)
    scaled = [
        None if error is None else (error[0] * (scale / first.value) ** 2, error[1])
        for error, scale in ((_squared_error(first), value), (_squared_error(second), 1.0))
    ]
    return _welch(value, scaled, confidence)


def _squared_error(sample: Sample) -> tuple[float, int] | None:
    """The squared error of its value, and its degrees of freedom; 0 if exact, None if unknown."""
    count = len(sample.replicates)
    if count == 0:
        return 0.0, 1
    if count == 1:
        return None
    squares = float(((np.array(sample.replicates) - sample.value) ** 2).sum())
    return squares / (count - 1) / count, count - 1


def _welch(
    value: float, errors: Sequence[tuple[float, int] | None], confidence: float
) -> Interval | None:
    """t about ``value`` with the degrees of freedom of Welch and Satterthwaite."""
    known = [error for error in errors if error is not None]
    if len(known) < len(errors):
        return None
    squared = math.fsum(error for error, _ in known)
    if squared == 0:
        return Interval(value, value, value)
    # Of shares, as squares of tiny errors would vanish.
    freedom = 1.0 / math.fsum((error / squared) ** 2 / count for error, count in known)
    return _t_interval(value, math.sqrt(squared), freedom, confidence)


def _t_interval(value: float, error: float, freedom: float, confidence: float) -> Interval:
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, 0.5 + 0.5 * confidence)) * error
    return Interval(value, value - half, value + half)


def quantile_interval(histogram: Histogram, part: float, confidence: float) -> Interval | None:
    """Of the ``part``-quantile of independent values, by order statistics.

    How many of n values lie below the true quantile is binomial, so that it lies between two of
    them with at least this confidence, whatever their distribution (Conover, Practical
    Nonparametric Statistics, 3.2). The bounds are the outer edges of these two's bins: how coarse
    the histogram is counts as error. None where there are too few values, so that a bound would
    lie beyond all of them.
    """
    from scipy.stats import binom  # slow to load: only where there are latencies

    count = histogram.count
    low = int(binom.ppf(0.5 - 0.5 * confidence, count, part)) if count else 0
    high = int(binom.ppf(0.5 + 0.5 * confidence, count, part)) + 1 if count else 1
    if low < 1 or high > count:
        return None
    value = histogram.quantile(part)
    at_least, _ = histogram.bounds(histogram.order_bin(low))
    _, at_most = histogram.bounds(histogram.order_bin(high))
    return Interval(value, at_least, at_most)


def replicated_quantile(
    histograms: Sequence[Histogram], part: float, confidence: float
) -> Interval | None:
    """Of the ``part``-quantile of all values of several replications.

    Values within a replication depend on each other, so that order statistics alone tell too small
    an error: the bounds hold those by sectioning too, half a bin added. None of fewer than two
    replications, where one of them has no value, or where all have too few together.
    """
    if len(histograms) < 2 or not all(histogram.count for histogram in histograms):
        return None
    whole = merged(histograms)
    ordered = quantile_interval(whole, part, confidence)
    each = [histogram.quantile(part) for histogram in histograms]
    around = mean_interval(each, confidence, about=whole.quantile(part))
    if ordered is None or around is None:
        return None
    error = value_error(whole, part)
    return Interval(
        around.value,
        max(min(ordered.low, around.low - error), float(whole.edges[0])),
        max(ordered.high, around.high + error),
    )


def value_error(histogram: Histogram, part: float) -> float:
    """How far the ``part``-quantile may be off by the histogram's bins alone: half of a width."""
    if not histogram.count:
        return math.nan
    low, high = histogram.around(part)
    return 0.5 * (high - low)


BATCH = 5
LEFT_OUT = 5  # of the last means of five
BATCHES_MIN = 20

# A trend: Kendall's test on the means of so many parts. Values that depend on each other look like
# one more often than independent ones do, hence the low level.
TREND_PARTS, TREND_LEVEL = 20, 1e-3


@dataclass(frozen=True)
class Truncation:
    """What MSER-5 says of a series.

    ``first``: the position of the first value that counts. ``settled``: False where the series is
    too short to tell: then the first half is left out, and may not be enough.
    """

    first: int
    settled: bool


def mser5(series: Sequence[float] | Floats) -> Truncation:
    """Where the warm-up of ``series`` ends."""
    values = np.asarray(series, dtype=np.float64)
    statistic = mser(batch_means(values, BATCH))
    half = len(values) // BATCH // 2
    if len(values) // BATCH < BATCHES_MIN:
        return Truncation(len(values) // 2, settled=False)
    best = int(np.argmin(statistic))
    if best > half:
        return Truncation(half * BATCH, settled=False)
    return Truncation(best * BATCH, settled=True)


def trends(series: Sequence[float] | Floats) -> bool:
    """Whether a series rises or falls all the way, by Mann and Kendall's test on the means of
    twenty parts; False of fewer values.

    MSER-5 does not see a growing queue whose noise grows with it.
    """
    from scipy.stats import kendalltau  # slow to load: only of random runs

    values = np.asarray(series, dtype=np.float64)
    size = len(values) // TREND_PARTS
    if not size:
        return False
    means = batch_means(values[len(values) - TREND_PARTS * size :], size)
    p_value = float(kendalltau(np.arange(TREND_PARTS), means).pvalue)
    return not math.isnan(p_value) and p_value < TREND_LEVEL


def mser(means: Floats) -> Floats:
    """MSER(d) for each d that is looked at, from 0 on."""
    # From the last value on: sums over those after d. Less the last value, equal ones give 0.
    rest = (means - means[-1:])[::-1]
    count = np.arange(1, len(rest) + 1)
    squares = np.cumsum(rest**2) - np.cumsum(rest) ** 2 / count
    statistic = (np.maximum(squares, 0.0) / count**2)[::-1]
    return np.asarray(statistic[: max(len(statistic) - LEFT_OUT, 0)])


def batch_means(values: Floats, size: int) -> Floats:
    """(n // size,) means of ``size`` values each; what is left over at the end is dropped."""
    count = len(values) // size
    return np.asarray(values[: count * size].reshape(count, size).mean(axis=1))
