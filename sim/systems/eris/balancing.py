"""The load balancers of ERIS: when partitions are uneven, and how they should be instead.

From section "Load balancer" of Kissinger et al., ERIS, ADMS 2014. The load of a partition of an
index is its access frequency times its mean execution time; that of a column, which is only
scanned whole, is its physical size. Where the standard deviation over AEUs exceeds a threshold,
each partition has a target load:

    One-Shot   the average of all partitions
    MA-k       the moving average over itself and k neighbours on each side, fewer at the ends

The more partitions the average spans, the sooner balance is reached and the more data move at once.
They remember nothing, and see one load per partition: where accesses gather in a small part of a
partition, they may swing between two layouts for good.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ....inputs import Quantity
from ....inputs.quantities import Duration
from ...control.family import Family
from ...control.policy import NoPolicy, Policy, PolicySpec
from ...kernel.arrays import Floats, Ints
from ...planes.outcome import ControlEvent
from .commands import BalancingObservation, ObjectObservation, Rebalance, check_commands

# The paper compares with a threshold but does not give it: a tenth of the mean load is assumed.
THRESHOLD = 0.1

# The paper says that the monitor samples, not how often. Half a second is well above the time that
# the transfers of one cycle take on its machines, well below the 20 s between shifts of load.
PERIOD = Quantity(0.5, 0.5, 0.5)

# Sums of loads that differ by less, of their total, are the same but for rounding.
SAME = 1e-9


class BalancingSpec(PolicySpec):
    """A load balancer: ``threshold``, of a bundled one, is the relative standard deviation of the
    loads above which it acts.
    """

    threshold: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] | None = None
    period: Duration = PERIOD


@dataclass(frozen=True)
class _Balancer(ABC):
    """Acts on each object whose loads deviate by more than ``threshold`` (see ``imbalance``)."""

    threshold: float = THRESHOLD

    def __post_init__(self) -> None:
        threshold: Any = self.threshold
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
            raise ValueError("threshold: expected a number")
        if not 0 <= threshold < float("inf"):
            raise ValueError("threshold: expected a number of at least 0")

    def decide(self, observation: BalancingObservation) -> tuple[Rebalance, ...]:
        """New bounds or sizes for each object that is uneven and not being balanced already."""
        return tuple(
            self._rebalance(name, seen)
            for name, seen in observation.objects.items()
            if not seen.balancing and imbalance(loads_of(seen)) > self.threshold
        )

    def _rebalance(self, name: str, seen: ObjectObservation) -> Rebalance:
        loads = loads_of(seen)
        targets = target_loads(loads, self._neighbours(seen.partitions))
        if seen.bounds is not None:
            return Rebalance(name, bounds=bounds_for(seen.bounds, loads, targets))
        return Rebalance(name, sizes=sizes_for(seen.sizes, targets))

    @abstractmethod
    def _neighbours(self, partitions: int) -> int:
        """How many neighbours on each side a partition's target is averaged over."""


@dataclass(frozen=True)
class OneShot(_Balancer):
    """Aims at the same load for all partitions, at once."""

    def _neighbours(self, partitions: int) -> int:
        return partitions - 1


@dataclass(frozen=True)
class MovingAverage(_Balancer):
    """MA-k: aims at the mean load of each partition and its ``k`` neighbours on each side."""

    k: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ValueError("k: expected a whole number of at least 1")

    def _neighbours(self, partitions: int) -> int:
        return self.k


def loads_of(seen: ObjectObservation) -> Floats:
    """(P,) load of each partition: core time per second of an index, entries of a column."""
    if seen.kind == "column":
        return seen.sizes
    return np.asarray(seen.accesses_per_s * seen.execution_s)


def imbalance(loads: Floats) -> float:
    """Standard deviation of ``loads`` (P,) over their mean; 0 without any load."""
    mean = float(loads.mean()) if len(loads) else 0.0
    return float(loads.std()) / mean if mean > 0 else 0.0


def target_loads(loads: Floats, k: int) -> Floats:
    """(P,) moving average of ``loads`` (P,) over each item and ``k`` on each side.

    The total is kept and the targets stay between the least and the greatest load. Averages over
    fewer partitions at the ends do not quite keep the total. What is missing is added in proportion
    to the room below the greatest load, what is too much is taken in proportion to the room above
    the least; scaling all alike could raise the peak: MA-1 of 10 0 10 10 10 10 would aim at 10.3.
    """
    count = len(loads)
    at = np.arange(count)
    first, end = np.maximum(at - k, 0), np.minimum(at + k + 1, count)
    below = np.concatenate([[0.0], np.cumsum(loads)])
    targets = np.asarray((below[end] - below[first]) / (end - first))
    missing = float(below[-1] - targets.sum())
    room = loads.max() - targets if missing > 0 else targets - loads.min()
    if abs(missing) > SAME * below[-1] and room.sum() > 0:
        targets = targets + missing * room / room.sum()
    return targets


def bounds_for(bounds: Ints, loads: Floats, targets: Floats) -> Ints:
    """(P+1,) bounds that would give the partitions the ``targets`` (P,), in whole keys.

    The monitor knows one load per partition, nothing finer, so each load is taken to lie evenly on
    its keys. Between keys without load a bound may lie anywhere: it stays as near as it can to
    where it was, since what moves costs time.
    """
    below, wanted = (np.concatenate([[0.0], np.cumsum(part)]) for part in (loads, targets))
    slack = SAME * below[-1]
    least = np.interp(wanted - slack, below, bounds)
    most = np.interp(wanted + slack, below, bounds)
    found = np.rint(np.clip(bounds, least, most)).astype(np.int64)
    found[0], found[-1] = bounds[0], bounds[-1]
    return np.asarray(np.maximum.accumulate(np.minimum(found, bounds[-1])))


def sizes_for(sizes: Floats, targets: Floats) -> Floats:
    """(P,) sizes in whole entries that come nearest to ``targets`` (P,), in all as ``sizes``."""
    total = float(sizes.sum())
    ends = np.minimum(np.rint(np.cumsum(targets)), total)
    ends[-1] = total
    return np.diff(ends, prepend=0.0)


def _make(name: str, options: Mapping[str, Any]) -> Policy[BalancingObservation, Rebalance] | None:
    if name == "none":
        return NoPolicy()
    if name == "one-shot":
        return OneShot(**options)
    form = re.fullmatch(r"ma-([1-9][0-9]{0,5})", name)
    return MovingAverage(k=int(form[1]), **options) if form else None


def _event(command: Rebalance, policy_name: str, time_s: float) -> ControlEvent:
    details = {"object": command.object}
    return ControlEvent(time_s, "balance", f"{policy_name} balances {command.object}", details)


BALANCING = Family(
    name="balancing",
    what="which worker owns which part of the data",
    spec=BalancingSpec,
    titles={
        "none": "no balancing: partitions stay as they are",
        "one-shot": "One-Shot: the same load for all partitions at once",
        "ma-1": "MA-1: the average load of a partition and its neighbours (ma-K for any K)",
        "ma-8": "MA-8: the average over 8 neighbours on each side",
    },
    make=_make,
    expected="none, one-shot or ma-K, such as ma-8",
    check=check_commands,
    event=_event,
    types=(BalancingObservation, ObjectObservation, Rebalance),
)
