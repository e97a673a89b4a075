"""What others take of a core: interruptions, and times in which it goes slower than usual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..topologies.schema import (
    DISTURBANCE_MAX_S,
    PACE_SHARES,
    Fact,
    MachineDescription,
)
from ..topologies.schema import Apart as Facts

Floats = npt.NDArray[np.float64]
APART_PLAYED_MAX_S, APART_LEAST_S = 0.5e-3, 1e-9


@dataclass(frozen=True)
class Paces:
    """A core's pace goes up and down, and stays as it is for ``lasts_s`` on average.

    ``slowdown`` (K,): how many times as long as usual work takes in the slowest ``share`` (K,),
    from 0 to 1, of the time; ``memory_slowdown`` (K,): the same of waits for memory. Straight lines
    in between.
    """

    lasts_s: float
    share: Floats
    slowdown: Floats
    memory_slowdown: Floats

    def mean(self, slowdown: Floats) -> float:
        """Work that is done in a time, of what would be at the usual pace: the mean of 1 over the
        slowdown (K,).
        """
        first, last = slowdown[:-1], slowdown[1:]
        ratio = last / first
        flat = np.isclose(ratio, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(flat, 1.0 / first, np.log(ratio) / (last - first))
        return float(np.diff(self.share) @ each)


@dataclass(frozen=True)
class Interruptions:
    """``every_s``: from the end of one to the beginning of the next, on average, exponentially
    distributed; ``lengths_s`` (K,): of each kind; ``share`` (K,): which of all are of this kind or
    one before it, up to 1.
    """

    every_s: float
    lengths_s: Floats
    share: Floats


@dataclass(frozen=True)
class Apart:
    """Cores are near each other for ``near_s``, then apart for ``apart_s``, on average, both
    exponentially distributed; a line of another core's takes ``times`` as long meanwhile."""

    near_s: float
    apart_s: float
    times: float


class Disturbances:
    """As a machine file has them; ``paces`` are None where they were not measured.

    ``lengths_s``, ``rates`` (K,): how long interruptions of each kind are, how many come a second.
    ``apart`` likewise; ``distances``: shares of the time, and how many times as long as mostly a
    line of another core's takes in each.
    ``left``, ``left_memory``: what all leave of a core's time, on average, for work and for waits
    for memory.
    """

    def __init__(self, description: MachineDescription) -> None:
        found = description.interruptions
        self.lengths_s = np.array([one.length.value for one in found], dtype=np.float64)
        self.rates = 1.0 / np.array([one.every.value for one in found], dtype=np.float64)
        self.left = self.left_memory = 1.0 / (1.0 + float(self.lengths_s @ self.rates))
        self.apart = None if description.apart is None else _apart(description.apart)
        self.distances: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
        if self.apart is not None:
            near = self.apart.near_s / (self.apart.near_s + self.apart.apart_s)
            self.distances = (near, 1.0), (1.0 - near, self.apart.times)
        self.paces: Paces | None = None
        if (facts := description.paces) is not None:
            share = np.array([0.0, *PACE_SHARES, 1.0])
            slowdowns = _slowdown(facts.cached), _slowdown(facts.memory)
            self.paces = Paces(facts.lasts.value, share, *slowdowns)
            self.left *= self.paces.mean(self.paces.slowdown)
            self.left_memory *= self.paces.mean(self.paces.memory_slowdown)

    def interruptions(self, least_s: float = 0.0) -> Interruptions | None:
        """Of all kinds that last so long or longer; None where there are none."""
        kinds = self.lengths_s >= least_s
        rates = self.rates[kinds]
        if not len(rates):
            return None
        share = np.cumsum(rates) / rates.sum()
        share[-1] = 1.0
        return Interruptions(1.0 / float(rates.sum()), self.lengths_s[kinds], share)


def _apart(facts: Facts) -> Apart | None:
    near = facts.near.value
    if near == 1.0:
        return None
    # Seen from a moment within one, a time that ends at random lasts twice its mean. A longer one
    # is played as several: what goes on in a core is so much shorter that it is the same to it.
    apart_s = min(max(facts.lasts.value / 2, APART_LEAST_S), APART_PLAYED_MAX_S)
    near_s = min(max(apart_s * near / (1.0 - near), APART_LEAST_S), DISTURBANCE_MAX_S)
    return Apart(near_s, apart_s, max(facts.line_apart.value / facts.line.value, 1.0))


def _slowdown(facts: Sequence[Fact]) -> Floats:
    # At the ends of their ranges facts may stand in another order.
    pace = np.maximum.accumulate([one.value for one in facts])
    return 1.0 / np.concatenate([pace[:1], pace, pace[-1:]])
