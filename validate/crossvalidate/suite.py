"""Suites for cross-validation: scenarios to run for real, and the planes that predict them.

A run names a scenario, settings, and a grid: each combination of its axes' values is one case. See
``../suites/crossvalidate/host.yaml``.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from ...inputs import Catalogue, Document, InputError, Strict, load_yaml
from ...inputs.fields import near
from ...inputs.names import Name
from ...inputs.yaml_file import Place
from ...sim.run.real_planes import NATIVE, SIMULATED
from ...sim.run.scenario import Scenario, load_scenario
from ...sim.run.scenario_parts import reported_at
from ...sim.studies.levels import written
from ...sim.systems.registry import system_of
from ...topologies import Machine
from ...workloads import Workload
from ..emulated import seen_from
from ..metrics import Metric
from .sizes import bytes_of, entries_of, size_bytes

CATALOGUE = Catalogue(
    Path(__file__).parent.parent / "suites" / "crossvalidate", "suite", listed=False
)

Value = str | int | float | bool
Values = Annotated[dict[str, Value], Field(max_length=100)]
Axis = (
    Annotated[list[Value], Field(min_length=1, max_length=100)]
    | Annotated[dict[str, Value], Field(min_length=1, max_length=100)]
)

# Settings that are no fields of a scenario; ``size.OBJECT`` is one too.
OPTIONS = ("workload", "policy")
SIZE = "size."
# The host is the machine, and the suite says which planes predict.
NOT_SET = ("machine", "plane", "name", "extends")
CASES_MAX = 1_000
# What a setting, or an option, is called in errors.
_SOURCE = re.compile(r"--(?:set ([^=]+)=|(workload|policy)\b)")
QUICK_ROUNDS = 2


class RunDescription(Strict):
    """One run of a suite, or, with a ``grid``, a run for each combination of its values.

    ``settings``: values by path, as ``--set`` has them; also ``workload``, ``policy`` (names, or
    paths relative to the suite's file) and ``size.OBJECT`` (see ``sizes.py``). ``grid``: of such a
    path, the values, or names for them. ``planes``: that predict it. ``metrics``: by default
    throughput and p99 latency of all operations, and traffic of the memory.
    """

    scenario: str
    planes: Annotated[tuple[str, ...], Field(min_length=1)] = ("flow", "event")
    metrics: tuple[str, ...] = ()
    settings: Values = Field(default_factory=dict)
    grid: Annotated[dict[str, Axis], Field(max_length=8)] = Field(default_factory=dict)

    @field_validator("planes")
    @classmethod
    def _predict(cls, planes: tuple[str, ...]) -> tuple[str, ...]:
        for plane in planes:
            if plane not in SIMULATED:
                raise ValueError(f"unknown plane '{plane}': expected {' or '.join(SIMULATED)}")
        return planes


class SuiteDescription(Strict):
    """A suite's file. ``rounds``: how often each case runs for real; ``settings``: of all runs.

    ``includes``: suites (bundled, or paths relative to the file) whose runs, with their own
    settings, are runs of this one, too.
    """

    name: Name
    title: str = ""
    notes: tuple[str, ...] = ()
    rounds: Annotated[int, Field(strict=True, ge=1, le=1_000)] = 5
    includes: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    settings: Values = Field(default_factory=dict)
    runs: Annotated[dict[Name, RunDescription], Field(min_length=1, max_length=100)]


@dataclass(frozen=True)
class Case:
    """A scenario to be measured and predicted.

    ``name``: of its run and its values on the grid; ``run``: of its run; ``at``: its values by
    axis; ``predicted``: by plane; ``unable``: planes that cannot run it, and why; ``size_bytes``:
    of all its data.
    """

    name: str
    run: str
    at: Mapping[str, str]
    native: Scenario
    predicted: Mapping[str, Scenario]
    unable: Mapping[str, str]
    metrics: tuple[Metric, ...]
    size_bytes: float


@dataclass(frozen=True)
class LeftOut:
    """What has no row, of which runs of the suite, and why."""

    what: str
    reason: str
    runs: tuple[str, ...]


@dataclass(frozen=True)
class Suite:
    """A suite on one machine, ready to run; ``path`` is its file.

    ``left_out``: cases that cannot run on this machine, though on the scenario's own.
    """

    name: str
    title: str
    path: Path
    machine: Machine
    rounds: int
    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...] = ()

    def as_json(self) -> list[dict[str, Any]]:
        """The cases, as ``--list --json`` has them."""
        return [
            {
                "scenario": case.name,
                "of": case.native.name,
                "planes": list(case.predicted),
                "metrics": [str(metric) for metric in case.metrics],
                "size_bytes": case.size_bytes,
                "horizon_s": case.native.horizon_s,
            }
            for case in self.cases
        ]


def load_suite(
    name_or_path: str, machine_path: Path, machine: Machine, *, quick: bool = False
) -> Suite:
    """The bundled suite of that name, or the one in that file, on the machine in a file.

    ``quick``: two rounds at most, and of each axis its first and its last value. Raises InputError.
    """
    path = CATALOGUE.path(name_or_path)
    files = [_File.read(path)]
    files += files[0].included()
    cases: list[Case] = []
    not_playable: dict[str, dict[str, None]] = {}
    for file in files:
        loader = _Loader(file, str(machine_path), machine, not_playable)
        for name, run in file.description.runs.items():
            cases += loader.cases(name, _thinned(run) if quick else run)
    if len(cases) > CASES_MAX:
        raise InputError(f"{len(cases)} runs", str(path), expected=f"at most {CASES_MAX}")
    description = files[0].description
    rounds = min(description.rounds, QUICK_ROUNDS) if quick else description.rounds
    left_out = tuple(LeftOut("any figure", why, tuple(runs)) for why, runs in not_playable.items())
    return Suite(description.name, description.title, path, machine, rounds, tuple(cases), left_out)


def _thinned(run: RunDescription) -> RunDescription:
    """The run with the first and the last value of each axis."""

    def ends(axis: list[Value] | dict[str, Value]) -> list[Value] | dict[str, Value]:
        if isinstance(axis, dict):
            names = list(axis)
            return {name: axis[name] for name in (names[0], names[-1])}
        return axis if len(axis) < 2 else [axis[0], axis[-1]]

    return run.model_copy(update={"grid": {name: ends(axis) for name, axis in run.grid.items()}})


@dataclass(frozen=True)
class _File:
    """A suite's file as it was read."""

    path: Path
    document: Document
    description: SuiteDescription

    @classmethod
    def read(cls, path: Path) -> "_File":
        document = load_yaml(path)
        return cls(path, document, document.read_as(SuiteDescription))

    def included(self) -> "list[_File]":
        """The suites that it includes, which include none themselves; each run has one name."""
        found: list[_File] = []
        names = set(self.description.runs)
        for index, name in enumerate(self.description.includes):
            place: Place = ("includes", index)
            with reported_at(self.document, place):
                file = _File.read(CATALOGUE.path(seen_from(self.path.parent, name)))
            if file.description.includes:
                raise self.document.error(
                    place, f"suite '{name}' includes others", expected="one that includes none"
                )
            if twice := names & set(file.description.runs):
                raise self.document.error(
                    place, f"suite '{name}' has a run '{min(twice)}', too", expected="other names"
                )
            names |= set(file.description.runs)
            found.append(file)
        return found


@dataclass(frozen=True)
class _Loader:
    """Cases of a file; ``not_playable``: runs that this machine cannot run, by the reason."""

    file: _File
    machine_path: str
    machine: Machine
    not_playable: dict[str, dict[str, None]]
    workloads: dict[tuple[str, str | None], Workload] = field(default_factory=dict)

    def cases(self, name: str, run: RunDescription) -> Iterator[Case]:
        """One of each combination of the grid's values."""
        place: Place = ("runs", name)
        axes = [
            [*(axis.items() if isinstance(axis, dict) else ((written(v, ""), v) for v in axis))]
            for axis in run.grid.values()
        ]
        for values in product(*axes):
            labels = dict(zip(run.grid, (label for label, _ in values), strict=True))
            chosen = dict(zip(run.grid, (value for _, value in values), strict=True))
            settings = {**self.file.description.settings, **run.settings, **chosen}
            places = {path: (*place, "settings", path) for path in run.settings}
            places |= {path: self._place_on_grid(name, run, path, chosen[path]) for path in chosen}
            case = self._case(name, run, labels, settings, places)
            if case is not None:
                yield case

    def _place_on_grid(self, name: str, run: RunDescription, path: str, value: Value) -> Place:
        axis, place = run.grid[path], ("runs", name, "grid", path)
        if isinstance(axis, dict):
            return (*place, next(label for label, one in axis.items() if one == value))
        return (*place, axis.index(value))

    def _case(
        self,
        name: str,
        run: RunDescription,
        labels: Mapping[str, str],
        settings: Mapping[str, Value],
        places: Mapping[str, Place],
    ) -> Case | None:
        for path in settings:
            if path.split(".")[0] in NOT_SET:
                raise self.file.document.error(
                    places.get(path, ("settings", path)),
                    f"run '{name}': '{path}' cannot be set: the host is the machine",
                )
        loaded = self._native(name, run, settings, places)
        if loaded is None:
            return None
        native, load = loaded
        predicted: dict[str, Scenario] = {}
        unable: dict[str, str] = {}
        for plane in run.planes:
            if plane not in system_of(native.system).planes:
                continue
            try:
                predicted[plane] = load(plane)
            except InputError as failure:  # of the machine: what the file says has just been read
                unable[plane] = failure.message
        metrics = self._metrics(name, run, native)
        return Case(
            f"{name}: {', '.join(labels.values())}" if labels else name,
            name,
            labels,
            native,
            predicted,
            unable,
            metrics,
            sum(bytes_of(stored) for stored in native.workload.objects.values()),
        )

    def _native(
        self,
        name: str,
        run: RunDescription,
        settings: Mapping[str, Value],
        places: Mapping[str, Place],
    ) -> tuple[Scenario, Callable[[str], Scenario]] | None:
        """The scenario for the native plane, its objects as large as the settings say, and what
        loads it for another.

        None where it is this machine that is not able to run it: on its own it can be.
        """
        place: Place = ("runs", name, "scenario")
        try:
            scenario = str(self._resolved_path(run.scenario))
            options: dict[str, Any] = {
                "workload": self._resolved_path(settings.get("workload")),
                "policy": self._resolved_path(settings.get("policy")),
            }
            stated = [
                f"{path}={written(value, '')}"
                for path, value in settings.items()
                if path not in OPTIONS and not path.startswith(SIZE)
            ]
            sizes = {path: value for path, value in settings.items() if path.startswith(SIZE)}
            if sizes:
                key = (scenario, options["workload"])
                if key not in self.workloads:
                    self.workloads[key] = load_scenario(scenario, plane=NATIVE, **options).workload
                stated.append("scale=1.0")
            for path, value in sizes.items():
                place = places.get(path, ("settings", path))
                stated.append(self._sized(self.workloads[key], path, value))
        except InputError as failure:
            raise self._error(name, failure, place, places) from None
        load = partial(
            load_scenario, scenario, machine=self.machine_path, **options, settings=stated
        )
        try:
            return load(plane=NATIVE), lambda plane: load(plane=plane)
        except InputError as failure:
            error = self._error(name, failure, ("runs", name, "scenario"), places)
            if not _loads(scenario, options, stated):
                raise error from None
            self.not_playable.setdefault(failure.message, {})[name] = None
            return None

    def _sized(self, workload: Workload, path: str, value: Value) -> str:
        """The setting that makes an object that large."""
        wanted, objects = path.removeprefix(SIZE), workload.objects
        if wanted not in objects:
            raise InputError(
                f"no object '{wanted}' in workload '{workload.name}'",
                expected=near(wanted, objects),
            )
        size = size_bytes(str(value), self.machine)
        field, count = entries_of(objects[wanted], size)
        return f"workload.objects.{wanted}.{field}={count}"

    def _error(
        self, name: str, failure: InputError, place: Place, places: Mapping[str, Place]
    ) -> InputError:
        """``failure`` at the line of the suite that it comes from, where that is known."""
        if failure.file is not None and failure.line is not None:
            return failure
        message = failure.message
        if (source := _SOURCE.match(failure.file or "")) is not None:
            path = source[1] or source[2]
            place = places.get(path, place)
            if path in self.file.description.settings and path not in places:
                place = ("settings", path)
        elif failure.file is not None:
            message = f"{failure.file}: {message}"
        return self.file.document.error(
            place, f"run '{name}': {message}", token=failure.token, expected=failure.expected
        )

    def _metrics(self, name: str, run: RunDescription, scenario: Scenario) -> tuple[Metric, ...]:
        operations = list(scenario.workload.operations)
        if not run.metrics:
            names = [f"throughput.{operation}" for operation in operations]
            names += [f"latency_ns.{operation}.p99" for operation in operations]
            return tuple(Metric.parsed(text) for text in (*names, "bandwidth_Bps.memory"))
        metrics = []
        for index, text in enumerate(run.metrics):
            place: Place = ("runs", name, "metrics", index)
            try:
                metric = Metric.parsed(text)
                metric.check_operation(scenario)
            except InputError as failure:
                raise self.file.document.error(
                    place, f"run '{name}': {failure.message}", token=text, expected=failure.expected
                ) from None
            metrics.append(metric)
        return tuple(metrics)

    def _resolved_path(self, value: Value | None) -> str | None:
        """A path that is relative to the suite's file, from here."""
        return None if value is None else seen_from(self.file.path.parent, str(value))


def _loads(scenario: str, options: Mapping[str, Any], settings: Sequence[str]) -> bool:
    """Whether a scenario loads on the machine that it names itself."""
    try:
        load_scenario(scenario, plane=NATIVE, **options, settings=settings)
    except InputError:
        return False
    return True
