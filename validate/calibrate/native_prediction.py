"""What the flow plane predicts of a run that a native Record is of, on a candidate machine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...sim.demands import ISSUE, RECEIVE
from ...sim.eris.parts import SCAN, WALK
from ...sim.planes.flow import FlowPlane
from ...sim.planes.rates import Rates
from ...sim.scenario import Scenario, load_scenario
from .candidate import Candidate
from .observation import Observation

# Steps of a real worker's loop -> the step of the model's that they are part of.
STEPS = {"issue": ISSUE, "flush": ISSUE, "receive": RECEIVE, "walk": WALK, "scan": SCAN}

INDEX_SCENARIOS = {"lookup": "eris-fig8-amd", "upsert": "eris-fig8-amd-upsert"}


@dataclass
class NativeRun:
    """The scenario of a Record; the rates of the candidate that was asked for last are kept."""

    scenario: Scenario
    _last: tuple[Candidate, Rates] | None = field(default=None, repr=False)

    def rates(self, candidate: Candidate) -> Rates:
        """The steady rates of its first phase."""
        if self._last is None or self._last[0] is not candidate:
            scenario = replace(self.scenario, machine=candidate.machine, plane="flow")
            self._last = candidate, FlowPlane(scenario).steady()
        return self._last[1]

    def __str__(self) -> str:
        return self.scenario.hash


def index_run(operation: str, keys: int, batch: int) -> NativeRun:
    """One worker on an index of its own: what walks cost alone."""
    settings = (
        f"workload.objects.index.keys={keys}",
        f"system.batch={batch}",
        "system.threads=1",
        "system.nodes=1",
        "horizon=1 ms",
    )
    return NativeRun(load_scenario(INDEX_SCENARIOS[operation], settings=settings))


def native_throughput(candidate: Candidate, of: Observation) -> float:
    """Operations per second."""
    run: NativeRun = of.at["run"]
    share = run.scenario.workload.at(0.0).operations[of.at["operation"]].share
    return float(run.rates(candidate).flows.sum()) * share


def native_step_s(candidate: Candidate, of: Observation) -> float:
    """Time of a worker for its part of a command, in one of its steps."""
    run: NativeRun = of.at["run"]
    rates = run.rates(candidate)
    takes_s = rates.steps.get(of.at["step"])
    if takes_s is None:
        return float("nan")
    return float(rates.of_core @ takes_s) / max(float(rates.flows.sum()), 1e-300)
