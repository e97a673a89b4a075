"""What a system offers calibration: its engine's parameters, and what measurements show of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...sim.run.scenario import Scenario
from ...topologies.machine import Machine
from ...topologies.measurements import Measurement
from ...topologies.schema import MachineDescription
from ..systems.registry import validation_of, validations
from .engine_rows import EngineRow
from .host_reader import HostReader
from .intervals import Fit
from .observation import Kind, Observation
from .parameters import Key, Parameter

# What tells two machines apart for a run: numbers by what they are of.
Facts = tuple[tuple[object, float], ...]
Reader = Callable[[HostReader, Measurement], Observation | str]


class Tried(Protocol):
    """A machine with some of its parameters replaced: see ``Candidate``."""

    base: Machine
    values: Mapping[Key, float]

    def __hash__(self) -> int:
        """Two with the same values need not be equal."""

    @property
    def machine(self) -> Machine:
        """The machine with these values."""

    def facts(self, unseen: Collection[str]) -> Facts:
        """What a run could see of the values that does not meet the parts ``unseen``."""


@dataclass(frozen=True)
class NativeSteps:
    """What native runs of the engine tell.

    ``steps``: of a real worker's loop, each with the step of the model that it is part of.
    ``commands_per_s``: of the plane in its steady state, the commands that workers execute.
    ``unseen``: parts of the engine that no worker of a scenario meets.
    """

    steps: Mapping[str, str]
    commands_per_s: Callable[[Any], float]
    unseen: Callable[[Scenario], set[str]]


@dataclass(frozen=True)
class OwnEngine:
    """How a user's own engine of the system's kind is fitted to its throughputs.

    ``scenario``: what runs where the user names no other. ``settings``: of that scenario on the
    user's machine and a row, the settings that make it the row's run; raises InputError.
    """

    scenario: str
    settings: Callable[[Scenario, EngineRow], Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class EngineCalibration:
    """``keys``: how keys of its ``parameters`` of a machine begin. ``readers``: by a measurement's
    name, what makes an Observation of it, or tells why not. ``predictions``: by kind of
    measurement. ``written``: a description with what was fitted, of the description, the machine
    from before, the fit, by key the text on a value's source, and what ``described`` gives.

    Where runs meet what is fitted: ``with_values`` puts it into a machine, of a machine that has
    the other values, the machine from before and the values; ``run_facts`` says by part of the
    engine what a run sees. ``native``: of its native runs, where a flow plane runs such. ``own``:
    how engines of users are fitted, where the system has a profile of them.
    """

    keys: tuple[str, ...]
    parameters: Callable[[Machine], Sequence[Parameter]]
    readers: Mapping[str, Reader] = field(default_factory=dict)
    predictions: Mapping[Kind, Callable[[Tried, Observation], float]]
    written: Callable[[MachineDescription, Machine, Fit, Mapping[Key, str]], MachineDescription]
    with_values: Callable[[Machine, Machine, Mapping[Key, float]], Machine] | None = None
    run_facts: (
        Callable[[Machine, Mapping[Key, float]], Mapping[str, Sequence[tuple[object, float]]]]
        | None
    ) = None
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
    validation = validation_of(system)
    if validation.calibration is None:
        return None
    found: EngineCalibration = validation.calibration.load()
    return found.native
