"""Cache hit rates by Che's approximation, and the coherence state in which the hits are found.

A cache of C lines under least-recently-used replacement behaves as if each line stayed for one
characteristic time T after its last use (Che, Tung and Wang 2002; Fricker et al. 2012):

    sum over lines of (1 - exp(-rate * T)) = C,    P(hit) = 1 - exp(-rate * T)

Lines are grouped into regions of equal popularity: an index of 10^9 keys is a dozen numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...inputs.shared_work import KEPT_MAX, once, sharing
from ...topologies.machine import CacheLevel, Node
from ..kernel.arrays import Flags, Floats
from .link_traffic import LINE_BYTES

# Answers of this many numbers at most are kept while work is shared: of 32 nodes, not of 1,024.
KEPT_SIZE_MAX = 2**13


def hit_rates(lines: Floats, rate: Floats, capacity_lines: Floats) -> Floats:
    """(n, R) hit probability in n caches of R regions each.

    ``lines`` (n, R): cache lines of each region; ``rate`` (n, R): how often the whole region is
    used, of which only the proportions matter; ``capacity_lines`` (n,). Lines that are never used
    take no room; a region without lines always hits. The answer must not be changed: runs that
    share work and have the same question get the same one.
    """
    if not sharing() or lines.size > KEPT_SIZE_MAX:
        return _hit_rates(lines, rate, capacity_lines)
    key = (lines.shape, lines.tobytes(), rate.tobytes(), capacity_lines.tobytes())
    return once(
        "hit rates", key, lambda: _hit_rates(lines, rate, capacity_lines), lambda made: 4 * KEPT_MAX
    )


def last_level_hits(
    lines: Floats, rate: Floats, in_private: Floats, room_lines: Floats, exclusive: Flags
) -> Floats:
    """(n, R) hit probability in last-level caches, of accesses that miss the private ones above.

    ``in_private`` (n, R): the part of all accesses that hit there. ``room_lines`` (n,): of the last
    level; of an ``exclusive`` one (n,), which holds what the private ones drop, of all together:
    what they drop was used last of what it holds, so that all are one cache.
    """
    together, missed = exclusive[:, None], 1.0 - in_private
    found = hit_rates(lines, np.where(together, rate, rate * missed), room_lines)
    beyond = np.maximum(found - in_private, 0.0) / np.where(missed > 0.0, missed, 1.0)
    return np.where(together, beyond, found)


def _hit_rates(lines: Floats, rate: Floats, capacity_lines: Floats) -> Floats:
    used = (lines > 0) & (rate > 0)
    n = np.where(used, lines, 0.0)
    per_line = np.divide(rate, lines, out=np.zeros_like(rate), where=used)
    capacity = np.asarray(capacity_lines, dtype=np.float64)
    fits = n.sum(axis=1) <= capacity
    hit = np.where(lines > 0, 0.0, 1.0)
    hit[used & fits[:, None]] = 1.0
    rows = np.flatnonzero(~fits & (capacity > 0))
    if len(rows):
        n, per_line, wanted = n[rows], per_line[rows], capacity[rows]
        found = -np.expm1(-per_line * _characteristic_time(n, per_line, wanted)[:, None])
        hit[rows] = np.where(used[rows], found, hit[rows])
    return hit


def _characteristic_time(n: Floats, per_line: Floats, capacity: Floats) -> Floats:
    """(n,) T of each row, by Newton's method kept within a bracket.

    The occupancy is a smooth, rising and concave function of T: from the left, Newton's steps
    never overshoot.
    """
    # Occupancy is at most rate * T: too short.
    time = capacity / (n * per_line).sum(axis=1)
    for _ in range(200):
        stay = np.exp(-per_line * time[:, None])
        error = capacity + (n * np.expm1(-per_line * time[:, None])).sum(axis=1)
        slope = (n * per_line * stay).sum(axis=1)
        step = np.divide(error, slope, out=np.zeros_like(error), where=slope > 0)
        # Far out on the flat part a step is long: no more than three times as far at once.
        time = np.minimum(time + np.maximum(step, 0.0), 3.0 * time)
        if (step <= 1e-10 * time).all():
            break
    return np.asarray(time)


def shared_state(hit: Floats, others: int) -> Floats:
    """Probability that a hit finds its line in state Shared or Forward (MESIF).

    ``hit`` (R,): hit probability of each region in any of the caches; ``others``: number of other
    caches that read the same lines at the same rate r.

    A line is still Exclusive if no other cache held it when it was fetched here, and none has read
    it since. The first has probability (1 - hit)^others. For the second: a hit is the k-th of its
    run with probability (1 - hit) hit^(k-1), so the line's age is a sum of k gaps, each exponential
    and shorter than T, and with g = E[exp(-others r gap) | gap < T] =
    (1 - (1 - hit)^(others + 1)) / ((others + 1) hit) the sum over k is (1 - hit) g / (1 - hit g).
    """
    if others == 0:
        return np.zeros_like(hit)
    miss = 1.0 - hit
    with np.errstate(divide="ignore"):  # all is hit
        hit_g = -np.expm1((others + 1) * np.log1p(-hit)) / (others + 1)  # hit * g
    g = np.divide(hit_g, hit, out=np.ones_like(hit), where=hit > 0)
    return np.asarray(1.0 - miss**others * miss * g / (1.0 - hit_g))


@dataclass(frozen=True)
class CacheFacts:
    """Caches of one level, arrays (n,): cores that share one, lines of one, latency of a hit.

    0 lines where there is no such cache, 0 s where the latency is unknown. ``exclusive`` (n,): of
    the last level, whether it holds only what those above it have dropped.
    """

    sharers: Floats
    lines: Floats
    latency_s: Floats
    exclusive: Flags

    def instances(self, cores: Floats) -> Floats:
        """(n,) how many of them so many ``cores`` (n,) of each node use, at least one."""
        return np.maximum(np.ceil(cores / self.sharers), 1.0)


def cache_facts(nodes: Sequence[Node], below: int) -> CacheFacts:
    """Of the caches so many levels before the last one."""
    caches = [_cache_below(node, below) for node in nodes]
    sharers = np.array([float(cache.shared_by_cores) if cache else 1.0 for cache in caches])
    lines = np.array([cache.size_bytes / LINE_BYTES if cache else 0.0 for cache in caches])
    latency_ns = [cache.latency_ns or 0.0 if cache else 0.0 for cache in caches]
    exclusive = np.array([below == 0 and node.exclusive for node in nodes])
    return CacheFacts(sharers, lines, np.array(latency_ns) * 1e-9, exclusive)


def _cache_below(node: Node, below: int) -> CacheLevel | None:
    """The cache so many levels before the last one; the first level counts as part of the core."""
    levels = sorted((c for c in node.caches if c.level > 1), key=lambda cache: -cache.level)
    if not levels and below == 0:
        return max(node.caches, key=lambda cache: cache.level, default=None)
    return levels[below] if below < len(levels) else None
