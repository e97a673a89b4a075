"""Workers that the operating system moves: by hand, and as rates against task by task."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import told_by
from task_programs import BOTH, MS, US, cost, machine, parameters, program, query, stage, table

from numatwin import load_scenario
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.run.runner import bare_record
from numatwin.sim.systems.tasks.build import program_of
from numatwin.sim.systems.tasks.event_plane import EventModel
from numatwin.sim.systems.tasks.flow import POLLERS
from numatwin.sim.systems.tasks.history import BEGAN, ENDED, ON
from numatwin.sim.systems.tasks.layout import PartState
from numatwin.sim.systems.tasks.parameters import task_setup
from numatwin.sim.systems.tasks.piece_log import interconnect_ratio
from numatwin.sim.systems.tasks.program import MemoryUse
from numatwin.sim.systems.tasks.steady_rates import State
from numatwin.sim.systems.tasks.steady_state import SteadyState

pytestmark = pytest.mark.kernel


@BOTH
def test_two_tasks_share_a_processor_by_slices(make: type[EventModel]) -> None:
    """Two tasks of 100 µs, one processor, a tick every 50 µs, 2 µs for each switch.

    | at µs | runs |
    | --- | --- |
    | 0 | task 0 |
    | 50 | task 1 begins, as its thread comes up |
    | 100 | task 0 for its other 50 µs, and 2 for the switch: it is stopped at 150 |
    | 150 | task 1 likewise |
    | 200 | task 0: 2 µs for the switch, and 2 that were left |
    | 204 | task 1 likewise |
    """
    work = stage("work", cost(1, 1e-9), concurrency=1)
    made = program(
        [query(work, clients=2)],
        [2],
        [table((100_000, 0))],
        look_s=0.0,
        think_s=1.0,
        affinity="node",
        switch_s=2e-6,
    )
    model = make(parameters(made, 1, 1), 1, 1, True)
    model.run(MS)
    rows = model.trace()
    begins = rows[rows[:, 1] == BEGAN]
    assert begins[:2, 0].tolist() == [0, 50 * US]
    ends = rows[rows[:, 1] == ENDED]
    assert ends[:, 0] == pytest.approx([204 * US, 208 * US], abs=5)
    on = rows[rows[:, 1] == ON]
    assert on[:6, 0] == pytest.approx([k * US for k in (0, 50, 100, 150, 200, 204)], abs=5)
    assert list(model.counts()["migrations"]) == [0, 0, 0, 0]


@BOTH
def test_a_moved_task_warms_its_cache_from_where_its_data_lie(make: type[EventModel]) -> None:
    """A task of 10,000 entries, a line of node 0 each, 10 at a time: 10 ns an entry there, 15 ns
    from node 1 (a little more under load). After 30 µs node 0 is taken away: 300 lines (4.5 µs) are
    read again, then 7,000 entries take 105 µs."""
    pick = replace(
        cost(2, slots=10.0, memory=[MemoryUse("part", 1.0)]),
        warm_lines=np.full(2, 300.0),
        warm_s=np.full(2, 1e-6),
    )
    made = program(
        [query(stage("pick", pick, concurrency=1))],
        [1, 1],
        [table((10_000, 0))],
        look_s=0.0,
        think_s=1.0,
        affinity="none",
    )
    model = make(task_setup(made, CostModel(machine(2, 2))), 1, 1, True)
    model.run(30 * US)
    cpu = int(model.trace()[model.trace()[:, 1] == ON][0, 3])
    assert cpu < 2
    model.use([False, False, True, True])
    model.run(MS)
    rows = model.trace()
    assert rows[rows[:, 1] == ENDED][0, 0] == pytest.approx((30 + 4.5 + 105) * US, rel=1e-2)
    assert model.counts()["traffic"][:, 0] / 64 == pytest.approx([3_000, 7_300], rel=1e-2)
    assert model.counts()["migrations"][3] == 1


@pytest.mark.parametrize(("threads", "clients", "off"), [(2, 3, 0.1), (2, 12, 0.02), (6, 12, 0.05)])
def test_rates_are_near_what_tasks_do(threads: int, clients: int, off: float) -> None:
    """Scans of 100 µs by so many threads for each of two nodes with 2 cores, in tasks of 25 µs that
    read half of their lines from the other node.

    Rates know no whole tasks: a little off with few clients. More threads than processors cost
    switches (2 µs every 50 µs, about 4%), which rates leave out; and as equal tasks come in a fixed
    order, they meet parts of their own node more often (17% of lines cross, where rates say half).
    """
    scan = cost(2, 1e-9, memory=[MemoryUse("part", 0.0625)])
    made = program(
        [query(stage("scan", scan, concurrency=4), clients=clients)],
        [threads, threads],
        [table((50_000, 0), (50_000, 1))],
        look_s=0.0,
        queue="machine",
        affinity="none",
        switch_s=2e-6,
    )
    model = EventModel(parameters(made), 1, 1)
    model.run(10 * MS)
    event = float(model.counts()["answered"][0]) / 10e-3
    costs = CostModel(machine(2, 2))
    parts = {"t": tuple(PartState(part.rows, part.node, 1) for part in made.tables[0].parts)}
    state = State(tuple(parts.items()), (float(clients),), 0.0, (0.0,), frozenset(), (4.0, 0.0))
    rates = SteadyState(made, costs).solve(replace(state, spread=(0.5, 0.5)))
    assert float(rates.queries[0]) == pytest.approx(event, rel=off)
    traffic = model.counts()["traffic"]
    ratio = 1.0 - np.trace(traffic) / traffic.sum()
    crossing = interconnect_ratio(rates.served.pair_Bps)
    if threads == 2:
        assert crossing == pytest.approx(ratio, abs=0.1)
    else:  # known to be off: rates see no order, see above
        assert crossing == pytest.approx(0.5, abs=0.02)
        assert ratio == pytest.approx(0.17, abs=0.05)
    assert not rates.stolen.any()


def test_no_copy_engine_serves_moved_threads() -> None:
    settings = ["machine=sgi-uv300h-8s", "policies={}", "system.affinity=none"]
    settings += ["system.background=[{kind: copy-engine, node: 0, home: 1, workers: 1}]"]
    scenario = load_scenario("short-and-long", settings=settings)
    assert "system.affinity: none, and work of a copy engine" in told_by(program_of, scenario)


@pytest.mark.parametrize(
    ("threads", "look", "times"), [(8, "", 2.0), (4, "", 1.0), (8, "system.look=20 us", 1.0)]
)
def test_flows_say_where_pollers_take_turns(threads: int, look: str, times: float) -> None:
    """Threads of one node with four cores, and four tasks at a time."""
    more = ["system.nodes=1", "workload.clients.count=2", "system.concurrency=2", "policies={}"]
    settings = ["machine=opteron-4n", "system.affinity=none", f"system.threads={threads}", *more]
    settings += [look] if look else []
    flow, event = (
        bare_record(load_scenario("host-queries", plane=plane, replications=1, settings=settings))
        for plane in ("flow", "event")
    )
    ratio = sum(flow.throughput.values()) / sum(event.throughput.values())
    assert ratio == pytest.approx(times, rel=0.25)
    assert (POLLERS in flow.warnings) == (times > 1)
