"""Predicts variants of one scenario for a page that requests one at each change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from ...inputs import DescriptionError, InputError
from ...inputs.shared_work import SharedWork, shared
from ...sim.planes.outcome import Outcome, ResourceUse, Why
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
    """The variants of ``base``; may be asked by several threads, and answers one at a time.

    Raises InputError, as all its methods do, where the scenario cannot be predicted by the flow
    plane.
    """

    def __init__(self, base: Base) -> None:
        self._base = base
        self._work, self._lock = SharedWork(), threading.RLock()
        self._moments: dict[Choice, Moment] = {}
        self._fields: dict[Choice, tuple[Field, ...]] = {}
        with self._lock, shared(self._work):
            self.scenario = self._based(Choice()).load()
        self.name = base.scenario if isinstance(base.scenario, str) else base.file
        self.moment(Choice())

    def fields(
        self, choice: Choice, progress: Callable[[float], None] = lambda part: None
    ) -> tuple[Field, ...]:
        """The fields of the machine and the workload that ``choice`` names, by effect."""
        base = self._based(choice)
        with self._lock, shared(self._work):
            if choice not in self._fields:
                scenario = base.load()
                fields = fields_of(base, scenario)
                self._fields[choice] = influences(
                    base, scenario, fields, budget_s=SCREENING_S, progress=progress
                )
            return self._fields[choice]

    def menus(self) -> dict[str, tuple[str, ...]]:
        """What may be chosen by name: machines, workloads, policies of each family."""
        system = system_of(self.scenario.system)
        found = {"machine": tuple(machine_names()), "workload": tuple(workload_names())}
        for family in system.families:
            found[family.name] = tuple(family.titles)
        return found

    def moment(self, choice: Choice) -> Moment:
        """The first moment of a variant, without what binds it."""
        with self._lock, shared(self._work):
            if choice not in self._moments:
                while len(self._moments) >= KEPT_MAX:
                    self._moments.pop(next(iter(self._moments)))
                self._moments[choice] = _moment(self._load(choice))
            return self._moments[choice]

    def why(self, choice: Choice) -> Mapping[str, Why]:
        """What binds each operation of a variant, and what more of each resource would bring."""
        with self._lock, shared(self._work):
            return dict(first_moment(self._load(choice)).outcome().why)

    def scenario_file(self, choice: Choice) -> str:
        """A scenario file of the variant, machine and workload in full."""
        with self._lock, shared(self._work):
            settings = dict(self._load(choice).settings)
        command = f"# {self.command(choice)}\n"
        return command + yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=100)

    def command(self, choice: Choice) -> str:
        """The command that runs the variant."""
        return self._based(choice).command(choice.settings)

    def report(self, choices: Sequence[Choice]) -> str:
        """The report of whole runs of variants, as a page."""
        with self._lock, shared(self._work):
            loaded = [self._load(choice) for choice in choices]
        # Nothing shared: each Record tells what its own run assumed.
        return report_html([run_scenario(scenario) for scenario in loaded])

    def _based(self, choice: Choice) -> Base:
        """The base with all but the settings."""
        options: dict[str, Any] = dict(self._base.options)
        for name in ("machine", "workload"):
            if getattr(choice, name) is not None:
                options[name] = getattr(choice, name)
        if choice.policies:
            options["policy"] = [*options.get("policy", ()), *choice.policies]
        return replace(self._base, options={**options, "plane": FLOW})

    def _load(self, choice: Choice) -> Scenario:
        try:
            return self._based(choice).load(choice.settings)
        except DescriptionError as failure:  # of several fields: the first says enough
            raise InputError(str(failure).splitlines()[0]) from None


def _moment(scenario: Scenario) -> Moment:
    began = time.perf_counter()
    plane = first_moment(scenario)
    outcome: Outcome = plane.log.outcome(why={}, events=[], model={}, warnings=())
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
