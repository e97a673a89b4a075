"""What the flow plane predicts of a run that a native Record is of, on a candidate machine."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...sim.run.scenario import Scenario
from ...sim.run.what_if import flow_plane
from ...topologies.machine import Machine
from .engine_calibration import Facts, NativeSteps, Tried, native_steps
from .observation import Observation


@dataclass(frozen=True)
class Steady:
    """Units of work per second, and by step the time of workers per command.

    A scan is a unit of work, and a command of each worker that holds a part of what is scanned.
    """

    units_per_s: float
    step_s: Mapping[str, float]


# A fit comes back to about as many machines: each parameter moved both ways from where it stands.
CACHED_MAX = 128


@dataclass
class NativeRun:
    """The scenario of a Record; what was found of the machines that were asked for last is kept.

    Machines count as one where all that a run could see of them is the same.
    """

    scenario: Scenario
    _kept: OrderedDict[Facts, Steady] = field(default_factory=OrderedDict, repr=False)

    def steady(self, candidate: Tried) -> Steady:
        """Its first phase, as it goes on."""
        facts = candidate.facts(self._engine.unseen(self.scenario))
        found = self._kept.get(facts)
        if found is None:
            found = self._steady(candidate.machine)
            self._kept[facts] = found
            if len(self._kept) > CACHED_MAX:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(facts)
        return found

    @cached_property
    def _engine(self) -> NativeSteps:
        found = native_steps(self.scenario.system.kind)
        assert found is not None, "runs of such systems are not read"
        return found

    def _steady(self, machine: Machine) -> Steady:
        plane = flow_plane(replace(self.scenario, machine=machine, plane="flow"))
        rates = plane.steady()
        units = max(float(rates.flows.sum()), 1e-300)
        commands = self._engine.commands_per_s(plane) or 1.0
        return Steady(
            float(rates.flows.sum()),
            {
                name: float(rates.of_core @ takes_s) / units / commands
                for name, takes_s in rates.steps.items()
            },
        )

    def __str__(self) -> str:
        return self.scenario.hash


def native_throughput(candidate: Tried, observation: Observation) -> float:
    """Operations per second."""
    run: NativeRun = observation.at["run"]
    share = run.scenario.workload.at(0.0).operations[observation.at["operation"]].share
    return run.steady(candidate).units_per_s * share


def native_step_s(candidate: Tried, observation: Observation) -> float:
    """Time of a worker for its part of a command, in one of its steps."""
    run: NativeRun = observation.at["run"]
    return run.steady(candidate).step_s.get(observation.at["step"], float("nan"))
