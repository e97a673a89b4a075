"""What the flow plane needs of a system, such as ERIS: demands as things are, state as they go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ...workloads.workload import PhaseState
from ..control.policy import Observation, Rebalance
from ..machine.costs import CostModel, Scales
from ..machine.demands import Demand, TransferDemand
from ..machine.threads import Workers
from ..run.record import ControlEvent

Floats = npt.NDArray[np.float64]


class Demands(Protocol):
    """What makes a system's demands from one cost model.

    ``facts``: what the last demand was made from, for the record.
    """

    @property
    def costs(self) -> CostModel:
        """The cost model."""

    facts: dict[str, Any]


Made = TypeVar("Made", bound=Demands)


class FlowSystem(Protocol[Made]):
    """A system's state; the plane says what was done, and how long it took."""

    workers: Workers
    phase: PhaseState
    events: list[ControlEvent]

    def demands(self, scales: Scales) -> Made:
        """What makes demands on the machine, its resources scaled; raises InputError."""

    def demand(self, demands: Made, time_s: float) -> Demand:
        """The flows of the present phase, with everything where it is now."""

    def copies(self, demands: Made) -> TransferDemand | None:
        """The copies under way."""

    def left(self) -> Floats:
        """(T,) what these have still to move."""

    def copied(self, amounts: Floats, time_s: float) -> None:
        """``amounts`` (T,) more were moved by ``time_s``."""

    def accesses(self, demands: Made, time_s: float) -> dict[str, Floats]:
        """(A,) commands per unit of work that each worker executes, by object."""

    def watch(
        self, commands: dict[str, Floats], steps_s: dict[str, Floats], length_s: float
    ) -> None:
        """Workers executed ``commands`` (A,), by object; their steps took ``steps_s`` (C,)."""

    def imbalance(self, commands: dict[str, Floats]) -> dict[str, float]:
        """Standard deviation over mean of what the monitor looks at, by object."""

    def observe(self, time_s: float) -> Observation:
        """What the monitor saw since it was last asked."""

    def rebalance(self, command: Rebalance, demands: Made, time_s: float) -> None:
        """Carries out a policy's command."""

    def check_conservation(self) -> None:
        """Raises AssertionError where something was lost or doubled."""

    def warnings(self) -> Sequence[str]:
        """What a user should know of this run."""
