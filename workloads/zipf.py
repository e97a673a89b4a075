"""Zipf keys: the r-th most popular of n keys, counted from 1, is accessed in proportion to r^-s.

Sums of r^-s are exact to floating point for any n and any s > 0, without a pass over the keys: the
first ``TABLE`` terms are added up, the others follow from the Euler-Maclaurin formula (NIST Digital
Library of Mathematical Functions, 2.10.1), whose remainder beyond rank ``TABLE`` is below 1e-12
for any exponent from 0 to 10.
"""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from .keys import Density, Floats, KeyDistribution, Keys

TABLE = 1_024
SEGMENTS = 64

# Scattered keys: so many of the most popular are placed one by one, the others (at exponent 1 and
# 10^9 keys each below 1e-6 of the accesses) count as spread evenly.
PLACED = 2**16


class PowerSum:
    """Sums of r^-exponent over ranks r, and their inverse."""

    def __init__(self, exponent: float) -> None:
        self.exponent = exponent
        terms = np.arange(1.0, TABLE + 1.0) ** -exponent
        self._table = np.concatenate([[0.0], np.cumsum(terms)])

    def between(self, low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
        """Sums over the ranks ``low``+1 … ``high``: whole numbers, arrays of one shape."""
        a, b = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        near = [self._table[np.minimum(x, TABLE).astype(np.int64)] for x in (a, b)]
        return np.asarray(near[1] - near[0] + self._far(np.maximum(a, TABLE), np.maximum(b, TABLE)))

    def _far(self, a: Floats, b: Floats) -> Floats:
        """The same for TABLE ≤ low ≤ high, by Euler-Maclaurin with one derivative."""
        from scipy.special import exprel  # slow to import

        s = self.exponent
        # ∫ x^-s dx = a^(1-s) (e^y - 1) / (1-s), y = (1-s) ln(b/a); in a form that also holds at
        # s = 1 and loses no digits where a and b are close.
        log_ratio = np.log1p((b - a) / a)
        integral = a ** (1.0 - s) * log_ratio * exprel((1.0 - s) * log_ratio)

        def ends(x: Floats) -> Floats:
            f = x**-s
            return np.asarray(f / 2.0 - s * f / (12.0 * x))

        return np.asarray(integral + ends(b) - ends(a))

    def rank_at(self, targets: Floats, ranks: int) -> Keys:
        """The largest k < ``ranks`` for which the sum over ranks 1 … k is at most the target."""
        table = self._table[: min(ranks, TABLE) + 1]
        found = np.searchsorted(table, targets, side="right") - 1
        far = np.flatnonzero(targets >= self._table[TABLE]) if ranks > TABLE else found[:0]
        if far.size:
            found[far] = self._far_rank_at(targets[far], ranks)
        return np.clip(found, 0, ranks - 1).astype(np.int64)

    def _far_rank_at(self, targets: Floats, ranks: int) -> Keys:
        """The same beyond the table: a guess, one step of Newton, then the exact rank near it.

        The guess inverts the midpoint rule: the sum over TABLE+1 … k is near the integral from
        TABLE + 1/2 to k + 1/2.
        """
        s, start, top = self.exponent, TABLE + 0.5, float(ranks - 1)
        # The integral, in units of its first value; y is kept above -1, where it reaches infinity.
        reach = (targets - self._table[TABLE]) * start ** (s - 1.0)
        y = np.maximum((1.0 - s) * reach, -1.0 + 1e-15)
        log_ratio = reach * np.divide(np.log1p(y), y, out=np.ones_like(y), where=y != 0.0)
        guess = start * np.exp(np.minimum(log_ratio, np.log(top + 1.0))) - 0.5
        guess = np.floor(np.clip(guess, TABLE, top))
        missing = targets - self.between(np.zeros_like(guess), guess)
        guess = np.floor(np.clip(guess + missing * guess**s, TABLE, top))
        return self._settled(guess, targets, ranks)

    def _settled(self, guess: Floats, targets: Floats, ranks: int) -> Keys:
        """``guess`` moved to sum(k) ≤ target < sum(k+1): a bracket around it, then halving."""

        def sums(k: Floats) -> Floats:
            return self.between(np.zeros_like(k), k)

        low, high, width = guess, np.minimum(guess + 1.0, float(ranks)), 1.0
        while (short := (low > TABLE) & (sums(low) > targets)).any():
            high = np.where(short, low, high)
            low = np.where(short, np.maximum(low - width, float(TABLE)), low)
            width *= 2.0
        width = 1.0
        while (short := (high < ranks) & (sums(high) <= targets)).any():
            low = np.where(short, high, low)
            high = np.where(short, np.minimum(high + width, float(ranks)), high)
            width *= 2.0
        while (high - low > 1.0).any():
            middle = np.floor((low + high) / 2.0)
            above = sums(middle) > targets
            high, low = np.where(above, middle, high), np.where(above, low, middle)
        return np.asarray(low, dtype=np.int64)


class Zipf(KeyDistribution):
    """Zipf keys. ``scattered``: popular keys lie all over the domain; else key = rank - 1."""

    def __init__(self, keys: int, exponent: float, *, scattered: bool = True) -> None:
        super().__init__(keys)
        self.exponent, self.scattered = exponent, scattered
        self._power = PowerSum(exponent)
        self._total = float(self._power.between(0.0, float(keys)))

    def density(self, time_s: float = 0.0) -> Density:
        """Over ranks, in at most ``SEGMENTS`` parts of like width on a logarithmic scale."""
        return self._density

    @cached_property
    def _density(self) -> Density:
        edges = np.rint(np.geomspace(1.0, float(self.keys), SEGMENTS)).astype(np.int64)
        breaks = np.unique(np.concatenate([[0], edges]))
        mass = self._power.between(breaks[:-1], breaks[1:])
        return Density(breaks, mass / mass.sum())

    def shares(self, bounds: npt.ArrayLike, time_s: float = 0.0) -> Floats:
        """Scattered keys beyond the first ``PLACED`` count as even."""
        edges = np.clip(np.asarray(bounds, dtype=np.int64), 0, self.keys)
        if not self.scattered:
            return np.asarray(self._power.between(edges[:-1], edges[1:]) / self._total)
        places, sums = self._placed
        below = sums[np.searchsorted(places, edges)]
        placed, width = np.diff(below), np.diff(edges)
        others = width - np.diff(np.searchsorted(places, edges))
        return np.asarray(placed + others * ((1.0 - sums[-1]) / max(self.keys - len(places), 1)))

    @cached_property
    def _placed(self) -> tuple[Keys, Floats]:
        """Places of the most popular keys, rising, and the running sums of their shares from 0."""
        ranks = np.arange(min(self.keys, PLACED))
        mass = self._power.between(ranks, ranks + 1) / self._total
        if len(ranks) == self.keys:
            mass /= mass.sum()
        places = scatter(ranks, self.keys)
        order = np.argsort(places)
        return places[order], np.concatenate([[0.0], np.cumsum(mass[order])])

    def scaled(self, keys: int) -> "Zipf":
        """The same exponent over fewer ranks."""
        return Zipf(keys, self.exponent, scattered=self.scattered)

    def draw(self, uniforms: npt.ArrayLike, time_s: float = 0.0) -> Keys:
        targets = np.asarray(uniforms, dtype=np.float64) * self._total
        drawn = self._power.rank_at(targets.ravel(), self.keys)
        places = scatter(drawn, self.keys) if self.scattered else drawn
        return places.reshape(targets.shape)


def scatter(ranks: Keys, keys: int) -> Keys:
    """(k,) the place of each rank (k,): a fixed permutation of 0 … ``keys``-1 that looks random.

    A Feistel network over the next even number of bits, walked until it falls into the domain
    (cycle walking: Black and Rogaway, Ciphers with Arbitrary Finite Domains, CT-RSA 2002); its
    round function is the finalizer of SplitMix64 (Steele et al., OOPSLA 2014).
    """
    half = np.uint64(max(1, -(-(keys - 1).bit_length() // 2)))
    places = _feistel(np.asarray(ranks, dtype=np.uint64), half)
    while (outside := np.flatnonzero(places >= np.uint64(keys))).size:
        places[outside] = _feistel(places[outside], half)
    return places.astype(np.int64)


def _feistel(values: npt.NDArray[np.uint64], half: np.uint64) -> npt.NDArray[np.uint64]:
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = values >> half, values & mask
    for turn in range(4):
        mixed = right + np.uint64((turn + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        left, right = right, left ^ ((mixed ^ (mixed >> np.uint64(31))) & mask)
    return np.asarray((left << half) | right)
