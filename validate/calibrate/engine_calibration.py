"""What a system offers calibration: its engine's parameters, and what measurements show of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...inputs import Quantity
from ...topologies.machine import Machine
from ...topologies.measurements import Measurement
from ...topologies.schema import MachineDescription
from ..systems.registry import validation_of, validations
from .engine_rows import OwnEngine
from .host_reader import HostReader
from .observation import Kind, Observation
from .parameters import Key, Parameter

Reader = Callable[[HostReader, Measurement], Observation | str]
Values = Mapping[Key, float]


class Tried(Protocol):
    """A machine with some of its parameters replaced: see ``Candidate``."""

    base: Machine
    values: Values

    def __hash__(self) -> int:
        """Two with the same values need not be equal."""

    @property
    def machine(self) -> Machine:
        """The machine with these values."""


class Quantities(Protocol):
    """Functions of the values, by name, as a machine file has them; ``source``: where it is from,
    by the keys that tell of it, of which the first that was fitted counts.
    """

    def __call__(
        self, figures: Callable[[Values], Mapping[Any, float]], keys: Callable[[Any], Sequence[Key]]
    ) -> Mapping[Any, Quantity]: ...


@dataclass(frozen=True)
class NativeSteps:
    """What native runs of the engine tell.

    ``steps``: of a real worker's loop, each with the step of the model that it is part of.
    ``commands_per_s``: of the plane in its steady state, the commands that workers execute.
    """

    steps: Mapping[str, str]
    commands_per_s: Callable[[Any], float]


@dataclass(frozen=True, kw_only=True)
class EngineCalibration:
    """``parameters`` of a machine. ``readers``: by a measurement's name, what makes an Observation
    of it, or tells why not. ``predictions``: by kind of measurement. ``written``: a description
    with what was fitted, of the description, the machine from before, and what makes quantities of
    the values; ``in_runs``: whether runs meet what is fitted. ``native``: of its native runs, where
    a flow plane runs such. ``own``: how engines of users are fitted, where the system has a profile
    of them.
    """

    parameters: Callable[[Machine], Sequence[Parameter]]
    readers: Mapping[str, Reader] = field(default_factory=dict)
    predictions: Mapping[Kind, Callable[[Tried, Observation], float]]
    written: Callable[[MachineDescription, Machine, Quantities], MachineDescription]
    in_runs: bool = False
    native: NativeSteps | None = None
    own: OwnEngine | None = None


def engine_calibrations() -> tuple[EngineCalibration, ...]:
    """Of each system that has one."""
    return tuple(
        validation.calibration.load()
        for validation in validations()
        if validation.calibration is not None
    )


def native_steps(system: str) -> NativeSteps | None:
    """What native runs of that system tell; None where nothing."""
    calibration = validation_of(system).calibration
    return None if calibration is None else calibration.load().native
