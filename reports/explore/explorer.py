"""Predicts variants of one scenario for a page that requests one at each change."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import LifoQueue
from typing import Any

import yaml
from dash.exceptions import PreventUpdate

from ...inputs import DescriptionError, InputError
from ...inputs.progress import Progress, silent
from ...inputs.shared_work import SharedWork, shared
from ...sim.planes.outcome import ResourceUse, Why
from ...sim.run.runner import run_scenario
from ...sim.run.scenario import Scenario
from ...sim.run.what_if import FLOW, first_moment
from ...sim.studies.base import Base
from ...sim.studies.influences import Field, fields_of, influences
from ...sim.systems.registry import system_of
from ...topologies import machine_names
from ...topologies.draw import machine_svg
from ...workloads import workload_names
from ..machine_picture import use_of_parts
from ..report import report_html

SCREENING_S = 6.0  # for the choice of the fields that are shown first
KEPT_MAX = 256
AT_A_TIME = 4
Wanted = Callable[[], bool] | None
NUMBER = re.compile(r"\s*[-+]?[0-9._]{1,32}([eE][-+]?[0-9]{1,4})?\s*[A-Za-zµμ/]{0,16}\s*")


@dataclass(frozen=True)
class Choice:
    """What the page has set: ``settings`` (``path=value``), and by name what its menus say."""

    settings: tuple[str, ...] = ()
    machine: str | None = None
    workload: str | None = None
    policies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Moment:
    """What a variant does in its first moment."""

    throughput: Mapping[str, float]
    latency_ns: Mapping[str, float]
    """Mean, of operations that have one."""
    power_W: float | None
    busiest: tuple[ResourceUse, ...]
    picture: str | None
    """SVG text; None of a machine that cannot be drawn."""
    predicted_s: float

    @property
    def total(self) -> float:
        """All operations together."""
        return sum(self.throughput.values())


class Explorer:
    """The variants of ``base``; answers ``AT_A_TIME`` threads at a time.

    Only what ``menus`` and ``fields`` offer may be chosen: raises InputError, as all its methods
    do, where it is not, and where the scenario cannot be predicted by the flow plane.
    """

    def __init__(self, base: Base) -> None:
        self._base = base
        # Work is not shared by threads at the same time. Last in, first out: who asks alone finds
        # what was made last.
        self._shared: LifoQueue[SharedWork] = LifoQueue()
        for _ in range(AT_A_TIME):
            self._shared.put(SharedWork())
        self._moments: dict[Choice, Moment] = {}
        self._fields: dict[Choice, tuple[Field, ...]] = {}
        self._offered: dict[Choice, Mapping[str, Field]] = {}
        with self._turn():
            self.scenario = self._based(Choice()).load()
        self.name = base.scenario if isinstance(base.scenario, str) else base.file
        self.moment(Choice())

    def fields(self, choice: Choice, progress: Progress = silent) -> tuple[Field, ...]:
        """The fields of the machine and the workload that ``choice`` names, by effect."""
        found = self._fields.get(choice)
        if found is None:
            base = self._based(choice)
            with self._turn():
                scenario = base.load()
                fields = fields_of(base, scenario)
                found = influences(base, scenario, fields, budget_s=SCREENING_S, progress=progress)
                _keep(self._fields, choice, found)
        return found

    def menus(self) -> dict[str, tuple[str, ...]]:
        """What may be chosen by name: machines, workloads, policies of each family."""
        system = system_of(self.scenario.system)
        found = {"machine": tuple(machine_names()), "workload": tuple(workload_names())}
        for family in system.families:
            found[family.name] = tuple(family.titles)
        return found

    def moment(self, choice: Choice, wanted: Wanted = None) -> Moment:
        """The first moment of a variant, without what binds it.

        Raises PreventUpdate where it is not ``wanted`` any more when its turn comes.
        """
        found = self._moments.get(choice)
        if found is None:
            with self._turn(wanted):
                found = _moment(self._load(choice))
                _keep(self._moments, choice, found)
        return found

    def why(self, choice: Choice, wanted: Wanted = None) -> Mapping[str, Why]:
        """What binds each operation of a variant, and what more of each resource would bring."""
        with self._turn(wanted):
            return dict(first_moment(self._load(choice)).outcome().why)

    def scenario_file(self, choice: Choice) -> str:
        """A scenario file of the variant, machine and workload in full."""
        with self._turn():
            settings = dict(self._load(choice).settings)
        command = f"# {self.command(choice)}\n"
        return command + yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=100)

    def command(self, choice: Choice) -> str:
        """The command that runs the variant."""
        return self._based(choice).command(choice.settings)

    def report(self, choices: Sequence[Choice]) -> str:
        """The report of whole runs of variants, as a page."""
        with self._turn():
            loaded = [self._load(choice) for choice in choices]
        # Nothing shared: each Record tells what its own run assumed.
        return report_html([run_scenario(scenario) for scenario in loaded])

    @contextmanager
    def _turn(self, wanted: Wanted = None) -> Iterator[None]:
        work = self._shared.get()
        try:
            if wanted is not None and not wanted():
                raise PreventUpdate
            with shared(work):
                yield
        finally:
            self._shared.put(work)

    def _based(self, choice: Choice) -> Base:
        """The base with all but the settings."""
        options: dict[str, Any] = dict(self._base.options)
        for name in ("machine", "workload"):
            if (chosen := getattr(choice, name)) is not None:
                options[name] = self._offer(name, chosen)
        if choice.policies:
            for family, _, name in (policy.partition("=") for policy in choice.policies):
                self._offer(family, name)
            options["policy"] = [*options.get("policy", ()), *choice.policies]
        return replace(self._base, options={**options, "plane": FLOW})

    def _offer(self, menu: str, name: str) -> str:
        if name not in self.menus().get(menu, ()):
            raise InputError("not in the page's menus", token=f"{menu}={name}")
        return name

    def _load(self, choice: Choice) -> Scenario:
        base = self._based(choice)
        try:
            if choice.settings:
                self._check_settings(replace(choice, settings=(), policies=()), choice.settings)
            return base.load(choice.settings)
        except DescriptionError as failure:  # of several fields: the first says enough
            raise InputError(str(failure).splitlines()[0]) from None

    def _check_settings(self, unset: Choice, settings: Sequence[str]) -> None:
        """Settings are of fields that the page offers for ``unset``, and of their kind."""
        offered = self._offered.get(unset)
        if offered is None:
            base = self._based(unset)
            offered = {field.path: field for field in fields_of(base, base.load())}
            _keep(self._offered, unset, offered)
        for path, _, text in (setting.partition("=") for setting in settings):
            if path not in offered:
                raise InputError("not a field of this page", token=path)
            _check_text(offered[path], text)


def _keep(kept: dict[Any, Any], key: Any, made: Any) -> None:
    """Adds to what is kept, of which the oldest goes; other threads may do the same."""
    kept[key] = made
    for oldest in list(kept)[:-KEPT_MAX]:
        kept.pop(oldest, None)


def _check_text(field: Field, text: str) -> None:
    if text not in field.choices if field.choices else not NUMBER.fullmatch(text):
        expected = " or ".join(field.choices) or f"a number {field.unit and 'in '}{field.unit}"
        raise InputError(field.path, token=text, expected=expected.strip())


def _moment(scenario: Scenario) -> Moment:
    began = time.perf_counter()
    plane = first_moment(scenario)
    outcome = plane.outcome(with_gains=False)
    links, nodes = use_of_parts(outcome.resources)
    try:
        picture = machine_svg(scenario.machine, link_use=links, node_use=nodes, title="")
    except InputError:
        picture = None
    energy_J = outcome.energy_J
    means = {name: (one or {}).get("mean") for name, one in outcome.latency_ns.items()}
    return Moment(
        throughput=dict(outcome.throughput),
        latency_ns={name: mean for name, mean in means.items() if mean is not None},
        power_W=None if energy_J is None else energy_J / plane.time_s,
        busiest=tuple(sorted(outcome.resources, key=lambda use: -use.utilisation)),
        picture=picture,
        predicted_s=time.perf_counter() - began,
    )
