"""The event and the reference plane of tasks, as scenarios play them: the same result, however far
time goes at once; parts of tables between the layout and a model.
"""

from collections.abc import Callable

import numpy as np
import pytest
from task_programs import MS, US, Maker, cost, parameters, program, query, stage, table

from numatwin import Scenario, load_scenario, run_scenario
from numatwin.sim.machine.reference.servers import WINDOW_PS
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
from numatwin.sim.systems.tasks.event_plane import (
    EventModel,
    PartsInPlay,
    ReferenceModel,
    TasksEvents,
    event_plane,
    reference_plane,
)
from numatwin.sim.systems.tasks.history import BEGAN
from numatwin.sim.systems.tasks.layout import PAGE_BYTES, Layout

pytestmark = pytest.mark.kernel

PLANES = [event_plane, reference_plane]
MAKERS = [EventModel, ReferenceModel]
NAMES = ["event", "reference"]
ONCE = "statistics.replications=1"


def scenario(horizon: str = "20 ms") -> Scenario:
    """Short and long queries on a tenth of the bundled data: the beginning."""
    settings = [f"horizon={horizon}", "scale=0.1"]
    return load_scenario("short-and-long", plane="event", settings=settings)


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
    # Slots of misses are not counted there: 0% would be wrong.
    assert {use.kind for use in a.resources} == {"cores", "memory", "link"}
    for one, other in zip(a.resources, b.resources, strict=True):
        assert one.utilisation == pytest.approx(other.utilisation, abs=1e-6), one.name
    for name, latencies in a.latencies_ns.items():
        assert np.array_equal(latencies.counts, b.latencies_ns[name].counts)


def test_both_count_what_directories_in_memory_take() -> None:
    """Stolen scans: readers of a line change between near and far, so that homes write, too."""
    few = [f"workload.operations.select-TBL{k}.clients=4" for k in (1, 2)]
    settings = ["horizon=20 ms", "scale=0.01", "system.concurrency=8", *few]
    memories = []
    for make in PLANES:
        plane = make(load_scenario("hana-fig11-low", plane="event", settings=settings), 1)
        plane.apply([AllowStealing(frozenset(plane.program.classes))])
        plane.advance(20e-3)
        memories.append([use for use in plane.outcome().resources if use.kind == "memory"])
    for one, other in zip(*memories, strict=True):
        # The reference counts updates up to its last whole window.
        window = WINDOW_PS / 20e9
        assert one.utilisation == pytest.approx(other.utilisation, abs=window), one.name
    # Updates are no traffic of cores.
    moved = [(use.Bps or 0.0) / (use.capacity_Bps or 1.0) for use in memories[0]]
    assert memories[0][1].utilisation > moved[1] + 0.02


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
def test_all_is_counted_from_the_same_time_on(make: Callable[[Scenario, int], TasksEvents]) -> None:
    """After the warm-up: sums of the series, the result and the facts tell of the same time."""
    warm, whole = (make(scenario(), 1) for _ in range(2))
    for plane in (warm, whole):
        plane.apply([AllowStealing(frozenset(plane.program.classes))])
        plane.advance(0.008)
    before, early = whole.totals(), whole.outcome()
    warm.start_counting()
    assert set(warm.totals().values()) == {0.0}
    for plane in (warm, whole):
        plane.apply([ReleaseCore(0, 1)])
        plane.advance(0.02)
    now, after, late = warm.totals(), whole.totals(), whole.outcome()
    found = warm.outcome()
    assert now == pytest.approx({name: after[name] - before[name] for name in after})
    cores = warm.workers.cores
    assert now["allocated cores"] == pytest.approx((cores - 1) * 0.012)
    for name, done in found.operations.items():
        assert now[f"throughput/{name}"] == done == late.operations[name] - early.operations[name]
        assert now[f"under_way/{name}"] == pytest.approx(found.latencies_ns[name].total * 1e-9)
    for use in found.resources:
        seconds = now.get(f"utilisation/{use.name}")
        assert seconds is None or seconds == pytest.approx(use.utilisation * 0.012, abs=1e-9)
    for kind in ("tasks", "stolen"):
        since = {name: count - early.model[kind][name] for name, count in late.model[kind].items()}
        assert found.model[kind] == since
    assert sum(found.model["tasks"].values()) > 0
    first, all_ = (np.array(outcome.model["traffic_Bps"]) for outcome in (early, late))
    moved = all_ * 0.02 - first * 0.008
    assert np.array(found.model["traffic_Bps"]) * 0.012 == pytest.approx(moved)


def test_both_kinds_of_planes_tell_the_same() -> None:
    """What the flow plane tells of a run, the event plane tells by the same name."""
    flow, event = (
        run_scenario(
            load_scenario("short-and-long", plane=plane, settings=["horizon=20 ms", ONCE]),
            workers=1,
        )
        for plane in ("flow", "event")
    )
    assert set(flow.model) <= set(event.model)
    assert flow.model["parts"] == event.model["parts"]
    assert set(flow.model["tasks"]) == set(event.model["tasks"]) == set(event.model["stolen"])
    assert flow.series is not None
    assert event.series is not None
    missing = {name for name in flow.series if name not in event.series}
    assert all(name.startswith("waiting/") for name in missing), missing
    for name in flow.series:
        if name.startswith("parts/") or name == "allocated cores":
            assert event.series[name][0] == pytest.approx(flow.series[name][0]), name


@pytest.mark.parametrize("make", PLANES, ids=NAMES)
def test_what_policies_see(make: Callable[[Scenario, int], TasksEvents]) -> None:
    plane = make(scenario(), 1)
    plane.advance(0.01)
    stealing = plane.observe("stealing")
    assert isinstance(stealing, StealingObservation)
    assert tuple(stealing.memory_Bps) == plane.program.classes
    running = plane.model.counts()["classes"][:, 3].sum()
    assert stealing.idle.sum() == plane.program.scheduling.workers.sum() - running
    cores = plane.observe("cores")
    assert isinstance(cores, CoresObservation)
    assert 0 < cores.cpu_load <= 1
    assert len(cores.allocated) == cores.cores.sum() == plane.workers.cores
    placer = plane.observe("placer")
    assert isinstance(placer, PlacerObservation)
    rows = sum(part.rows for t in plane.program.tables for part in t.parts)
    assert sum(part.rows for part in placer.parts) == rows
    # No sample yet, none since: nothing that is not a number.
    assert not placer.node_cpu.any()
    assert all(np.isfinite(part.cpu.mean()) for part in placer.parts)


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
@pytest.mark.parametrize("queries_wait", [True, False])
def test_queries_may_go_on_while_their_part_moves(make: Maker, queries_wait: bool) -> None:
    """Three clients' tasks of 10 µs, a worker on each of two nodes, nothing is stolen. From 15 µs
    on the part, of one page, moves for 100 µs.

    | | 0 to 20 µs | to 115 µs | then |
    | --- | --- | --- | --- |
    | they wait | node 0, two tasks | nothing | node 1 |
    | they go on | node 0, two tasks | node 0, ten more, the last one to 120 µs | node 1 |
    """
    queries = [query(stage("a", cost(2, 1e-6)), clients=3)]
    made = program(queries, [1, 1], [table((10, 0))], concurrency=1)
    model = make(parameters(made), 1, 1, True)
    layout = Layout(made.tables, np.array([1000, 1000]), 100e-6, 30e-6, [0, 1])
    parts = PartsInPlay(layout, model)
    model.run(15 * US)
    parts.order(MovePart("t", 0, 1, queries_wait), 15e-6)
    while not model.run(150 * US):
        parts.arrived(model.now_ps / 1e12)
    trace = model.trace()
    nodes = [(row[0] // US, row[4]) for row in trace[trace[:, 1] == BEGAN].tolist()]
    assert [at for at, node in nodes if node == 1] == [115, 125, 135, 145]
    if queries_wait:
        assert [at for at, node in nodes if node == 0] == [0, 10]
    else:
        assert [at for at, node in nodes if node == 0] == list(range(0, 120, 10))
    assert model.counts()["parts_waiting"] == 0


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
    assert model.counts()["parts_waiting"] == 0


def test_equal_points_of_loaded_latency_are_one() -> None:
    """Two measurements may round to one load: on all planes the slower one counts."""
    first, again, last = (
        f"{{bandwidth: {load} GB/s, latency: {ns} ns}}"
        for load, ns in ((1, 100), (2, 120), (3, 150))
    )
    found = [
        run_scenario(
            load_scenario(
                "short-and-long",
                plane=plane,
                settings=[
                    "horizon=2 ms",
                    "statistics.warm_up=0 s",
                    ONCE,
                    f"machine.loaded_latency=[{', '.join(points)}]",
                ],
            )
        ).throughput
        for plane in ("flow", "event", "reference")
        for points in ((first, again, last), (first, again.replace("120", "100"), again, last))
    ]
    assert found[0::2] == found[1::2]
