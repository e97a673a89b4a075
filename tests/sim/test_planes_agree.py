"""The flow and the event plane agree, on each bundled scenario of ERIS."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from core_threads import Loop

from numatwin import run_scenario
from numatwin.sim.kernel.arrays import Floats
from numatwin.sim.planes.flow import FlowPlane
from numatwin.sim.planes.outcome import Outcome
from numatwin.sim.planes.rate_solver import _Search
from numatwin.sim.planes.rates import Loads, Rates
from numatwin.sim.run.scenario import load_scenario, scenario_names
from numatwin.sim.run.what_if import flow_plane
from numatwin.sim.systems.eris.event_model import machine_of
from numatwin.sim.systems.eris.event_plane import ErisEvents
from numatwin.sim.systems.eris.partitioned import PartitionedDemands
from numatwin.sim.systems.eris.parts import WALK

WITHIN = 0.05
# Of what is used less than this nothing is asked.
USE_MIN = 0.05
# Before any phase changes, and before the first balancing is over.
CHANGING_S = 25e-3
# Workers make a whole round of commands before they execute the first: part of the run until all
# are where they will stay.
WARM_UP = 0.4

# Workers of the event plane, who all take the same time, fall into step: by and by their rounds
# begin and end together, and links are full in one part of a round and idle in another. A steady
# state knows nothing of that, nor does it matter where links are as wide as these; see
# test_rounds_in_step.
WIDER = {"eris-fig1": tuple(f"machine.distance_classes.{i}.bandwidth=9 GB/s" for i in range(2, 6))}


def eris_scenarios() -> list[str]:
    return [name for name in scenario_names() if load_scenario(name).system.kind == "eris"]


def replay(name: str) -> str:
    changes = "".join(f" --set '{setting}'" for setting in WIDER.get(name, ()))
    return f"numatwin run {name}{changes} --on event --replications 1 (this run: replication 1)"


@cache
def events(name: str) -> tuple[ErisEvents, Outcome]:
    """The event plane after a steady piece of time, and what it saw."""
    return played(name, WIDER.get(name, ()))


def played(name: str, settings: tuple[str, ...]) -> tuple[ErisEvents, Outcome]:
    scenario = load_scenario(name, plane="event", settings=settings)
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
    plane = flow_plane(load_scenario(name, settings=WIDER.get(name, ())))
    return plane, plane.rates()


def as_flow(name: str) -> float:
    """Part of the flow plane's throughput that theory says is left to workers in events.

    Flows know of each core only the sum of what its threads demand, and let that fill it. But two
    threads that take turns wait for each other, now and then both for misses, and then their core
    does nothing: a closed system of two customers. Played by hand, at the loads that come of it.
    """
    plane, rates = flows(name)
    if plane.system.workers.on_cores.max() == 1 or not isinstance(
        plane.demands, PartitionedDemands
    ):
        return 1.0
    scenario = load_scenario(name)
    kinds = {operation.kind for operation in scenario.workload.operations.values()}
    assert plane.system.workers.on_cores.max() == 2, "by hand for two threads"
    assert kinds <= {"lookup", "upsert"}, "by hand for commands by key"
    demand = plane.system.demand(plane.demands, 0.0)
    machine = machine_of(plane.demands, plane.workload.description.clients)
    cores, workers = len(plane.system.workers.on_cores), plane.system.workers.count
    (walk,) = (step for step in demand.steps if step.core_s.any())
    assert walk.name == WALK
    way = float(np.mean(machine.handed_ps))
    throughput = float(rates.flows.sum())
    for _ in range(3):
        loaded = plane.solver.solve(replace(demand, offered_per_s=throughput))
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

    def test_memory_and_links(self, name: str) -> None:
        """Their use, and bytes per second, all together."""
        _, seen = events(name)
        plane, rates = flows(name)
        left, part = as_flow(name), plane.solver.resources
        traffic = {"memory": rates.memory_Bps, "links": rates.link_Bps}
        for kind, of_kind in (("memory", part.memory), ("links", part.links)):
            here = uses(seen, kind.removesuffix("s"))
            of_flow = rates.use[of_kind]
            if here.size and of_flow.max() > USE_MIN:
                expected = left * float(of_flow.sum())
                assert float(here.sum()) == pytest.approx(expected, rel=WITHIN), replay(name)
                bytes_per_s = left * float(traffic[kind].sum())
                assert seen.bandwidth_Bps[kind] == pytest.approx(bytes_per_s, rel=WITHIN), kind

    def test_workers_and_misses(self, name: str) -> None:
        """What workers and their miss slots are used for is what the operations done demand.

        How long a miss takes depends on loads, steeply so where a controller or a link is nearly
        saturated; those of the two planes bound it.
        """
        plane, seen = events(name)
        model, rates = flows(name)
        counted = plane.player.counted()
        passed_ps = plane.time_s * 1e12 - counted.since_ps
        memory, links = (
            np.minimum(ps / passed_ps, 1.0) for ps in (counted.memory_ps, counted.link_ps)
        )
        demand = model.system.demand(model.demands, 0.0)
        search = _Search(model.solver, demand, None)
        done = sum(seen.throughput.values()) / float(rates.flows.sum())
        of_core = done * rates.flows[demand.flow_of][model.system.workers.core_node]
        expected = []
        for loads in (rates.loads, Loads(memory, links, rates.loads.control)):
            worker_s, _, miss_s = search._core_times(loads)
            # In the event plane a worker whose burst waits for a link is not at work.
            worker_s = worker_s - search.held_up
            expected.append(
                [
                    (of_core * worker_s / model.system.workers.on_cores).sum(),
                    (of_core * miss_s).sum(),
                ]
            )
        for kind, bounds in zip(("cores", "misses"), np.transpose(expected), strict=True):
            here = per_core_sum(plane, seen, kind)
            if bounds.max() > USE_MIN * len(model.system.workers.on_cores):
                assert (1 - WITHIN) * bounds.min() <= here <= (1 + WITHIN) * bounds.max(), (
                    f"{kind}: {here} of {bounds}; {replay(name)}"
                )


def test_as_it_is() -> None:
    """On the machine as it is the planes agree, at first and later."""
    of_flow = float(flow_plane(load_scenario("eris-fig1")).rates().flows.sum())
    plane, first = played("eris-fig1", ())
    plane.start_counting()
    plane.advance(2.0 * plane.time_s)
    for outcome in (first, plane.outcome()):
        assert sum(outcome.throughput.values()) == pytest.approx(of_flow, rel=WITHIN), replay(
            "eris-fig1"
        )


def per_core_sum(plane: ErisEvents, outcome: Outcome, kind: str) -> float:
    """Use of a kind, the Record's means over each node's cores added up again."""
    cores = np.bincount(plane.eris.workers.core_node)
    return float(uses(outcome, kind) @ cores[cores > 0])


def test_lines_written_back_at_home_ask_nobody() -> None:
    """Upserts where caches snoop: what a node writes back to its own memory crosses no link."""
    traffic = {}
    for plane in ("flow", "event"):
        steady = ("statistics.replications=1", "statistics.warm_up=4 ms", "horizon=30 ms")
        scenario = load_scenario(
            "eris-fig8-intel",
            workload="eris-upsert-1e9",
            plane=plane,
            settings=steady if plane == "event" else (),
        )
        record = run_scenario(scenario)
        links_Bps = record.bandwidth_Bps["links"]
        assert links_Bps is not None
        traffic[plane] = links_Bps / record.throughput["upsert"]
    assert traffic["event"] == pytest.approx(traffic["flow"], rel=0.02)
