"""What happens to cores at times that a scenario states: what its systems' ``faults`` share."""

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import TypeVar

from ...inputs import DescriptionError, Strict
from ...inputs.quantities import Duration
from ..planes.outcome import ControlEvent
from ..planes.plane import Change, Command
from .fields import Whole


class CoreFault(Strict):
    """From the time ``at`` on, for as long as it ``lasts``, or for good."""

    kind: str
    node: Whole | None = None
    at: Duration
    lasts: Duration | None = None

    @property
    def subject(self) -> str:
        """What it happens to, in words."""
        return f"node {self.node}"

    @property
    def effect(self) -> str:
        """What happens, in words."""
        return f"the cores of {self.subject} stop"

    @property
    def over_s(self) -> float:
        """When it is over."""
        return inf if self.lasts is None else self.at.value + self.lasts.value


Fault = TypeVar("Fault", bound=CoreFault)


def changes_of(
    faults: Iterable[Fault], command: Callable[[Fault, bool], Command]
) -> tuple[Change, ...]:
    """By time; ``command``: of a fault, where it begins, and where it is over."""
    found: list[Change] = []
    for fault in faults:
        event = ControlEvent(fault.at.value, "fault", fault.effect)
        found.append(Change(event, command(fault, True)))
        if fault.lasts is not None:
            event = ControlEvent(fault.over_s, "recovery", f"{fault.subject} is back")
            found.append(Change(event, command(fault, False)))
    # At one and the same time, who is back comes first.
    return tuple(sorted(found, key=lambda one: (one.event.time_s, one.event.kind == "fault")))


def check_faults(
    faults: Sequence[Fault], nodes: Sequence[int], touched: Callable[[Fault], Iterable[int]]
) -> None:
    """Of workers on ``nodes``, by id; what a fault has ``touched`` has no other before it is over.
    Raises DescriptionError.
    """
    known = ", ".join(map(str, dict.fromkeys(nodes)))
    for index, fault in enumerate(faults):
        if fault.node is not None and fault.node not in nodes:
            raise DescriptionError(
                ("faults", index, "node"),
                f"no workers on node {fault.node}: expected one of {known}",
            )
    over_s: dict[int, float] = {}
    for index, fault in sorted(enumerate(faults), key=lambda one: one[1].at.value):
        for one in touched(fault):
            if fault.at.value < over_s.get(one, 0.0):
                raise DescriptionError(
                    ("faults", index, "at"),
                    f"{fault.subject} has another fault at {fault.at.value:g} s, before it is back:"
                    " expected one fault at a time",
                )
            over_s[one] = fault.over_s
