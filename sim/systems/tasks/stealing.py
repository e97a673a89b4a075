"""Policies that say which tasks idle workers of other nodes may steal.

``adaptive``, after Psaroudakis et al., PVLDB 10 (2016): a task that is bound by memory runs no
faster elsewhere and takes the interconnect from others. So a class of tasks may be stolen across
nodes only while the memory throughput of one of its tasks, an exponential average, is no more than
the machine's threshold (``engines: {tasks: {stealing_threshold: …}}`` in its file). A class of
which no task has ended yet may be stolen.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ....inputs import InputError, Quantity
from ....inputs.quantities import Bandwidth, Duration
from ...control.family import Family
from ...control.policy import PolicySpec
from ...planes.outcome import ControlEvent
from .commands import AllowStealing, StealingObservation, check_stealing

PERIOD = Quantity(0.1, 0.1, 0.1)  # how often the source refreshes its statistics


class StealingSpec(PolicySpec):
    """A stealing policy. ``threshold``: memory throughput of a task above which ``adaptive`` lets
    none of its class be stolen, such as ``1.2 GB/s``; the machine file's by default.
    """

    threshold: Bandwidth | None = None
    period: Duration = PERIOD

    def bundled_options(self) -> dict[str, Any]:
        """The options of a bundled policy; the threshold as a number."""
        found = super().bundled_options()
        if self.threshold is not None:
            found["threshold"] = self.threshold.value
        return found


@dataclass
class _Fixed:
    """Always the same: every class across nodes, or none; and within a node, or not even there."""

    across: bool
    within_node: bool
    MEMORYLESS: ClassVar[bool] = True  # once it has ordered
    _ordered: bool = False

    def decide(self, observation: StealingObservation) -> tuple[AllowStealing, ...]:
        """One command, the first time."""
        if self._ordered:
            return ()
        self._ordered = True
        classes = frozenset(observation.memory_Bps) if self.across else frozenset()
        return (AllowStealing(classes, self.within_node),)


class AdaptiveStealing:
    """Lets classes be stolen across nodes by what their tasks draw from memory."""

    MEMORYLESS: ClassVar[bool] = True

    def __init__(self, threshold: float | None = None) -> None:
        if threshold is not None and not threshold > 0:
            raise ValueError("threshold: expected a rate above 0, such as 1.2 GB/s")
        self.threshold_Bps = threshold
        self._allowed: frozenset[str] | None = None

    def decide(self, observation: StealingObservation) -> tuple[AllowStealing, ...]:
        """A command where the classes that may be stolen change. Raises InputError where neither
        the policy nor the machine has a threshold.
        """
        threshold = self.threshold_Bps or observation.threshold_Bps
        if threshold is None:
            raise InputError(
                "stealing 'adaptive' needs a threshold, which the machine file does not have",
                expected="engines.tasks.stealing_threshold there, or policies.stealing.threshold",
                hint="'numatwin machine threshold MACHINE --out FILE' finds it",
            )
        # NaN, where no task of the class has ended, is not above it.
        allowed = frozenset(
            name for name, Bps in observation.memory_Bps.items() if not Bps > threshold
        )
        if allowed == self._allowed:
            return ()
        self._allowed = allowed
        return (AllowStealing(allowed),)


_FIXED = {
    "none": partial(_Fixed, False, True),
    "never": partial(_Fixed, False, False),
    "node": partial(_Fixed, False, True),
    "always": partial(_Fixed, True, True),
}


def _event(command: AllowStealing, policy: str, time_s: float) -> ControlEvent:
    names = sorted(command.classes)
    text = f"{policy}: {', '.join(names) or 'no class'} may be stolen across nodes"
    return ControlEvent(
        time_s,
        "stealing-rule",
        text,
        {"policy": policy, "classes": names, "within": command.within_node},
    )


STEALING = Family(
    name="stealing",
    what="which classes of tasks idle workers may take from other nodes",
    spec=StealingSpec,
    titles={
        "none": "no stealing across nodes (as node)",
        "never": "each worker takes tasks of its own queue only",
        "node": "from workers of the own node",
        "always": "from all nodes, nearest first",
        "adaptive": "across nodes only classes that draw less memory bandwidth than a threshold",
    },
    make=lambda name, options: AdaptiveStealing(**options) if name == "adaptive" else None,
    fixed=_FIXED,
    expected="never, node, always or adaptive",
    check=check_stealing,
    event=_event,
    types=(StealingObservation, AllowStealing),
)
