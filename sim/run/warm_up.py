"""Where a warm-up ends: MSER-5, the marginal standard error rule on means of five.

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

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

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
