"""What every data plane offers to the control plane, and what it hands over at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...workloads.workload import PhaseState
from ..control.policy import Observation, Rebalance
from ..record import ControlEvent, ResourceUse, Series, Why


@dataclass(frozen=True)
class StartPhase:
    """A command of the control plane: from now on the workload is in this phase.

    Given again when the keys of a phase move.
    """

    phase: PhaseState


Command = Rebalance | StartPhase


@dataclass(frozen=True)
class Outcome:
    """What a plane saw from time 0 to now; the fields are those of the Record."""

    throughput: Mapping[str, float]
    operations: Mapping[str, float]
    bandwidth_Bps: Mapping[str, float | None]
    resources: tuple[ResourceUse, ...]
    latency_ns: Mapping[str, Mapping[str, float | None] | None]
    why: Mapping[str, Why]
    energy_J: float | None
    events: tuple[ControlEvent, ...]
    model: Mapping[str, Any]
    warnings: tuple[str, ...]
    series: Series
    steps: int
    """Pieces of time, or events, that were played."""


class Plane(Protocol):
    """Does the work between two control events; time starts at 0 and is virtual or real."""

    @property
    def time_s(self) -> float:
        """The time reached."""

    def advance(self, until_s: float) -> None:
        """Goes on until that time."""

    def observe(self) -> Observation:
        """What the monitor saw since the last observation."""

    def apply(self, commands: Sequence[Command]) -> None:
        """Carries out commands; what takes time goes on while the plane advances."""

    def outcome(self) -> Outcome:
        """The result so far."""
