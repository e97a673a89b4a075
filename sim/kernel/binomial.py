"""The binomial distribution: how likely each number of successes is, from NumPy alone.

SciPy has it too, and takes longer to import than most scenarios to run.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Beyond so many standard deviations and trials from the mode, less than 1e-20 is left in all
# (Bernstein's inequality: exp(-x² / 2 / (sd² + x / 3)) each side, for x = 10 sd + 40).
DEVIATIONS, TRIALS = 10.0, 40


def binomial(trials: int, chance: float) -> tuple[Ints, Floats]:
    """(k,) numbers of successes in ``trials`` of that ``chance``, 0 to 1, and how likely each is.

    Numbers of which all together come up less than once in 1e20 are left out. Relative to the mode,
    each is its neighbour times the ratio (trials - k) p / (k + 1) / (1 - p): no logarithms of huge
    factorials lose digits, and the sum is 1.
    """
    chance = min(chance, 1.0)  # rounded shares may add up to a little more
    mode = min(int((trials + 1) * chance), trials)
    reach = math.ceil(DEVIATIONS * math.sqrt(trials * chance * (1.0 - chance))) + TRIALS
    up = np.arange(mode, min(mode + reach, trials), dtype=np.float64)
    down = np.arange(mode, max(mode - reach, 0), -1, dtype=np.float64)
    rising = np.cumprod((trials - up) * chance / ((up + 1.0) * (1.0 - chance)))
    falling = np.cumprod(down * (1.0 - chance) / ((trials - down + 1.0) * chance))
    relative = np.concatenate([falling[::-1], [1.0], rising])
    first = mode - len(falling)
    return np.arange(first, first + len(relative)), relative / relative.sum()
