"""Rates of tasks as flows: cases worked by hand, and laws that hold for any."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import hand_programs as hand
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.sim._kernel import QueueSetup, SettledQueues
from numatwin.sim.kernel.picoseconds import PS_PER_S
from numatwin.sim.machine.costs import CostModel, Scales
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.tasks.commands import MovePart
from numatwin.sim.systems.tasks.event_plane import EventModel
from numatwin.sim.systems.tasks.layout import Layout
from numatwin.sim.systems.tasks.parameters import near_nodes, task_setup
from numatwin.sim.systems.tasks.program import LoopCost, MemoryUse, Program, Stage
from numatwin.sim.systems.tasks.steady_rates import Rates, State
from numatwin.sim.systems.tasks.steady_state import Search, SteadyState
from numatwin.topologies import build_machine, load_machine
from numatwin.topologies.schema import Coherence

MACHINE = load_machine("xeon-4s-ivb")
COSTS = CostModel(MACHINE)
NODES = len(MACHINE.nodes)
FOUR = (4,) * NODES
PEAK_LINES = 67.5e9 / 64
FEW_CLIENTS = """
name: few
machine: epyc-2s-nps4
system: {kind: tasks, memory: {policy: interleave}}
plane: flow
workload:
  name: few
  objects:
    t: {kind: table, rows: 100_000_000, columns: {a: {distinct: 1000}, b: {distinct: 1000}}}
  operations:
    pass:
      kind: query
      share: 1
      operators:
        find: {kind: scan, table: t, columns: [a], selectivity: 0.1}
        sums: {kind: aggregate, input: find, group_by: b, sums: [a]}
  clients: {kind: closed, count: CLIENTS}
"""


def layout_of(program: Program) -> Layout:
    return Layout(program.tables, np.full(NODES, 10**12), 59e-6, 109e-6, list(range(NODES)))


def solve(
    program: Program,
    *,
    stealable: frozenset[str] = frozenset(),
    layout: Layout | None = None,
    costs: CostModel = COSTS,
    near: Rates | None = None,
) -> Rates:
    where = layout or layout_of(program)
    state = State(
        parts=tuple(where.parts.items()),
        clients=tuple(float(query.clients) for query in program.queries),
        mix_clients=float(program.mix_clients),
        shares=tuple(query.share for query in program.queries),
        stealable=stealable,
        workers=tuple(program.scheduling.workers.tolist()),
        copies=where.copies,
    )
    return SteadyState(program, costs).solve(state, near)


def cpu_bound(task_class: str = "scan", **more: Any) -> Stage:
    """100 ns an entry, nothing from memory."""
    return hand.scan(nodes=NODES, task_class=task_class, memory=(), **more)


def bound_by_cores(
    concurrency: int,
    workers: tuple[int, ...] = FOUR,
    nodes: Sequence[int] = (0,),
    arrivals_per_s: float = 0.0,
    **query: Any,
) -> Program:
    """A query of 1,000,000 entries, on so many tasks at most."""
    of = hand.query(cpu_bound(concurrency=concurrency), **query)
    tables = [hand.table(rows=1_000_000, nodes=nodes)]
    return hand.program(of, tables=tables, workers=workers, arrivals_per_s=arrivals_per_s)


def test_one_client_has_all_workers_of_its_node() -> None:
    """1,000,000 entries of 100 ns over 4 workers: 25 ms, and no other node takes part."""
    rates = solve(bound_by_cores(4))
    assert rates.response_s[0] == pytest.approx(0.025, rel=1e-6)
    assert rates.queries[0] == pytest.approx(40.0, rel=1e-6)
    assert rates.running.sum() == pytest.approx(4.0, rel=1e-4)


@pytest.mark.parametrize("clients", [1, 3, 4, 5, 16, 1_024])
def test_clients_with_one_task_each_are_served_by_four_workers(clients: int) -> None:
    """A task of 0.1 s: as many run as there are clients, or workers."""
    found = solve(bound_by_cores(1, clients=clients)).queries[0]
    assert found == pytest.approx(min(clients, 4) / 0.1, rel=1e-4)


def played_per_s(program: Program, length_s: float = 1.0) -> float:
    """Queries per second of the compiled model, after a tenth of its time."""
    model = EventModel(task_setup(program, COSTS), 1, 0)
    model.run(round(0.1 * length_s * PS_PER_S))
    early = model.counts()["answered"].sum()
    model.run(round(length_s * PS_PER_S))
    return float(model.counts()["answered"].sum() - early) / (0.9 * length_s)


@pytest.mark.parametrize("clients", [1, 2, 3])
@pytest.mark.parametrize("tasks", [None, *range(1, 9)])
@pytest.mark.parametrize("kinds", ["cores", "memory", "both", "loops"])
def test_few_clients_are_served_as_event_by_event(
    kinds: str, tasks: int | None, clients: int
) -> None:
    """Who comes finds all workers that others do not use: its own tasks have ended. A task that
    waits takes its query a whole round."""
    cores = {"cores": [cpu_bound(concurrency=tasks)]}
    memory = hand.scan(nodes=NODES, concurrency=tasks, instructions_ns=10.0)
    then = cpu_bound(concurrency=tasks, inputs=(0,))
    # One loop waits for each line, the other computes; and each task takes 20 us more.
    waits = LoopCost(np.full(NODES, 1e-9), np.ones(NODES), memory.cost.memory)
    works = LoopCost(np.full(NODES, 9e-9), np.ones(NODES), ())
    loops = replace(memory, cost=replace(memory.cost, loops=(waits, works)), task_s=20e-6)
    stages = {**cores, "memory": [memory], "both": [memory, then], "loops": [loops]}[kinds]
    for workers in (1, 2, 3, 4, 6, 8, 11, 15):
        program = hand.program(
            hand.query(*stages, clients=clients),
            tables=[hand.table(rows=100_000)],
            workers=(workers, 0, 0, 0),
        )
        found = solve(program).queries[0]
        assert found == pytest.approx(played_per_s(program), rel=0.1), workers


def test_stealing_gives_what_is_bound_by_cores_all_nodes() -> None:
    rates = solve(bound_by_cores(1, clients=1_024), stealable=frozenset({"scan"}))
    assert rates.queries[0] == pytest.approx(16 / 0.1, rel=0.01)
    assert rates.running[rates.stolen].sum() == pytest.approx(12.0, rel=0.02)


@pytest.mark.parametrize("workers", [(8, 4, 4, 4), (4, 8, 8, 4), (12, 4, 8, 4)])
def test_stealing_leaves_nobody_idle_where_tasks_wait(workers: tuple[int, ...]) -> None:
    """Each node has a quarter of the work: those with fewer workers have it done by others, also
    where the nearest ones are no help."""
    program = bound_by_cores(16, workers, range(NODES), clients=256)
    rates = solve(program, stealable=frozenset({"scan"}))
    assert rates.queries[0] == pytest.approx(sum(workers) / 0.1, rel=0.02)


def test_nodes_that_are_equally_far_are_stolen_from_in_equal_parts() -> None:
    """All sockets of this machine are equally far: two are idle, two have all the work."""
    assert near_nodes(COSTS) == ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2))
    program = bound_by_cores(16, nodes=(0, 1), clients=256)
    rates = solve(program, stealable=frozenset({"scan"}))
    home = np.array([batch.node for batch in rates.batches])[rates.batch]
    for victim in (0, 1):
        for thief in (2, 3):
            stolen = rates.running[(home == victim) & (rates.node == thief)].sum()
            assert stolen == pytest.approx(2.0, rel=0.02)


def memory_bound(table: int = 0, task_class: str = "scan") -> Stage:
    """A line an entry, that a worker could read in 1 ns: 16 workers would draw 1 TB/s."""
    line = (MemoryUse("part", 1.0),)
    return hand.scan(
        table, NODES, task_class=task_class, instructions_ns=0.1, slots=1_000.0, memory=line
    )


@pytest.mark.parametrize("in_memory", [True, False])
def test_what_is_bound_by_memory_loses_where_it_is_stolen(in_memory: bool) -> None:
    """As many lines are wanted from each of four sockets, three quarters by distant ones. Where the
    directory is in memory, 2 * 3/4 * 1/4 of the lines are written, at 1.46 times a line's time.
    Else entries of home agents are short, and three links of 12.5 GB/s carry three quarters."""
    coherence = Coherence(protocol="directory", directory_in_memory=in_memory)
    description = MACHINE.description.model_copy(update={"coherence": coherence})
    costs = CostModel(build_machine(description))
    rows = 10_000_000
    program = hand.program(
        hand.query(memory_bound(), clients=64), tables=[hand.table(rows=rows)], workers=(15,) * 4
    )
    alone = solve(program, costs=costs).queries[0]
    assert alone == pytest.approx(PEAK_LINES / rows, rel=1e-3)
    stolen = solve(program, stealable=frozenset({"scan"}), costs=costs).queries[0]
    bound = PEAK_LINES / (1 + 1.46 * 0.375) if in_memory else 3 * 12.5e9 * 4 / 3 / 64
    assert stolen == pytest.approx(bound / rows, rel=0.01)
    # What a task takes besides moves no bytes.
    slow = replace(program, scheduling=replace(program.scheduling, task_s=0.1))
    rates = solve(slow, costs=costs)
    assert rates.served.memory_Bps.sum() == pytest.approx(64 * rows * rates.queries[0], rel=1e-4)


def test_tables_of_one_node_share_it_and_twice_as_much_is_done_once_one_has_moved() -> None:
    tables = [hand.table("a", 10_000_000, (0,)), hand.table("b", 10_000_000, (0,))]
    program = hand.program(
        hand.query(memory_bound(0, "a"), name="a", clients=64),
        hand.query(memory_bound(1, "b"), name="b", clients=64),
        tables=tables,
        workers=(15,) * 4,
    )
    layout = layout_of(program)
    before = solve(program, layout=layout).queries
    (copy,) = layout.order(MovePart("b", 0, 2), 0.0)
    meanwhile = solve(program, layout=layout)
    assert meanwhile.queries[1] == 0.0
    assert meanwhile.blocked == {1}
    assert meanwhile.pages_per_s[0] == pytest.approx(1 / 59e-6, rel=1e-3)
    layout.arrived(copy.number, 1.0)
    after = solve(program, layout=layout).queries
    assert before[0] == pytest.approx(before[1], rel=1e-6)
    np.testing.assert_allclose(after, 2 * before, rtol=2e-3)


def test_a_mix_shares_its_clients_by_shares() -> None:
    """Tasks of 0.1 s and 0.3 s, one in four of them long: 0.15 s on average, 4 workers."""
    long = hand.scan(
        nodes=NODES, task_class="long", memory=(), instructions_ns=300.0, concurrency=1
    )
    program = hand.program(
        hand.query(cpu_bound(concurrency=1), name="short", clients=0, share=0.75),
        hand.query(long, name="long", clients=0, share=0.25),
        tables=[hand.table(rows=1_000_000)],
        workers=FOUR,
        mix_clients=64,
    )
    rates = solve(program).queries
    assert rates.sum() == pytest.approx(4 / 0.15, rel=1e-3)
    assert rates[1] / rates[0] == pytest.approx(1 / 3, rel=1e-6)


@pytest.mark.parametrize(("arrivals_per_s", "expected"), [(10.0, 10.0), (1_000.0, 40.0)])
def test_open_clients_get_what_they_ask_for_up_to_what_there_is(
    arrivals_per_s: float, expected: float
) -> None:
    program = bound_by_cores(1, clients=0, share=1.0, arrivals_per_s=arrivals_per_s)
    assert solve(program).queries[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("workers", "tasks", "arrivals_per_s", "expected_s"),
    [
        # M/D/1: half of what M/M/1 waits, 0.5 * 0.8 / 0.2 of the 0.1 s that a query takes.
        (1, 1, 8.0, 0.1 + 0.2),
        # Four tasks of 0.025 s, one after another: the same.
        (1, 4, 8.0, 0.1 + 0.2),
        # Two workers, a task for each: one server, of queries of 0.05 s.
        (2, 2, 16.0, 0.05 + 0.1),
        # M/D/2 at 0.8, half of M/M/2: 0.711 wait, for 0.1 / (2 * 0.2) s.
        (2, 1, 16.0, 0.1 + 0.5 * (0.32 / 0.45) * 0.25),
    ],
)
def test_queries_that_come_at_random_wait(
    workers: int, tasks: int, arrivals_per_s: float, expected_s: float
) -> None:
    on = (workers, 0, 0, 0)
    rates = solve(bound_by_cores(tasks, on, arrivals_per_s=arrivals_per_s, clients=0, share=1.0))
    assert rates.queries[0] == pytest.approx(arrivals_per_s)
    assert rates.response_s[0] == pytest.approx(expected_s, rel=1e-3)


@settings(max_examples=60, deadline=None)
@given(hand.programs(nodes=NODES), st.booleans())
def test_laws_hold_for_any_program(program: Program, steals: bool) -> None:
    """Little's law for clients; no more runs than there are workers, no resource is overused."""
    stealable = frozenset(program.classes) if steals else frozenset()
    rates = solve(program, stealable=stealable)
    on = np.bincount(rates.node, rates.running, NODES)
    assert (on <= program.scheduling.workers + 1e-6).all()
    assert (rates.served.memory_use <= 1 + 1e-9).all()
    assert (rates.served.link_use <= 1 + 1e-9).all()
    assert (rates.queries > 0).all()
    cycle_s = program.think_s + rates.response_s
    for k, query in enumerate(program.queries):
        if query.clients:
            assert rates.queries[k] * cycle_s[k] == pytest.approx(query.clients, rel=1e-4)
    if program.mix_clients:
        assert float(rates.queries @ cycle_s) == pytest.approx(program.mix_clients, rel=1e-4)


@pytest.mark.parametrize(
    ("clients", "home", "workers", "stealable"),
    [
        *((clients, 0, 4, may) for clients in (1, 3, 40) for may in ((), ("scan",))),
        # Four tasks a query: all 32 or 60 workers get just busy.
        *((clients, None, 8, ()) for clients in (8, 12, 16)),
        *((clients, None, 15, ()) for clients in (15, 20, 28)),
        *((clients, None, 8, ("scan",)) for clients in (20, 24, 30)),
    ],
)
def test_a_search_from_near_by_finds_the_same(
    clients: int, home: int | None, workers: int, stealable: tuple[str, ...]
) -> None:
    """Of cores and of memory a tenth faster, from the rates as they are: within the tolerance."""
    stages = [hand.scan(nodes=NODES, instructions_ns=10.0), cpu_bound(inputs=(0,))]
    program = hand.program(
        hand.query(*stages, clients=clients),
        tables=[hand.table(rows=100_000, nodes=(home,))],
        workers=(workers,) * NODES,
    )
    solve_it = partial(solve, program, stealable=frozenset(stealable))
    before = solve_it()
    for scales in (Scales(), Scales(memory=1.1), Scales(latency=1.1)):
        costs = CostModel(MACHINE, scales)
        found, expected = solve_it(costs=costs, near=before), solve_it(costs=costs)
        assert found.queries == pytest.approx(expected.queries, rel=2e-4)


def test_searches_end_where_nodes_have_very_different_numbers_of_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As adaptive cores leave them: 24 on one node, one to three on another."""
    turns, queues = Counter[Search](), Search._queues

    def count(self: Search, times: Any) -> Any:
        turns[self] += 1
        return queues(self, times)

    monkeypatch.setattr(Search, "_queues", count)
    run_scenario(load_scenario("short-and-long", plane="flow"))
    assert 1 < max(turns.values()) < 100


def test_rates_are_found_once_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """The play searches once a state (here the first, and with classes that may be stolen); what
    more of each resource brings, once a resource.
    """
    found: list[State] = []
    settle_once = Search._settle

    def settle_and_count(self: Search, near: Rates | None) -> Any:
        found.append(self.state)
        return settle_once(self, near)

    monkeypatch.setattr(Search, "_settle", settle_and_count)
    scenario = load_scenario("hana-fig10", settings=["horizon=0.5 s"])
    record = run_scenario(scenario)
    gains = len(next(iter(record.why.values())).gains)
    assert gains >= 5
    assert 2 < len(found) <= 2 + gains  # links that are not full need no search


def test_faster_memory_shortens_what_streams_wait_for() -> None:
    """A scan here takes its instructions and these waits: 10% more of each are 10% more of both."""
    settings = [
        "machine=xeon-2s-emr",
        "machine.node_types.gold-6548y.stream_uncovered=0.06",
        "workload.objects.sales.rows=2_000_000_000",
        "workload.operations={sum: {kind: query, operators: {find: {kind: scan, table: sales,"
        " columns: day, selectivity: 0.1}}}}",
    ]
    record = run_scenario(load_scenario("host-queries", plane="flow", settings=settings))
    brings = {gain.resource: gain.gain_per_10pct for gain in record.why["sum"].gains}
    faster = brings["speed of memory access (1 / latency)"]
    assert faster > 0.01
    assert faster + brings["core speed"] == pytest.approx(0.1, abs=0.01)


def test_results_that_other_stages_read_push_a_table_out_of_a_core_s_own_cache() -> None:
    """Of a table of 1.2 MB and positions of 40 kB a query, it holds those of one, not of 64."""
    settings = [
        "machine=xeon-2s-emr",
        "machine.node_types.gold-6548y.stream_uncovered=0.06",
        "system={kind: tasks, threads: 1, nodes: [0]}",
        "workload.objects.sales.rows=1_000_000",
    ]
    kept = []
    for then in ("", ", sums: {kind: aggregate, input: find, sums: amount}"):
        find = "find: {kind: scan, table: sales, columns: day, selectivity: 0.01}"
        asked = f"workload.operations={{sum: {{kind: query, operators: {{{find}{then}}}}}}}"
        of_one, of_many = (
            run_scenario(
                load_scenario(
                    "host-queries",
                    plane="flow",
                    settings=[*settings, asked, f"workload.clients.count={clients}"],
                )
            ).throughput["sum"]
            for clients in (1, 64)
        )
        kept.append(of_many / of_one)
    assert kept[0] == pytest.approx(1.0, abs=0.03)
    assert kept[1] < 0.97


def test_queues_whose_columns_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit together"):
        SettledQueues(QueueSetup(query=[0], home=[], workers=[1.0]))


@pytest.mark.parametrize(
    ("clients", "concurrency", "told"),
    [(1, None, False), (2, None, True), (8, None, True), (8, 24, False), (200, None, False)],
)
def test_few_clients_that_take_what_is_free_are_told(
    clients: int, concurrency: int | None, told: bool
) -> None:
    """Each finds all workers or few of them, where rates count with the mean."""
    stage = hand.scan(nodes=NODES, instructions_ns=10.0, concurrency=concurrency)
    program = hand.program(
        hand.query(stage, clients=clients),
        tables=[hand.table(rows=1_000_000, nodes=(None,))],
        workers=(30,) * NODES,
    )
    assert solve(program).mean_free == told


ONCE = "statistics={replications: 1, warm_up: 100 ms}"


@pytest.mark.parametrize(
    ("clients", "least", "most"), [(1, 0.97, 1.03), (2, 1.5, 2.1), (8, 1.3, 2.0), (32, 1.0, 1.15)]
)
def test_what_few_clients_find_free_is_off_by_as_much_as_is_said(
    clients: int, least: float, most: float, tmp_path: Path
) -> None:
    """Throughput over that of the event plane, with nearly all 192 workers free or few of them;
    where the number of tasks is stated, within the tenth that both planes are to agree by."""
    written = tmp_path / "few.yaml"
    written.write_text(FEW_CLIENTS.replace("CLIENTS", str(clients)))
    rates = [
        run_scenario(
            load_scenario(str(written), plane=plane, settings=["horizon=1 s", ONCE, *more])
        ).throughput["pass"]
        for more in ([], ["system.concurrency=96"])
        for plane in ("flow", "event")
    ]
    assert least < rates[0] / rates[1] < most
    assert rates[2] == pytest.approx(rates[3], rel=0.1)


@pytest.mark.parametrize("machine", ["epyc-2s-nps4", "xeon-4s-ivb"])
def test_idle_nodes_take_tasks_of_one_client_at_once(machine: str) -> None:
    """Of a selection whose data lie on one node: as on the event plane, to a hundredth."""
    find = "{kind: scan, table: TBL1, columns: c20, selectivity: 0.001}"
    query = f"{{one: {{kind: query, clients: 1, operators: {{find: {find}}}}}}}"
    settings = ["system.tables={TBL1: 0, TBL2: 0}", "horizon=4 s", f"workload.operations={query}"]
    flow, event = (
        run_scenario(
            load_scenario(
                "hana-fig11-low", machine=machine, plane=plane, policy="stealing=always",
                settings=[*settings, *more],
            )
        ).throughput["one"]
        for plane, more in (("flow", []), ("event", [ONCE]))
    )  # fmt: skip
    assert flow == pytest.approx(event, rel=0.01)
