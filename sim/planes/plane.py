"""The interface of every data plane to the control plane.

The part of a scenario that planes and systems read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...topologies import Machine
from ...workloads import Workload
from ...workloads.workload import PhaseState
from ..machine.costs import CostModel
from .outcome import ControlEvent, Outcome


class Experiment(Protocol):
    """A machine, a workload and a system on it, simulated for a time with a seed."""

    @property
    def machine(self) -> Machine:
        """What it runs on."""

    @property
    def workload(self) -> Workload:
        """What is asked of it, as large as ``scale`` says."""

    @property
    def scale(self) -> float:
        """So much of the workload's objects is present, above 0 and up to 1."""

    @property
    def system(self) -> Any:
        """What the scenario says of its system: an instance of that system's own spec."""

    @property
    def policy_names(self) -> Mapping[str, str]:
        """The name of the policy of each family that the system has."""

    @property
    def horizon_s(self) -> float:
        """How long it is simulated."""

    @property
    def period_s(self) -> float:
        """The shortest time between two questions to its policies; the horizon without any."""

    @property
    def seed(self) -> int:
        """What all random draws are keyed by."""


@dataclass(frozen=True)
class StartPhase:
    """A command of the control plane: from now on the workload is in this phase.

    Given again when the keys of a phase move.
    """

    phase: PhaseState


Command = Any
"""``StartPhase``, or what a policy orders of the system that the plane runs."""


@dataclass(frozen=True)
class Change:
    """What happens to a system without a policy, and the event that tells of it, at its time."""

    event: ControlEvent
    command: Command


class Plane(Protocol):
    """Does the work between two control events; time starts at 0 and is virtual or real.

    A plane whose time is real says ``REAL_TIME = True``; its time starts with the first
    ``advance``, which is always to 0. It may say by ``LOOK_EVERY_S`` that looks take time from it,
    and by ``unchanged_until_s`` when what policies see changes next without a command.
    """

    @property
    def time_s(self) -> float:
        """The time reached."""

    def advance(self, until_s: float) -> None:
        """Goes on until that time."""

    def observe(self, family: str) -> Any:
        """What policies of that family see: what was done since one of them was last asked."""

    def apply(self, commands: Sequence[Command]) -> None:
        """Carries out commands; what takes time goes on while the plane advances."""

    def outcome(self) -> Outcome:
        """The result so far."""


class Unsteered:
    """A plane of a system that has no policies, and refuses workloads with phases."""

    def observe(self, family: str) -> None:
        """No policies watch."""

    def apply(self, commands: Sequence[Command]) -> None:
        """There is nothing to apply."""
        assert not commands


class FlowingPlane(Plane, Protocol):
    """A plane of rates, which draws nothing at random."""

    @property
    def costs(self) -> CostModel | None:
        """Of its machine; None where it has none."""

    def outcome(self, with_gains: bool = True) -> Outcome:
        """The result so far; ``why`` with what more of each resource would bring, or without."""


def is_real_time(plane: Plane) -> bool:
    """Whether the plane's time is that of a clock on the wall."""
    return bool(getattr(plane, "REAL_TIME", False))


def unchanged_until_s(plane: Plane) -> float:
    """Until when policies see the same if nothing is ordered; the time reached where unknown."""
    return float(getattr(plane, "unchanged_until_s", plane.time_s))


class RandomPlane(Plane, Protocol):
    """A plane that draws at random; it runs one replication, and is made for it.

    Its ``Maker`` stands in the descriptor of the system that it runs. All its randomness comes
    from ``streams.stream_key(scenario.seed, replication, name)``; replications are counted from 1,
    and 0 is the pilot that the warm-up is read from. The run decides when counting starts, makes as
    many replications as the scenario asks for, and makes one Record of their Outcomes; so a plane
    knows of no warm-up and no mean.

    ``advance`` may be called in as small steps as you like: where time stops does not change what
    happens. ``Outcome.series`` stays empty: the series come from ``totals``. ``Outcome.resources``
    has the same names in each replication.
    """

    def start_counting(self) -> None:
        """Forgets all that was counted so far; from now on counts again.

        Only counters: what is under way goes on. An operation that began before and ends later is
        counted when it ends, with its whole latency; of a resource that is busy now, only the time
        from now on is counted.
        """

    def totals(self) -> Mapping[str, float]:
        """Sums that grow with time, by column of the Record's series, since time 0 or since
        ``start_counting``; asked for about a thousand times in a run.

        ``throughput/<operation>``: operations done; each is there from the beginning. These may be:

        - ``under_way/<operation>``: seconds that the done operations took from begin to end, all
          together. The column, which shows by how much a total grows per second, is then how many
          are under way (Little). The warm-up is read from it too: latencies may settle later than
          throughput does.
        - ``utilisation/<resource name>``: seconds in which it was in use, times the part of it.
        - Any other column likewise: ``imbalance/<object>``, its integral over time.
        """


Maker = Callable[[Experiment, int], RandomPlane]
"""Makes the plane that runs one replication of an Experiment, by its number."""
