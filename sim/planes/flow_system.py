"""The interface of a system to the flow plane: its state, and its demand in that state."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from ...workloads.workload import PhaseState
from ..kernel.arrays import Floats
from ..machine.costs import CostModel, Scales
from ..machine.demands import Demand, TransferDemand
from ..machine.threads import Workers
from .outcome import ControlEvent


class Demands(Protocol):
    """What makes a system's demands from one cost model.

    ``facts``: what the last demand was made from, for the record.
    """

    @property
    def costs(self) -> CostModel:
        """The cost model."""

    facts: dict[str, Any]


@dataclass
class MachineDemands:
    """The Demands of a system that needs no more than the machine's costs."""

    costs: CostModel
    facts: dict[str, Any] = field(default_factory=dict)


DemandsKind = TypeVar("DemandsKind", bound=Demands)


@dataclass(frozen=True)
class Piece:
    """A piece of time in which rates were constant.

    ``units_per_s``: units of work that were done. ``steps_s``: by step of the workers' loop, how
    long the workers of each core (C,) spent on it.
    """

    length_s: float
    units_per_s: float
    steps_s: Mapping[str, Floats]


class FlowSystem(Protocol[DemandsKind]):
    """A system's state; the plane says what was done, and how long it took.

    ``demands`` are asked for several times: what-ifs scale the machine's resources. What is called
    with some demands and a time is about the state as it is then.

    ``events``: what the control plane's record shall show, in order of time.

    A system inherits this, and of what follows ``demand`` only what it has: transfers, policies.
    """

    workers: Workers
    phase: PhaseState
    events: list[ControlEvent]

    @abstractmethod
    def demands(self, scales: Scales) -> DemandsKind:
        """What makes demands on the machine, its resources scaled; raises InputError."""

    @abstractmethod
    def demand(self, demands: DemandsKind, time_s: float) -> Demand:
        """The flows of the present phase, with everything where it is now."""

    def settled(self, demands: DemandsKind, time_s: float) -> None:
        """Rates were found for the present state; the next pieces of time go by them."""
        return None

    def transfers(self, demands: DemandsKind) -> TransferDemand | None:
        """The T transfers under way in the background: volumes that move between cores."""
        return None

    def left(self) -> Floats:
        """(T,) what each of these has still to move."""
        return np.zeros(0)

    def moved(self, amounts: Floats, time_s: float) -> None:
        """``amounts`` (T,) more were moved by ``time_s``."""
        return None

    def columns(self) -> Mapping[str, float]:
        """What the record's series shall show of the present state, by column."""
        return {}

    def played(self, piece: Piece) -> None:
        """So much was done in a piece of time."""
        return None

    def observe(self, family: str, time_s: float) -> Any:
        """What policies of that family see, since one was last asked."""
        return None

    def apply(self, command: Any, demands: DemandsKind, time_s: float) -> None:
        """Carries out a policy's command."""
        return None

    def check_conservation(self) -> None:
        """Raises AssertionError where something was lost or doubled."""
        return None

    def warnings(self) -> Sequence[str]:
        """What a user should know of this run."""
        return ()
