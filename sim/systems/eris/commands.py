"""Observations and commands of ERIS's load balancers, and the check of the commands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...control.user_policy import CommandCheck, Origin
from ...kernel.arrays import Floats, Ints

# Sums of sizes that went through a policy's own arithmetic: far above rounding, far below an entry.
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ObjectObservation:
    """One data object as it is now; arrays have an item for each of its P partitions, in order.

    An array cannot be written to.

    ``kind``: ``index`` (range-partitioned) or ``column`` (only scanned whole).
    ``bounds`` (P+1,): partition p of an index holds the keys bounds[p] <= key < bounds[p+1]; None
    for a column.
    ``sizes`` (P,): keys or entries in each partition.
    ``accesses_per_s`` (P,): commands that each partition received, since the last observation.
    ``execution_s`` (P,): mean core time per command, 0 where none ran.
    ``nodes`` (P,): position, in the machine's order, of the node of each partition's owner.
    ``balancing``: a balancing cycle of this object is still under way; it takes no new command.
    """

    kind: Literal["index", "column"]
    bounds: Ints | None
    sizes: Floats
    accesses_per_s: Floats
    execution_s: Floats
    nodes: Ints
    balancing: bool

    def __post_init__(self) -> None:
        assert (self.bounds is None) == (self.kind == "column")
        shapes = {"sizes", "accesses_per_s", "execution_s", "nodes"}
        assert all(getattr(self, name).shape == (self.partitions,) for name in shapes)
        assert self.bounds is None or self.bounds.shape == (self.partitions + 1,)
        for name in shapes | ({"bounds"} if self.bounds is not None else set()):
            seen = getattr(self, name).view()
            seen.flags.writeable = False  # of this view; who made the array may go on using it
            object.__setattr__(self, name, seen)

    @property
    def partitions(self) -> int:
        """P, the number of partitions."""
        return len(self.sizes)


@dataclass(frozen=True)
class BalancingObservation:
    """What the monitor saw: ``objects`` by name, over the ``period_s`` that ends at ``time_s``."""

    time_s: float
    period_s: float
    objects: Mapping[str, ObjectObservation]


@dataclass(frozen=True, eq=False)
class Rebalance:
    """A command: give the partitions of ``object`` other bounds (index) or other sizes (column).

    ``bounds`` (P+1,): whole keys that do not fall; the first and the last stay as they are; a
    partition may be left empty. ``sizes`` (P,): entries, at least 0, in all as many as before.
    """

    object: str
    bounds: Ints | None = None
    sizes: Floats | None = None


@dataclass(frozen=True)
class SetPace:
    """A fault, or its end: from now on these ``workers`` take ``factor`` times as long as on cores
    of their own; where it is without end they stop.
    """

    workers: tuple[int, ...]
    factor: float


def check_commands(
    commands: Any, observation: BalancingObservation, policy_name: str, origin: Origin | None = None
) -> tuple[Rebalance, ...]:
    """``commands`` as a policy returned them, with arrays of their own and of the right types.

    Raises InputError, naming the policy and its ``origin``, for what is no command, an unknown
    object, one that is still being balanced or has two commands, and bounds or sizes that do not
    fit it.
    """
    check = _Check(policy_name, origin)
    checked: dict[str, Rebalance] = {}
    for command in check.listed(commands, Rebalance):
        name = command.object
        seen = observation.objects.get(name) if isinstance(name, str) else None
        if seen is None:
            known = ", ".join(observation.objects) or "none, as nothing is balanced"
            check.refuse(f"unknown object {name!r}", f"one of {known}")
        check.about = f"object '{name}': "
        if name in checked:
            check.refuse("two commands", "at most one")
        if seen.balancing:
            check.refuse("still being balanced", "no command until 'balancing' is False")
        if seen.bounds is not None:
            checked[name] = Rebalance(name, bounds=check.bounds(command, seen.bounds))
        else:
            checked[name] = Rebalance(name, sizes=check.sizes(command, seen.sizes))
        check.about = ""
    return tuple(checked.values())


class _Check(CommandCheck):
    """Of bounds and sizes of the object that ``about`` names."""

    def bounds(self, command: Rebalance, now: Ints) -> Ints:
        if command.sizes is not None:
            self.refuse("an index has sizes by its bounds", "bounds alone")
        wanted = self._numbers("bounds", command.bounds, len(now))
        if wanted.dtype.kind == "f" and (wanted != np.rint(wanted)).any():
            self.refuse("bounds between two keys", "whole numbers")
        if wanted[0] != now[0] or wanted[-1] != now[-1]:
            self.refuse(
                f"bounds from {wanted[0]:.16g} to {wanted[-1]:.16g}",
                f"from {now[0]} to {now[-1]}, as they were",
            )
        falls = np.flatnonzero(wanted[1:] < wanted[:-1])
        if len(falls):
            self.refuse(f"bounds fall after position {falls[0]}", "an order that does not fall")
        return wanted.astype(np.int64)

    def sizes(self, command: Rebalance, now: Floats) -> Floats:
        if command.bounds is not None:
            self.refuse("a column has no bounds", "sizes alone")
        wanted = self._numbers("sizes", command.sizes, len(now)).astype(np.float64)
        if (wanted < 0).any():
            self.refuse("a size below 0", "sizes of at least 0")
        before, after = float(now.sum()), float(wanted.sum())
        if abs(after - before) > SUM_TOLERANCE * before:
            self.refuse(f"sizes that sum to {after:.16g}", f"{before:.16g}, as before")
        return wanted

    def _numbers(self, what: str, values: Any, count: int) -> npt.NDArray[Any]:
        """``count`` finite numbers; the caller's conversion to its type makes them a copy."""
        if values is None:
            self.refuse(f"no {what}", f"{count} {what}")
        try:
            found = np.asarray(values)
        except ValueError:  # lists of unequal lengths
            found = np.array(None)
        if found.dtype.kind not in "iuf":
            self.refuse(f"{what} that are no numbers", f"an array of {count} numbers")
        if found.shape != (count,):
            self.refuse(f"{what} of shape {found.shape}", f"({count},)")
        if not np.isfinite(found).all():
            self.refuse(f"{what} that are not finite", "finite numbers")
        return found
