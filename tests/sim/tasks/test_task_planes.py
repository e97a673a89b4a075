"""The event and the reference plane of tasks, as scenarios play them: the same result, however far
time goes at once; parts of tables between the layout and a model.
"""

from collections.abc import Callable

import numpy as np
import pytest
from task_programs import MS, US, cost, parameters, program, query, stage, table

from numatwin import Scenario, load_scenario
from numatwin.sim.systems.tasks.commands import (
    AllowStealing,
    CoresObservation,
    MergeTable,
    MovePart,
    PartitionTable,
    PlacerObservation,
    ReleaseCore,
    StealingObservation,
)
from numatwin.sim.systems.tasks.event_plane import TasksEvents, event_plane, reference_plane
from numatwin.sim.systems.tasks.layout import PAGE_BYTES, Layout
from numatwin.sim.systems.tasks.models import EventModel, Model, ReferenceModel
from numatwin.sim.systems.tasks.parameters import TaskParameters
from numatwin.sim.systems.tasks.parts_in_play import PartsInPlay

pytestmark = pytest.mark.kernel

PLANES = [event_plane, reference_plane]
MAKERS = [EventModel, ReferenceModel]
NAMES = ["event", "reference"]
Maker = Callable[[TaskParameters, int, int, bool], Model]


def scenario(horizon: str = "20 ms") -> Scenario:
    """Short and long queries, as they are bundled: the beginning."""
    return load_scenario("short-and-long", plane="event", settings=[f"horizon={horizon}"])


def steered(plane: TasksEvents, stops_ms: list[int]) -> TasksEvents:
    """At 5 ms all classes are opened to stealing, at 8 ms a core is released."""
    for stop_ms in sorted([*stops_ms, 5, 8, 20]):
        plane.advance(stop_ms / 1e3)
        plane.totals()
        if stop_ms == 5:
            plane.apply([AllowStealing(frozenset(plane.program.classes))])
        if stop_ms == 8:
            plane.apply([ReleaseCore(0, 1)])
    return plane


def test_both_planes_have_the_same_result() -> None:
    event, reference = (steered(make(scenario(), 1), []) for make in PLANES)
    a, b = event.outcome(), reference.outcome()
    assert (a.operations, a.throughput) == (b.operations, b.throughput)
    assert a.model["tasks"] == b.model["tasks"]
    assert a.energy_J == pytest.approx(b.energy_J)
    for one, other in zip(a.resources, b.resources, strict=True):
        assert one.utilisation == pytest.approx(other.utilisation, abs=1e-6), one.name
    for name, latencies in a.latencies_ns.items():
        assert np.array_equal(latencies.counts, b.latencies_ns[name].counts)


def test_steps_make_no_difference() -> None:
    whole, steps = (steered(event_plane(scenario(), 1), stops) for stops in ([], [1, 3, 12, 17]))
    a, b = whole.outcome(), steps.outcome()
    assert (a.operations, a.model, a.resources, a.steps) == (
        b.operations,
        b.model,
        b.resources,
        b.steps,
    )
    assert whole.totals() == steps.totals()


@pytest.mark.parametrize("make", PLANES, ids=NAMES)
def test_what_policies_see(make: Callable[[Scenario, int], TasksEvents]) -> None:
    plane = make(scenario(), 1)
    plane.advance(0.01)
    stealing = plane.observe("stealing")
    assert isinstance(stealing, StealingObservation)
    assert tuple(stealing.memory_Bps) == plane.program.classes
    running = plane.model.class_counts()[:, 3].sum()
    assert stealing.idle.sum() == plane.program.scheduling.workers.sum() - running
    cores = plane.observe("cores")
    assert isinstance(cores, CoresObservation)
    assert 0 < cores.cpu_load <= 1
    assert len(cores.allocated) == cores.cores.sum() == plane.workers.cores
    placer = plane.observe("placer")
    assert isinstance(placer, PlacerObservation)
    rows = sum(part.rows for t in plane.program.tables for part in t.parts)
    assert sum(part.rows for part in placer.parts) == rows


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
def test_parts_follow_the_layout(make: Maker) -> None:
    """A table of 10 pages, 20 µs a page moved and 30 µs split, on node 0 of two.

    | 0 to 200 µs | 0.5 to 0.8 ms | 0.8 to 0.9 ms | 1 to 1.3 ms |
    | --- | --- | --- | --- |
    | moves to node 1 | is split | its second half moves to node 0 | is merged on node 1 |

    The copying threads of nodes 0 and 1 read a half each while it is merged: 5 pages of 30 µs.
    """
    made = program([query(stage("a", cost(2, 1e-9)))], [2, 2], [table((10 * PAGE_BYTES // 4, 0))])
    model = make(parameters(made), 1, 1, True)
    layout = Layout(made.tables, np.array([1000, 1000]), 20e-6, 30e-6, [0, 1])
    parts = PartsInPlay(layout, model)

    def run(until_ps: int) -> None:
        while not model.run(until_ps):
            parts.arrived(model.now_ps / 1e12)

    parts.order(MovePart("t", 0, 1), 0.0)
    run(500 * US)
    assert [(part.node, part.blocked) for part in layout.parts["t"]] == [(1, False)]
    parts.order(PartitionTable("t", (1, 0)), 500e-6)
    run(850 * US)
    assert [(part.node, part.blocked) for part in layout.parts["t"]] == [(1, False), (1, True)]
    run(MS)
    assert [part.node for part in layout.parts["t"]] == [1, 0]
    parts.order(MergeTable("t", 1), 1e-3)
    run(2 * MS)
    assert [(part.node, part.rows) for part in layout.parts["t"]] == [(1, 10 * PAGE_BYTES // 4)]
    ends_us = [event.time_s * 1e6 for event in layout.events if event.kind == "done"]
    assert ends_us == pytest.approx([200, 800, 900, 1150])
    assert layout.sent_pages == layout.arrived_pages == 10 + 10 + 5 + 10
    layout.check()
    assert len(model.parts(0)) == 1
    assert model.parts_waiting == 0
