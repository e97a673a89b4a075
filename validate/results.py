"""Published results, predictions of them, and the runs that these come from.

What a publication says, and why a prediction is off, is in a file of ``sources/``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from ..inputs import Strict, load_yaml
from ..inputs.names import Name
from ..sim.run.real_planes import DRAWING_PLANES
from ..sim.run.record import Record
from ..sim.run.runner import run_scenario
from ..sim.run.scenario import load_scenario
from ..topologies import Machine, load_machine


@dataclass(frozen=True)
class Prediction:
    """What a row says was predicted: a number, or words where the source has none.

    ``holds``: whether a result in words came out; None for a number. ``facts``: what the result's
    note says of this run, by name.
    """

    value: float | str
    holds: bool | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """A published result: ``value`` is its figure, or what it says in words."""

    value: float | str | None
    """None where it has not been published: a prediction made in advance."""
    unit: str
    predict: "Callable[[Runs], Prediction]"
    calibrated_on: tuple[str, ...] = ()
    """Ids of published results that a setting of its scenarios comes from."""
    planes: tuple[str, ...] = ("flow",)
    """Those that can predict it; the first one does where none is asked for."""
    about: str = ""
    """What was measured, in some words."""
    curve: tuple[str, float] | None = None
    """Of a prediction made in advance: the curve that it is a point of, and where on it."""
    at_most: float | None = None
    """What no figure of its kind exceeds: 1 of a share."""
    note: str = ""
    """What one should know, such as missing physics; a prediction's facts by name, in braces."""


SOURCES = Path(__file__).parent / "sources"


class Result(Strict):
    """A published result, as its source's file has it; see ``Published``."""

    published: float | str
    unit: str
    about: str
    planes: tuple[str, ...] = ("flow",)
    calibrated_on: tuple[str, ...] = ()
    at_most: float | None = None
    note: str = ""


class Condition(Strict):
    """What a source does not tell of its runs: one of ``choices``, each as likely, by its name the
    settings that state it. They are those of scenarios whose whole names match ``scenarios``; a
    choice without any is asked for by predictions (``Runs.chosen``).
    """

    name: str
    choices: dict[str, tuple[str, ...]]
    scenarios: str = ""


class Source(Strict):
    """A publication's results by id. ``notes``: parts of notes that several results have in common,
    each by its name in braces. ``blindness``: how blind the predictions are, a paragraph.
    """

    notes: dict[str, str] = Field(default_factory=dict)
    results: dict[Name, Result]
    conditions: tuple[Condition, ...] = ()
    blindness: str

    def stated(self, condition: str, choice: str) -> tuple[str, ...]:
        """The settings of a choice of what the source leaves open."""
        return next(one.choices[choice] for one in self.conditions if one.name == condition)

    def predicted_by(
        self, predictions: "Mapping[str, Callable[[Runs], Prediction]]"
    ) -> dict[str, Published]:
        """Its results, each with what predicts it; KeyError for one that nothing predicts."""
        return {
            id_: Published(
                value=result.published,
                predict=predictions[id_],
                note=self._whole(result.note),
                **result.model_dump(exclude={"published", "note"}),
            )
            for id_, result in self.results.items()
        }

    def _whole(self, note: str) -> str:
        for name, part in reversed(self.notes.items()):  # which may name earlier ones
            note = note.replace(f"{{{name}}}", part)
        return note


def read_source(name: str) -> Source:
    """The publication of that name; raises InputError."""
    return load_yaml(SOURCES / f"{name}.yaml").read_as(Source)


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
        self.machines[name] = {"name": name, "source": source, "calibrated_on": list(calibrated_on)}

    def chosen(self, name: str, otherwise: str) -> str:
        """Which choice is taken of what the source leaves open (``Condition``)."""
        return otherwise

    def rate(self, scenario: str, *settings: str) -> float:
        """Operations per second."""
        return sum(self(scenario, *settings).throughput.values())
