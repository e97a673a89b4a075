"""Finds the steps of a noisy time series that are larger than its noise.

With x_k the values and w_k their weights (lengths, the mean one 1), the steps f are the piecewise
constant values with the least

    sum over k of w_k (x_k - f_k)^2  +  RARE * 2 s^2 ln n * (number of steps)

where s is the standard deviation of the noise and n the number of values. Each step has two
parameters, its place and its height, so that with RARE = 1 this is the Bayesian information
criterion (Schwarz, The Annals of Statistics 6, 1978; for steps: Yao, Statistics & Probability
Letters 6, 1988), which is right for independent normal noise. That of a real host comes in bursts.
What stays visible: of one value at an end, a fall of about sqrt(4 ln n) standard deviations (3.5 of
20 values), of m values 1 / sqrt(m) of that; in between, where it takes two steps, sqrt(2) times as
much.

The least is found by dynamic programming over the last step's beginning (Jackson et al., IEEE
Signal Processing Letters 12, 2005). A series without noise is its own steps.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

RARE = 2.0
# Of fewer values nothing can be said of their noise.
VALUES_MIN = 5
# The median of |x - 2 y + z| of independent normal draws, in their standard deviations.
MEDIAN_BEND = 0.6745 * math.sqrt(6.0)

Floats = npt.NDArray[np.float64]


def noise_of(values: Floats, lengths: Floats) -> float:
    """Standard deviation of the noise of ``values``.

    Told by how far each lies from the line through its neighbours: a steady rise is no noise, and a
    few steps hardly count. A series of which most of the second half lies on lines, or of which
    very few values lie there, has none: it is exact.
    """
    ends = np.cumsum(lengths)
    late = values[ends > ends[-1] / 2]
    if len(late) < VALUES_MIN or np.median(np.abs(np.diff(late, 2))) == 0.0:
        return 0.0
    return float(np.median(np.abs(np.diff(values, 2)))) / MEDIAN_BEND


def steps(values: Floats, lengths: Floats) -> Floats:
    """(n,) the height of the step that each of ``values`` (n,) belongs to; ``lengths`` (n,) > 0."""
    noise, count = noise_of(values, lengths), len(values)
    if noise == 0.0:
        return values
    each = RARE * 2.0 * noise**2 * math.log(count)
    weight = lengths / lengths.mean()
    # About their mean: sums of squares of large numbers would lose what distinguishes steps.
    away = values - values.mean()
    weights, sums, squares = (
        np.concatenate([[0.0], np.cumsum(part)])
        for part in (weight, weight * away, weight * away**2)
    )
    least, begins = np.zeros(count + 1), np.zeros(count + 1, dtype=np.int64)
    for end in range(1, count + 1):
        width, total = weights[end] - weights[:end], sums[end] - sums[:end]
        cost = least[:end] + each + (squares[end] - squares[:end] - total**2 / width)
        begins[end] = np.argmin(cost)
        least[end] = cost[begins[end]]
    found, end = np.empty(count), count
    while end > 0:
        first = int(begins[end])
        part = slice(first, end)
        found[part] = np.average(values[part], weights=weight[part])
        end = first
    return found
