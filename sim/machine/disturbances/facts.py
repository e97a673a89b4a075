"""What others take of a core: turns on it, and times in which it goes slower than usual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ....inputs import InputError
from ....topologies.schema import (
    DISTURBANCE_MAX_S,
    DISTURBANCE_MIN_S,
    PACE_SHARES,
    Apart,
    Fact,
    MachineDescription,
)
from ..._kernel import TurnSetup

Floats = npt.NDArray[np.float64]
APART_PLAYED_MAX_S = 0.5e-3
# A longer time is played as several: this is as long as transactions on a host last, so that slow
# ones are slow to their end, and a run of 0.1 s meets 25 of them on each processor.
PACE_PLAYED_MAX_S = 4e-3
SLOWDOWN_MAX = 1e6

PS_PER_S = 1e12
# Each is drawn by itself, and the longest of all draws is 37 times the mean.
DISTURBANCE_MIN_PS = float(round(PS_PER_S * DISTURBANCE_MIN_S))
DISTURBANCE_MAX_PS = PS_PER_S * DISTURBANCE_MAX_S


@dataclass(frozen=True)
class Paces:
    """A core's pace goes up and down, and stays as it is for ``lasts_s`` on average, exponentially
    distributed.

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
class Turns:
    """When others have a processor, and all stands still there: a timer's handler, another program,
    or another machine that a hypervisor lets run.

    ``every_ps``: from the end of one to the beginning of the next on average, exponentially
    distributed; ``length_ps`` (K,): of each kind; ``share`` (K,): which of all are of this kind or
    one before it, up to 1. Each processor draws from a stream of its own. Raises InputError where
    planes cannot count them.
    """

    every_ps: float
    length_ps: tuple[float, ...]
    share: tuple[float, ...]

    def __post_init__(self) -> None:
        if not DISTURBANCE_MIN_PS <= self.every_ps <= DISTURBANCE_MAX_PS:
            raise InputError(
                "every_ps of turns", token=f"{self.every_ps:g}", expected="from 1,000 to 10^17"
            )
        for length_ps in self.length_ps:
            if not 0 <= length_ps <= DISTURBANCE_MAX_PS:
                raise InputError(
                    "length_ps of turns", token=f"{length_ps:g}", expected="from 0 to 10^17"
                )
        rises = all(a <= b for a, b in pairwise((0.0, *self.share, 1.0)))
        if not (len(self.length_ps) == len(self.share) > 0 and rises and self.share[-1] == 1.0):
            raise InputError(
                "share of turns", token=str(self.share), expected="one for each length, rising to 1"
            )

    def setup(self) -> TurnSetup:
        """As the kernel takes them."""
        return TurnSetup(self.every_ps, self.length_ps, self.share)


@dataclass(frozen=True)
class ProcessorPaces:
    """Paces as planes of commits play them: ``lasts_ps`` each, on average, exponentially
    distributed; ``share`` and ``slowdown`` (K,) as of Paces. Each processor draws from a stream of
    its own. Raises InputError where planes cannot play them.
    """

    lasts_ps: float
    share: tuple[float, ...]
    slowdown: tuple[float, ...]

    def __post_init__(self) -> None:
        if not DISTURBANCE_MIN_PS <= self.lasts_ps <= DISTURBANCE_MAX_PS:
            raise InputError(
                "lasts_ps of paces", token=f"{self.lasts_ps:g}", expected="from 1,000 to 10^17"
            )
        rises = all(a < b for a, b in pairwise(self.share))
        if not (rises and self.share[:1] == (0.0,) and self.share[-1:] == (1.0,)):
            raise InputError("share of paces", token=str(self.share), expected="rising from 0 to 1")
        fits = all(0 < times < SLOWDOWN_MAX for times in self.slowdown)
        if not (fits and len(self.slowdown) == len(self.share)):
            raise InputError(
                "slowdown of paces",
                token=str(self.slowdown),
                expected=f"one for each share, from above 0 to {SLOWDOWN_MAX:g}",
            )


@dataclass(frozen=True)
class ApartTimes:
    """Cores are near each other for ``near_s``, then apart for ``apart_s``, on average, both
    exponentially distributed; a line of another core's takes ``times`` as long meanwhile."""

    near_s: float
    apart_s: float
    times: float


class Disturbances:
    """As a machine file has them; ``paces`` are None where they were not measured.

    ``lengths_s``, ``rates_per_s`` (K,): how long interruptions of each kind are, how many come.
    ``apart`` likewise; ``distances``: shares of the time, and how many times as long as mostly a
    line of another core's takes in each.
    ``left``, ``left_memory``: what all leave of a core's time, on average, for work and for waits
    for memory.
    """

    def __init__(self, description: MachineDescription) -> None:
        found = description.interruptions
        self.lengths_s = np.array([one.length.value for one in found], dtype=np.float64)
        self.rates_per_s = 1.0 / np.array([one.every.value for one in found], dtype=np.float64)
        self.left = self.left_memory = 1.0 / (1.0 + float(self.lengths_s @ self.rates_per_s))
        self.apart = None if description.apart is None else _apart(description.apart)
        self.distances: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
        if self.apart is not None:
            near = self.apart.near_s / (self.apart.near_s + self.apart.apart_s)
            self.distances = (near, 1.0), (1.0 - near, self.apart.times)
        self.paces: Paces | None = None
        if (facts := description.paces) is not None:
            share = np.array([0.0, *PACE_SHARES, 1.0])
            slowdowns = _slowdown(facts.cached), _slowdown(facts.memory)
            # Seen from a moment within one, a time that ends at random lasts twice its mean.
            lasts_s = max(facts.lasts.value / 2, DISTURBANCE_MIN_S)
            self.paces = Paces(lasts_s, share, *slowdowns)
            self.left *= self.paces.mean(self.paces.slowdown)
            self.left_memory *= self.paces.mean(self.paces.memory_slowdown)

    def processor_paces(self, of_memory: float) -> ProcessorPaces | None:
        """Of work of which such a share (0 to 1) waits for memory; None where there are none."""
        if (paces := self.paces) is None:
            return None
        lasts_s = min(paces.lasts_s, PACE_PLAYED_MAX_S)
        slowdown = paces.slowdown + (paces.memory_slowdown - paces.slowdown) * of_memory
        return ProcessorPaces(
            PS_PER_S * lasts_s, tuple(paces.share.tolist()), tuple(slowdown.tolist())
        )

    def turns(self, least_s: float = 0.0) -> Turns | None:
        """Interruptions of all kinds that last so long or longer; None where there are none."""
        kinds = self.lengths_s >= least_s
        rates_per_s = self.rates_per_s[kinds]
        if not len(rates_per_s):
            return None
        every_s, share = 1.0 / float(rates_per_s.sum()), np.cumsum(rates_per_s)
        share /= rates_per_s.sum()
        share[-1] = 1.0
        lengths_ps = PS_PER_S * self.lengths_s[kinds]
        return Turns(PS_PER_S * every_s, tuple(lengths_ps.tolist()), tuple(share.tolist()))


def _apart(facts: Apart) -> ApartTimes | None:
    near = facts.near.value
    if near == 1.0:
        return None
    # Seen from a moment within one, a time that ends at random lasts twice its mean. A longer one
    # is played as several: what goes on in a core is so much shorter that it is the same to it.
    apart_s = min(max(facts.lasts.value / 2, DISTURBANCE_MIN_S), APART_PLAYED_MAX_S)
    near_s = min(max(apart_s * near / (1.0 - near), DISTURBANCE_MIN_S), DISTURBANCE_MAX_S)
    return ApartTimes(near_s, apart_s, max(facts.line_apart.value / facts.line.value, 1.0))


def _slowdown(facts: Sequence[Fact]) -> Floats:
    # At the ends of their ranges facts may stand in another order.
    pace = np.maximum.accumulate([one.value for one in facts])
    return 1.0 / np.concatenate([pace[:1], pace, pace[-1:]])
