"""Histograms of random variables, such as latencies, from which quantiles are read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many values fell into each of B bins.

    ``edges`` (B+1,): rising; bin b holds values v with edges[b] <= v < edges[b+1].
    ``counts`` (B,): values in each. ``total``: the sum of all values, exact.
    """

    edges: Floats
    counts: Ints
    total: float

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.counts) + 1 or (np.diff(self.edges) <= 0).any():
            raise ValueError("edges: expected one more than counts, rising")
        if (np.asarray(self.counts) < 0).any():
            raise ValueError("counts: expected none below 0")

    @classmethod
    def of_kernel(cls, counts: Sequence[int] | npt.NDArray[Any], total_ps: float) -> "Histogram":
        """In ns, what the kernel's ``Histogram`` (statistics.hpp) counted in ps."""
        held = np.asarray(counts if len(counts) else [0], dtype=np.int64)
        return cls(_bucket_edges_ns()[: len(held) + 1], held, total_ps / 1e3)

    @classmethod
    def of_values(cls, values_ps: Sequence[int]) -> "Histogram":
        """The same of values in ps."""
        buckets = Buckets()
        for value_ps in values_ps:
            buckets.add(value_ps)
        return buckets.histogram()

    def since(self, before: "Histogram") -> "Histogram":
        """The values that have come since then."""
        counts = self.counts.copy()
        counts[: len(before.counts)] -= before.counts
        return Histogram(self.edges, counts, self.total - before.total)

    @property
    def count(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Their mean; NaN of none."""
        return self.total / self.count if self.count else float("nan")

    def order_bin(self, rank: int) -> int:
        """The bin of the ``rank``-th smallest value, counted from 1."""
        if not 1 <= rank <= self.count:
            raise ValueError(f"rank: expected 1 to {self.count}")
        return int(np.searchsorted(np.cumsum(self.counts), rank))

    def quantile(self, part: float) -> float:
        """The smallest value that at least ``part`` (0 < part <= 1) of all do not exceed.

        Told as the middle of its bin: off by at most half of the bin's width. NaN of no values.
        """
        if not self.count:
            return float("nan")
        low, high = self.around(part)
        return 0.5 * (low + high)

    def around(self, part: float) -> tuple[float, float]:
        """The edges of the bin that holds the ``part``-quantile."""
        if not 0.0 < part <= 1.0:
            raise ValueError("part: expected above 0, up to 1")
        # Rounding must not make the 99th of 100 values the 100th.
        rank = math.ceil(part * self.count * (1.0 - 1e-12))
        return self.bounds(self.order_bin(min(max(rank, 1), self.count)))

    def bounds(self, bin_: int) -> tuple[float, float]:
        """The edges of a bin."""
        return float(self.edges[bin_]), float(self.edges[bin_ + 1])


def merged(histograms: Sequence[Histogram]) -> Histogram:
    """All values of several histograms; the shorter one's edges must be the first of the longer."""
    longest = max(histograms, key=lambda histogram: len(histogram.edges))
    counts = np.zeros(len(longest.counts), dtype=np.int64)
    for histogram in histograms:
        if not np.array_equal(histogram.edges, longest.edges[: len(histogram.edges)]):
            raise ValueError("histograms of different edges")
        counts[: len(histogram.counts)] += histogram.counts
    return Histogram(longest.edges, counts, float(sum(histogram.total for histogram in histograms)))


# The buckets of the kernel's histograms: 2^-7 of their power of two wide (kernel/statistics.hpp).
_PARTS, _SHIFTS = 128, 56


def bucket_of(value_ps: int) -> int:
    """The kernel's bucket that a value is counted in."""
    shift = max(value_ps.bit_length() - _PARTS.bit_length(), 0)
    return shift * _PARTS + (value_ps >> shift)


class Buckets:
    """Values in ps, counted one after another as the kernel's ``Histogram`` counts them."""

    def __init__(self) -> None:
        self.counts, self.total_ps = [0], 0

    def add(self, value_ps: int, count: int = 1) -> None:
        """So many of that value."""
        bucket = bucket_of(value_ps)
        self.counts += [0] * (bucket + 1 - len(self.counts))
        self.counts[bucket] += count
        self.total_ps += value_ps * count

    def histogram(self) -> Histogram:
        """In ns."""
        return Histogram.of_kernel(self.counts, float(self.total_ps))


@cache
def _bucket_edges_ns() -> Floats:
    first = np.arange(2 * _PARTS, dtype=np.float64)
    wider = [np.arange(_PARTS, 2 * _PARTS) * 2.0**shift for shift in range(1, _SHIFTS)]
    edges = np.concatenate([first, *wider]) / 1e3
    edges.setflags(write=False)  # shared by all callers
    return edges
