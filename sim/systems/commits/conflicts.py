"""Conflict rates of transactions, as a model of means.

A try reads records as of a snapshot, and aborts where one was overwritten since (``fresh``), or
is locked or overwritten between its reading and its locking (``undisturbed``). Writers have to
find their records fresh, too: a popular record that was just written is written again only by those
whose snapshot has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log, pi, sqrt

import numpy as np
import numpy.typing as npt

from .parameters import KeyDraw

Floats = npt.NDArray[np.float64]

ALONE, BINS = 100, 150  # most popular records that are looked at alone, and bins of the others
ROUNDS, NEAR = 60, 1e-6


@dataclass(frozen=True, eq=False)
class Popularity:
    """Bins of records that are asked for alike: how likely each one (B,), and how many (B,)."""

    chance: Floats
    count: Floats

    @cached_property
    def weight(self) -> Floats:
        """(B,) how likely a draw is of that bin."""
        return self.chance * self.count


@lru_cache(maxsize=16)
def popularity(keys: KeyDraw, records: int) -> Popularity:
    """Of ``records`` that are drawn so."""
    if keys.distribution == "hot":
        hot = keys.hot_records
        counts = np.array([hot, records - hot], dtype=np.float64)
        mass = np.array([keys.hot_probability, 1.0 - keys.hot_probability])
        return Popularity(mass / counts, counts)
    if keys.distribution != "zipf" or records <= ALONE:
        ranks = np.arange(1, records + 1.0) if keys.distribution == "zipf" else np.ones(1)
        weights = ranks ** -(keys.exponent if keys.distribution == "zipf" else 0.0)
        counts = np.ones(len(ranks)) if keys.distribution == "zipf" else np.array([float(records)])
        return Popularity(weights / (weights @ counts), counts)
    far = np.unique(np.round(np.geomspace(ALONE + 1, records + 1, BINS)))
    edges = np.concatenate([np.arange(1.0, ALONE + 1.0), far])
    counts = np.diff(edges)
    # The mean weight of a bin: the integral of rank^-exponent over it, by the midpoint rule.
    low, high, s = edges[:-1] - 0.5, edges[1:] - 0.5, keys.exponent
    if abs(s - 1.0) < 1e-9:
        whole = np.log(high / low)
    else:
        whole = (high ** (1.0 - s) - low ** (1.0 - s)) / (1.0 - s)
    weights = np.where(counts == 1.0, edges[:-1] ** -s, whole / counts)
    return Popularity(weights / (weights @ counts), counts)


@dataclass(frozen=True, eq=False)
class Freshness:
    """(B,) how likely a record of each bin was not written since a snapshot; ``mean`` of a draw."""

    of_bin: Floats
    mean: float


def fresh(popularity: Popularity, updates: int, commits: float, *, standing: bool) -> Freshness:
    """Of snapshots that do not have the last so many commits, of ``updates`` records each.

    A snapshot that moves on behind the commits: a record is fresh for 1 / rate on average, then
    stale for as long as the snapshot takes, in turn, at a rate in proportion to its popularity
    among those commits that come through. One that is ``standing``: each record is fresh until it
    is written once; so many records are no more.
    """
    if commits <= 0 or not updates:
        return Freshness(np.ones(len(popularity.chance)), 1.0)
    if standing:
        return _standing(popularity, updates * commits)
    mean, each = 1.0, np.empty(len(popularity.chance))
    if len(each) == 1:  # all are asked for alike
        return _evenly(float(popularity.chance[0]), float(popularity.weight[0]), updates * commits)
    for _ in range(ROUNDS):
        np.multiply(popularity.chance, updates * commits / mean, out=each)
        np.add(each, 1.0, out=each)
        np.divide(1.0, each, out=each)
        before, mean = mean, 0.5 * (mean + float(popularity.weight @ each))
        if abs(mean - before) < NEAR:
            break
    return Freshness(each, mean)


def _evenly(chance: float, weight: float, written: float) -> Freshness:
    mean = 1.0
    for _ in range(ROUNDS):
        each = 1.0 / (1.0 + written / mean * chance)
        before, mean = mean, 0.5 * (mean + weight * each)
        if abs(mean - before) < NEAR:
            break
    return Freshness(np.array([each]), mean)


def _standing(popularity: Popularity, written: float) -> Freshness:
    written = min(written, 0.999 * float(popularity.count.sum()))
    low, high = 0.0, 1.0
    while float(popularity.count @ -np.expm1(-popularity.chance * high)) < written:
        high *= 4.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if float(popularity.count @ -np.expm1(-popularity.chance * middle)) < written:
            low = middle
        else:
            high = middle
    each = np.exp(-popularity.chance * high)
    return Freshness(each, float(popularity.weight @ each))


def undisturbed(popularity: Popularity, known: Freshness, updates: int, commits: float) -> float:
    """How likely none of a transaction's ``updates`` records, which it found fresh, is taken by one
    of so many commits meanwhile."""
    among = popularity.weight * known.of_bin / known.mean
    taken = -np.expm1(-updates * commits * popularity.chance * known.of_bin / known.mean)
    return float(max(1.0 - float(among @ taken), 0.0)) ** updates


def largest_of(customers: int) -> float:
    """The mean of the largest of so many standard normal values (extreme value theory)."""
    if customers < 2:
        return 0.0
    if customers < 6:
        return (0.0, 0.0, 0.564, 0.846, 1.029, 1.163)[customers]
    high = sqrt(2.0 * log(customers))
    return high - (log(log(customers)) + log(4.0 * pi) - 2.0 * 0.5772) / (2.0 * high)
