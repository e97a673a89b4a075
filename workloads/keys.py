"""Key distributions: the keys of a dense domain that operations access, over time."""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import floor

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]

# A move counts from a nanosecond before its time: a time that went through sums still finds it.
TIME_SLACK_S = 1e-9


@dataclass(frozen=True)
class Density:
    """A piecewise constant density: ``mass[i]`` lies evenly on keys ``breaks[i]:breaks[i+1]``.

    ``breaks`` (m+1,) rise strictly from 0 to the number of keys; ``mass`` (m,) sums to 1.
    """

    breaks: Keys
    mass: Floats


class KeyDistribution(ABC):
    """How accesses spread over the keys 0 … ``keys``-1.

    ``time_s`` is always counted from the start of the phase that the distribution belongs to.
    """

    scattered: bool = False
    """The hot keys lie all over the domain; ``density`` is then over ranks of popularity."""

    def __init__(self, keys: int) -> None:
        self.keys = keys

    @abstractmethod
    def density(self, time_s: float = 0.0) -> Density:
        """The density over places, or over ranks where ``scattered``."""

    @abstractmethod
    def shares(self, bounds: npt.ArrayLike, time_s: float = 0.0) -> Floats:
        """(k,) probability that an access falls into the places ``bounds[i]:bounds[i+1]``.

        ``bounds`` (k+1,) do not fall; what they cover beyond the domain has no share.
        """

    @abstractmethod
    def draw(self, uniforms: npt.ArrayLike, time_s: float = 0.0) -> Keys:
        """Keys by inverse transform, one for each number of ``uniforms`` in [0, 1)."""

    def change_times(self, until_s: float) -> list[float]:
        """When the distribution itself moves, rising, above 0 and below ``until_s``."""
        return []

    def later(self, elapsed_s: float) -> "KeyDistribution":
        """The same distribution with time counted from ``elapsed_s`` on."""
        return self

    @abstractmethod
    def scaled(self, keys: int) -> "KeyDistribution":
        """The same distribution over ``keys`` keys, at most as many as now."""


class PiecewiseKeys(KeyDistribution):
    """A distribution whose ``density`` is exact: shares and draws follow from it."""

    def shares(self, bounds: npt.ArrayLike, time_s: float = 0.0) -> Floats:
        density = self.density(time_s)
        below = np.interp(np.asarray(bounds, dtype=np.float64), density.breaks, _sums(density.mass))
        return np.maximum(np.diff(below), 0.0)

    def draw(self, uniforms: npt.ArrayLike, time_s: float = 0.0) -> Keys:
        density = self.density(time_s)
        sums, widths = _sums(density.mass), np.diff(density.breaks)
        targets = np.asarray(uniforms, dtype=np.float64)
        # The first part that ends above the target: a part without mass is never drawn.
        part = np.searchsorted(sums[1:], targets, side="right")
        part = np.minimum(part, np.flatnonzero(density.mass)[-1])
        inside = (targets - sums[part]) / density.mass[part] * widths[part]
        return np.asarray(
            density.breaks[part] + np.clip(inside, 0, widths[part] - 1).astype(np.int64)
        )


class Uniform(PiecewiseKeys):
    """Uniform keys."""

    def density(self, time_s: float = 0.0) -> Density:
        return Density(np.array([0, self.keys]), np.ones(1))

    def scaled(self, keys: int) -> "Uniform":
        return Uniform(keys)


class HotRange(PiecewiseKeys):
    """``share`` of the accesses evenly on keys ``first:end``, the rest evenly on all others."""

    def __init__(self, keys: int, first: int, end: int, share: float = 1.0) -> None:
        super().__init__(keys)
        self.first, self.end, self.share = first, end, share

    def density(self, time_s: float = 0.0) -> Density:
        return self._density_at(self.first)

    def scaled(self, keys: int) -> "HotRange":
        """At least one key stays hot."""
        first, end = self._scaled_range(keys)
        return HotRange(keys, first, end, self.share if end - first < keys else 1.0)

    def _scaled_range(self, keys: int) -> tuple[int, int]:
        """The range's first key, and the first after it, among fewer keys."""
        width = max((self.end - self.first) * keys // self.keys, 1)
        if self.end - self.first < self.keys:
            width = max(min(width, keys - 1), 1)  # the others keep a key
        first = min(self.first * keys // self.keys, keys - width)
        return first, first + width

    def _density_at(self, first: int) -> Density:
        end = first + self.end - self.first
        edges = np.array([0, first, end, self.keys])
        widths = np.diff(edges)
        outside = (1.0 - self.share) / max(self.keys - (end - first), 1)
        mass = np.array([outside * first, self.share, outside * (self.keys - end)])
        return Density(np.concatenate([[0], edges[1:][widths > 0]]), mass[widths > 0])


class MovingHotRange(HotRange):
    """A hot range that moves by ``step`` keys at ``first_move_s`` and each ``every_s`` after it.

    It moves ``moves`` times; by default as often as the domain holds it.
    """

    def __init__(
        self,
        keys: int,
        first: int,
        end: int,
        share: float = 1.0,
        *,
        step: int,
        every_s: float,
        moves: int | None = None,
        first_move_s: float | None = None,
    ) -> None:
        super().__init__(keys, first, end, share)
        room = keys - end if step > 0 else first
        self.moves_in_domain = room // abs(step)
        self.step, self.every_s = step, every_s
        self.moves = self.moves_in_domain if moves is None else moves
        self.first_move_s = every_s if first_move_s is None else first_move_s

    def density(self, time_s: float = 0.0) -> Density:
        return self._density_at(self.first + self.step * self.moves_by(time_s))

    def scaled(self, keys: int) -> "MovingHotRange":
        """Where not even a step of one key fits, it moves less often."""
        first, end = self._scaled_range(keys)
        room = keys - end if self.step > 0 else first
        width = max(abs(self.step) * keys // self.keys, 1)
        return MovingHotRange(
            keys,
            first,
            end,
            self.share if end - first < keys else 1.0,
            step=width if self.step > 0 else -width,
            every_s=self.every_s,
            moves=min(self.moves, room // width),
            first_move_s=self.first_move_s,
        )

    def moves_by(self, time_s: float) -> int:
        """Moves done at that time."""
        done = floor((time_s + TIME_SLACK_S - self.first_move_s) / self.every_s) + 1
        return min(max(done, 0), self.moves)

    def change_times(self, until_s: float) -> list[float]:
        moves = range(self.moves_by(0.0), self.moves_by(until_s))
        times = (self.first_move_s + k * self.every_s for k in moves)
        return [time for time in times if time < until_s]

    def later(self, elapsed_s: float) -> "MovingHotRange":
        later = copy(self)
        later.first_move_s -= elapsed_s
        return later


class Recorded(PiecewiseKeys):
    """A histogram: ``counts[i]`` accesses, evenly on keys ``first[i]:end[i]``; none in the gaps.

    The ranges rise and do not overlap; the counts are not negative, and not all zero.
    """

    def __init__(self, keys: int, first: Keys, end: Keys, counts: Floats) -> None:
        super().__init__(keys)
        self._first, self._end, self._counts = first, end, counts

    def density(self, time_s: float = 0.0) -> Density:
        return self._density

    def scaled(self, keys: int) -> "Recorded":
        """A key has the accesses of all keys that it stands for."""
        density = self.density()
        edges = np.unique((density.breaks.astype(object) * keys // self.keys).astype(np.int64))
        # Whole numbers, so that an edge is where it was: key k stands for those from k / factor on.
        places = -(-edges.astype(object) * self.keys // keys)
        below = np.interp(places.astype(np.float64), density.breaks, _sums(density.mass))
        return Recorded(keys, edges[:-1], edges[1:], np.maximum(np.diff(below), 0.0))

    @cached_property
    def _density(self) -> Density:
        breaks = np.unique(np.concatenate([[0], self._first, self._end, [self.keys]]))
        mass = np.zeros(len(breaks) - 1)
        # Scaled first, so that counts near the largest float do not sum to infinity.
        scaled = self._counts / self._counts.max()
        mass[np.searchsorted(breaks, self._first)] = scaled / scaled.sum()
        return Density(breaks, mass)


def _sums(mass: Floats) -> Floats:
    """(m+1,) running sums of ``mass`` from 0 to exactly 1."""
    sums = np.concatenate([[0.0], np.cumsum(mass)])
    return np.asarray(sums / sums[-1])
