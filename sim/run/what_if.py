"""Quick predictions of a scenario's first moments, to compare its variants.

By the flow plane, as a steady state, with data where they are laid out at first, by the rules of
policies that remember nothing, such as what may be stolen; where no flow plane runs the system, by
one short replication of its event plane, always with the same draws.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from ...inputs.shared_work import once
from ..control.family import Family, decide
from ..control.policy import AnyPolicy
from ..machine.costs import CostModel
from ..planes.flow import FlowPlane
from ..systems.registry import system_of
from .scenario import Scenario

FLOW, EVENT = "flow", "event"
MOMENT_S = 1e-3
RULES_MAX = 8  # an adaptive rule may order two things in turns
# Of a short replication: operations that must be done, and steps after which it is long enough.
OPERATIONS_MIN, STEPS_MAX = 4_000.0, 400_000
SHORTEST, GROWTH = 1 / 1024, 2.0
# Common draws leave so much to chance.
NOTICED = 0.01


@dataclass(frozen=True)
class Moment:
    """Operations per second by name, watts (None: unknown), bytes per second by way, latencies as
    of a Record.
    """

    throughput: Mapping[str, float]
    power_W: float | None = None
    bandwidth_Bps: Mapping[str, float | None] = field(default_factory=dict)
    latency_ns: Mapping[str, Mapping[str, float | None] | None] = field(default_factory=dict)


class Predictor:
    """Predicts ``scenario`` and its variants in the same way; ``known``: those found so far."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.known = dict[str, Moment]()  # of variants, by their settings
        self.plane = FLOW if FLOW in system_of(scenario.system).planes else EVENT
        self._until_s: float | None = None
        self.costs: CostModel | None = None
        # All are looked for from the same rates: what a variant does not change is equal in it.
        self._first = first_moment(scenario) if self.plane == FLOW else None
        if self._first is not None and self._first.costs is not None:
            # Variants that share them may note more.
            self.costs = copy(self._first.costs)
            self.costs.notes = {n: (one, dict(of)) for n, (one, of) in self.costs.notes.items()}
        self.own = self(scenario)

    def __call__(self, scenario: Scenario) -> Moment:
        """Raises InputError where the scenario cannot be simulated."""
        if self.plane == FLOW:
            return self._flow(scenario)
        return self._event(scenario)

    def relative(self, other: float) -> float:
        """A relative change; 0 where chance explains it."""
        return 0.0 if self.plane == EVENT and abs(other) < NOTICED else other

    def _flow(self, scenario: Scenario) -> Moment:
        plane = first_moment(scenario, self._first)
        outcome = plane.outcome(with_gains=False)
        energy = outcome.energy_J
        power_W = None if energy is None else energy / plane.time_s
        return Moment(outcome.throughput, power_W, outcome.bandwidth_Bps, outcome.latency_ns)

    def _event(self, scenario: Scenario) -> Moment:
        make = system_of(scenario.system).model(EVENT)
        plane = make(replace(scenario, plane=EVENT), 1)
        known = self._until_s is not None
        self._until_s = self._until_s or scenario.horizon_s * SHORTEST
        plane.advance(self._until_s)
        while (
            not known
            and self._until_s < scenario.horizon_s
            and _done(plane) < OPERATIONS_MIN
            and plane.model.events < STEPS_MAX
        ):
            self._until_s = min(GROWTH * self._until_s, scenario.horizon_s)
            plane.advance(self._until_s)
        return Moment(
            {
                name.partition("/")[2]: total / self._until_s
                for name, total in plane.totals().items()
                if name.startswith("throughput/")
            }
        )


def predictor_of(scenario: Scenario) -> Predictor:
    """The one of this scenario, while work is shared."""
    return once("predictor", id(scenario), lambda: Predictor(scenario), lambda made: 1)


def costs_of(scenario: Scenario) -> CostModel | None:
    """The cost model of its first moment in the flow plane; None where that has none, or does not
    simulate it."""
    if FLOW not in system_of(scenario.system).planes:
        return None
    return predictor_of(scenario).costs


def flow_plane(scenario: Scenario) -> Any:
    """The flow plane of ``scenario``, which draws nothing at random: the system's own, or one for
    the ``FlowSystem`` that it has.
    """
    model = system_of(scenario.system).model(FLOW)(scenario)
    return model if hasattr(model, "advance") else FlowPlane(scenario, model)


def first_moment(scenario: Scenario, near: Any = None) -> Any:
    """The flow plane of the scenario after its first moment; ``near``: that of a scenario like it,
    from whose rates its own are looked for.
    """
    plane = flow_plane(scenario)
    if near is not None and hasattr(plane, "start_near"):
        plane.start_near(near)
    _set_rules(scenario, plane)
    plane.advance(min(MOMENT_S, scenario.horizon_s))
    return plane


def acting(scenario: Scenario, rules: bool) -> list[tuple[Family, AnyPolicy]]:
    """Its policies that may order anything: those that remember nothing, or the others."""
    each = [(one.family, one.make()) for one in scenario.policies.values() if one.acts]
    return [pair for pair in each if getattr(pair[1], "MEMORYLESS", False) == rules]


def _set_rules(scenario: Scenario, plane: Any) -> None:
    """What its memoryless policies order, until they order nothing new."""
    rules = acting(scenario, rules=True)
    for _ in range(RULES_MAX):
        ordered = [
            command
            for family, policy in rules
            for command in decide(family, policy, plane.observe(family.name))
        ]
        if not ordered:
            return
        plane.apply(ordered)


def _done(plane: Any) -> float:
    """Operations so far."""
    return float(sum(v for name, v in plane.totals().items() if name.startswith("throughput/")))
