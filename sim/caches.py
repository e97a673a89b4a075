"""Cache hit rates by Che's approximation, and the coherence state in which the hits are found.

A cache of C lines under least-recently-used replacement behaves as if each line stayed for one
characteristic time T after its last use (Che, Tung and Wang 2002; Fricker, Robert and Roberts 2012):

    sum over lines of (1 - exp(-rate * T)) = C,    P(hit) = 1 - exp(-rate * T)

Lines are grouped into regions of equal popularity, so that an index of 10^9 keys is a dozen numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Resident:
    """What a cache holds of each region: hit probability (R,), and the characteristic time."""

    hit: Floats
    time: float
    """In the unit of 1 / rate; infinite where everything fits."""


def resident(lines: Floats, rate: Floats, capacity_lines: float) -> Resident:
    """Hit probabilities of regions with ``lines`` (R,) cache lines, used at ``rate`` (R,) in all.

    Only the proportions of the rates matter. Lines that are never used take no room; a region
    without lines always hits.
    """
    used = (lines > 0) & (rate > 0)
    hit = np.where(lines > 0, 0.0, 1.0)
    n, per_line = lines[used], rate[used] / lines[used]
    if n.sum() <= capacity_lines:
        hit[used] = 1.0
        return Resident(hit, float("inf"))
    if capacity_lines <= 0:
        return Resident(hit, 0.0)
    # Newton on log T: the occupancy is a smooth, rising and concave function of it.
    low, high = capacity_lines / float(rate[used].sum()), float("inf")
    time = low
    for _ in range(60):
        stay = np.exp(-per_line * time)
        error = float(n @ (1 - stay)) - capacity_lines
        if error < 0:
            low = time
        else:
            high = time
        slope = float((n * per_line) @ stay)
        step = time - error / slope if slope > 0 else float("inf")
        if not low < step < high:
            step = 2 * time if high == float("inf") else 0.5 * (low + high)
        if abs(step - time) <= 1e-10 * time:
            time = step
            break
        time = step
    hit[used] = -np.expm1(-per_line * time)
    return Resident(hit, time)


def shared_state(hit: Floats, others: int) -> Floats:
    """Probability that a hit finds its line in state Shared or Forward (MESIF).

    ``hit`` (R,): hit probability of each region in any one of the caches; ``others``: caches beside
    this one that read the same lines at the same rate r.

    A line is still Exclusive if no other cache held it when it was fetched here, and none has read
    it since. The first has probability (1 - hit)^others. For the second: a hit is the k-th of its
    run with probability (1 - hit) hit^(k-1), so the line's age is a sum of k gaps, each exponential
    and shorter than T, and with g = E[exp(-others r gap) | gap < T] =
    (1 - (1 - hit)^(others + 1)) / ((others + 1) hit) the sum over k is (1 - hit) g / (1 - hit g).
    """
    if others == 0:
        return np.zeros_like(hit)
    miss = 1.0 - hit
    hit_g = (1.0 - miss ** (others + 1)) / (others + 1)  # hit * g
    g = np.divide(hit_g, hit, out=np.ones_like(hit), where=hit > 0)
    return np.asarray(1.0 - miss**others * miss * g / (1.0 - hit_g))
