"""The part of a scenario that planes and systems read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ...topologies import Machine
from ...workloads import Workload


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
