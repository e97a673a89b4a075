"""The flow and the event plane agree, on each bundled scenario of ERIS."""

from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from core_threads import Loop

from numatwin.sim.eris.event_model import machine_of
from numatwin.sim.eris.parts import WALK
from numatwin.sim.eris.partitioned import PartitionedDemands
from numatwin.sim.planes.eris_events import ErisEvents
from numatwin.sim.planes.flow import FlowPlane
from numatwin.sim.planes.plane import Outcome
from numatwin.sim.planes.rate_solver import _Search
from numatwin.sim.planes.rates import Loads, Rates
from numatwin.sim.scenario import Scenario, load_scenario, scenario_names

WITHIN = 0.05
# Of what is used less than this nothing is asked.
USE_MIN = 0.05
# Before any phase changes, and before the first balancing is over.
CHANGING_S = 25e-3
# Workers make a whole round of commands before they execute the first: part of the run until all
# are where they will stay.
WARM_UP = 0.4

Floats = npt.NDArray[np.float64]


def eris_scenarios() -> list[str]:
    return [name for name in scenario_names() if load_scenario(name).system.kind == "eris"]


def replay(name: str) -> str:
    return f"numatwin run {name} --on event --replications 1 (this run: replication 1)"


@cache
def events(name: str) -> tuple[ErisEvents, Outcome]:
    """The event plane after a steady piece of time, and what it saw."""
    scenario = load_scenario(name, plane="event")
    until_s = scenario.horizon_s
    if len(scenario.workload.phases) > 1:
        until_s = min(until_s, CHANGING_S)
    plane = ErisEvents(scenario, 1)
    plane.advance(WARM_UP * until_s)
    plane.start_counting()
    plane.advance(until_s)
    return plane, plane.outcome()


@cache
def flows(name: str) -> tuple[FlowPlane, Rates]:
    plane = FlowPlane(load_scenario(name))
    return plane, plane.rates()


def as_flow(name: str) -> float:
    """Part of the flow plane's throughput that theory says is left to workers in events.

    Flows know of each core the sum of what its threads demand. Threads that take turns wait for each
    other, with much less to do than instructions would take: two of them are hardly ever both where
    only misses count. Played by hand, at the loads that come of it.
    """
    plane, rates = flows(name)
    if plane.threads.max() == 1 or not isinstance(plane.demands, PartitionedDemands):
        return 1.0
    scenario: Scenario = load_scenario(name)
    kinds = {operation.kind for operation in scenario.workload.operations.values()}
    assert plane.threads.max() == 2, "by hand for two threads"
    assert kinds == {"lookup"}, "by hand for lookups"
    demand = plane.system.demand(plane.demands, 0.0)
    machine = machine_of(plane.demands, plane.workload.description.clients)
    cores, workers = len(plane.threads), plane.system.workers.count
    (walk,) = (step for step in demand.steps if step.core_s.any())
    assert walk.name == WALK
    way = float(np.mean(machine.handed_ps))
    throughput = float(rates.flows.sum())
    for _ in range(3):
        loaded = plane.solver.solve(replace(demand, asked_per_s=throughput))
        loop = Loop(
            issue=machine.issue_ps[0],
            receive=machine.receive_ps[0],
            walk=float(walk.core_s.mean()) * cores * 1e12,
            walked=float(loaded.steps[WALK].mean()) * cores * 1e12,
            way=way,
            flush=machine.flush_ps[0],
            copy=machine.copy_ps[0],
            handed=2 * machine.lines_per_command * way / machine.stream_slots[0],
            round_commands=machine.round_commands,
            targets=workers,
            buffer=machine.buffer_commands,
            batch=machine.batch,
        )
        throughput = workers * loop.together(seed=1) * 1e12
    return throughput / float(rates.flows.sum())


def uses(outcome: Outcome, kind: str) -> Floats:
    return np.array([use.utilisation for use in outcome.resources if use.kind == kind])


@pytest.mark.parametrize("name", eris_scenarios())
class TestAgree:
    def test_throughput(self, name: str) -> None:
        _, seen = events(name)
        plane, rates = flows(name)
        expected = float(rates.flows.sum()) * as_flow(name)
        for operation, resolved in plane.system.phase.operations.items():
            of_flow = expected * resolved.share
            assert seen.throughput[operation] == pytest.approx(of_flow, rel=WITHIN), replay(name)

    def test_traffic(self, name: str) -> None:
        """Each controller and each link, and all of them."""
        _, seen = events(name)
        _, rates = flows(name)
        left = as_flow(name)
        for kind, of_flow in (("memory", rates.use_of("memory")), ("link", rates.use_of("links"))):
            here = uses(seen, kind)
            expected = left * of_flow[: len(here)]
            used = expected > USE_MIN
            assert here[used] == pytest.approx(expected[used], rel=WITHIN), replay(name)

    def test_workers_and_misses(self, name: str) -> None:
        """What workers and their miss slots were used for is the demand at the loads seen."""
