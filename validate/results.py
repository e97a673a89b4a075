"""Published results, predictions of them, and the runs that these come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..sim.run.plane_names import DRAWING_PLANES
from ..sim.run.record import Record
from ..sim.run.runner import run_scenario
from ..sim.run.scenario import load_scenario
from ..topologies import Machine, load_machine


@dataclass(frozen=True)
class Prediction:
    """What a row says was predicted: a number, or words where the source has none.

    ``holds``: whether a result in words came out; None for a number. ``note``: what one should
    know, such as the physics that is missing.
    """

    value: float | str
    holds: bool | None = None
    note: str = ""


@dataclass(frozen=True)
class Published:
    """A published result: ``value`` is its figure, or what it says in words."""

    value: float | str | None
    """None where it has not been published: a prediction made in advance."""
    unit: str
    predict: Callable[[Runs], Prediction]
    calibrated_on: tuple[str, ...] = ()
    """Ids of published results that a setting of its scenarios comes from."""
    planes: tuple[str, ...] = ("flow",)
    """Those that can predict it; the first one does where none is asked for."""
    about: str = ""
    """What was measured, in some words."""
    curve: tuple[str, float] | None = None
    """Of a prediction made in advance: the curve that it is a point of, and where on it."""


# One run is enough for a figure of three digits; intervals are for 'numatwin run'.
ONCE = "statistics.replications=1"


class Runs:
    """Records of scenarios on one plane, each run once.

    ``machines``: those of all records that were asked for since it was cleared, by name.
    """

    def __init__(self, plane: str) -> None:
        self.plane = plane
        self.machines: dict[str, Mapping[str, Any]] = {}
        self._cache: dict[tuple[Any, ...], Record] = {}

    def __call__(self, scenario: str, *settings: str, policy: str | None = None) -> Record:
        """The Record of a bundled scenario, with other values for some fields."""
        if self.plane in DRAWING_PLANES:
            settings = (*settings, ONCE)
        key = (scenario, settings, policy)
        if key not in self._cache:
            loaded = load_scenario(scenario, plane=self.plane, policy=policy, settings=settings)
            self._cache[key] = run_scenario(loaded)
        record = self._cache[key]
        machine = record.settings["machine"]
        self._note(machine["name"], machine.get("source", ""), machine.get("calibrated_on", ()))
        return record

    def machine(self, name: str) -> Machine:
        """A bundled machine, for what its facts alone predict."""
        found = load_machine(name)
        self._note(name, found.description.source or "", found.description.calibrated_on)
        return found

    def _note(self, name: str, source: str, calibrated_on: Sequence[str]) -> None:
        self.machines[name] = {
            "name": name,
            "source": source,
            "calibrated_on": list(calibrated_on),
        }

    def rate(self, scenario: str, *settings: str) -> float:
        """Operations per second."""
        return sum(self(scenario, *settings).throughput.values())
