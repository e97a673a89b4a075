"""The compiled model of tasks and its reference in SimPy: the same trace, row for row, on machines,
programs and orders of policies that hypothesis draws; and laws that every run keeps.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples import few_and_many
from hypothesis import given, settings
from hypothesis import strategies as st
from task_programs import MS, US, cost, parameters, program, query, same_counts, stage, table

from numatwin.sim._kernel import TaskSetup
from numatwin.sim.systems.tasks.event_plane import EventModel, Model, ReferenceModel
from numatwin.sim.systems.tasks.history import ANSWERED, ASKED
from numatwin.sim.systems.tasks.program import Entries, Held, LoopCost, MemoryUse, Program

pytestmark = pytest.mark.kernel

NODES = 3
SCAN = cost(NODES, 1e-9, memory=[MemoryUse("part", 0.0625)])
PICK = replace(
    cost(NODES, 5e-9, slots=10, memory=[MemoryUse("part", 1.0), MemoryUse("local", 0.0, 0.1)]),
    warm_lines=np.full(NODES, 50.0),
    warm_s=np.full(NODES, 3e-7),
)
# Two loops: one that waits for lines of its part and of all nodes, one that computes.
LOOPS = replace(
    cost(NODES, 12e-9, memory=[MemoryUse("part", 1.0), MemoryUse("interleaved", 0.5)]),
    loops=(
        LoopCost(
            np.full(NODES, 2e-9),
            np.full(NODES, 4.0),
            (MemoryUse("part", 0.9), MemoryUse("interleaved", 0.5)),
        ),
        LoopCost(np.full(NODES, 1e-8), np.full(NODES, 20.0), (MemoryUse("part", 0.1),)),
    ),
)
SPREAD = cost(NODES, 2e-9, separate_s=1e-9, memory=[MemoryUse("interleaved", 0.5)])


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Up to three queries of the shapes that there are, on tables in parts."""
    nodes = st.one_of(st.none(), st.integers(0, NODES - 1))
    tables = [
        table(*draw(st.lists(st.tuples(st.integers(1_000, 50_000), nodes), min_size=1, max_size=3)))
        for _ in range(2)
    ]
    pick = stage("pick", PICK, inputs=(0,), entries=Entries(per_row=0.01))
    merge = stage("merge", SPREAD, None, inputs=(1,), parts_min=2, entries=Entries(10.0, 0, 5.0))
    after = stage("after", SPREAD, None, inputs=(0,), pipelined=True, entries=Entries(constant=99))
    shapes = [
        [stage("scan", SCAN)],
        [stage("scan", SCAN, 1), pick, merge],
        [stage("scan", SCAN, concurrency=4), after, stage("scan", SCAN, 1, inputs=(1,))],
        [stage("spread", SPREAD, None, entries=Entries(constant=5_000.0)), after],
        [stage("loops", LOOPS, 1, task_s=3e-6)],
        [stage("locked", SPREAD, 1, locks=(Held("l", 1e-9), Held("m", 1e-10, 1e-10)))],
    ]
    chosen = draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=3))
    queries = [
        query(*shape, clients=draw(st.integers(0, 3)), share=1.0 / len(chosen)) for shape in chosen
    ]
    mixed = any(not one.clients for one in queries)
    return program(
        queries,
        [draw(st.integers(1, 4)), draw(st.integers(0, 3)), draw(st.integers(0, 3))],
        tables,
        mix_clients=draw(st.integers(1, 3)) if mixed else 0,
        think_s=draw(st.sampled_from([0.0, 2e-5])),
        arrivals_per_s=draw(st.sampled_from([0.0, 5e4])) if mixed else 0.0,
        concurrency=draw(st.sampled_from([None, 1, 3, 8])),
        task_s=draw(st.sampled_from([0.0, 1e-6])),
        look_s=draw(st.sampled_from([0.0, 1e-5, float("inf")])),
        wake_s=draw(st.sampled_from([0.0, 3e-6])),
        queue=draw(st.sampled_from(["node", "worker", "machine"])),
        affinity=draw(st.sampled_from(["core", "node", "none"])),
        switch_s=draw(st.sampled_from([0.0, 1e-6])),
    )


# What policies order, and when; positions are taken modulo what there is.
ORDERS = st.lists(
    st.tuples(
        st.integers(0, 900),
        st.sampled_from(["allow", "use", "move", "split", "run"]),
        st.integers(0, 2**10),
    ),
    max_size=6,
).map(sorted)


def play(model: Model, p: TaskSetup, orders: list[tuple[int, str, int]], until_ps: int) -> None:
    """Runs, and carries out the orders; a part that has arrived is placed where it went."""
    going: dict[int, tuple[int, int, int]] = {}
    blocked: set[tuple[int, int]] = set()

    def run(until_ps: int) -> None:
        while not model.run(until_ps):
            for number in model.take_arrived():
                table_, part, node = going.pop(number)
                blocked.discard((table_, part))
                model.place(table_, part, node)

    for number, (at_us, what, choice) in enumerate(orders):
        run(at_us * US)
        table_ = choice % len(p.part_rows)
        parts = len(model.parts(table_))
        part, node = choice // 2 % parts, choice // 8 % NODES
        if what == "allow":
            model.allow([bool(choice >> k & 1) for k in range(p.classes)], choice % 3 > 0)
        elif what == "use":
            count = len(p.os.core) or len(p.worker_node)
            in_use = [bool(choice >> k & 1) for k in range(count)]
            model.use(in_use if any(in_use) else [True] * len(in_use))
        elif what == "move" and (table_, part) not in blocked:
            blocked.add((table_, part))
            going[number] = (table_, part, node)
            model.block(table_, part)
            source = choice // 32 % (NODES + 1) - 1
            model.copy(number, source, node, 1 + choice % 5, 20.0 * US)
        elif what == "split" and not any(of == table_ for of, _ in blocked):
            model.set_parts(table_, [1_000, 2_000], [node, (node + 1) % NODES])
    run(until_ps)


def check_laws(model: Model) -> None:
    """Tasks made are done, wait or run; latencies are as long as queries were under way."""
    made, done, waiting, running, _ = model.counts()["classes"].sum(axis=0).tolist()
    assert made == done + waiting + running
    assert waiting == model.counts()["waiting"].sum() + model.counts()["parts_waiting"]
    rows = model.trace()
    asked, answered = rows[rows[:, 1] == ASKED], rows[rows[:, 1] == ANSWERED]
    assert len(asked) == model.counts()["asked"]
    assert len(answered) == model.counts()["answered"].sum()
    # Little's law, exact: the integral of queries under way, of those that were answered.
    ended = np.isin(asked[:, 4], answered[:, 4])
    assert answered[:, 0].sum() - asked[ended, 0].sum() == answered[:, 5].sum()
    assert model.counts()["latency_ps"].sum() == answered[:, 5].sum()


@few_and_many(25, 100)
def test_traces_are_the_same(examples: int) -> None:
    settings(max_examples=examples)(given(programs(), ORDERS, st.integers(0, 5))(check_traces))()


def check_traces(made: Program, orders: Any, seed: int) -> None:
    p = parameters(made, NODES)
    models: list[Model] = [EventModel(p, seed, 1, True), ReferenceModel(p, seed, 1, True)]
    for model in models:
        play(model, p, orders, MS)
        check_laws(model)
    event, reference = models
    assert event.trace().tolist() == reference.trace().tolist()
    assert event.node_use()[0].tolist() == reference.node_use()[0].tolist()
    assert event.part_use()[1] == pytest.approx(reference.part_use()[1])
    same_counts(event, reference, rel=1e-6, abs_=10.0)


@given(programs(), st.lists(st.integers(0, 999), max_size=5), st.integers(0, 5))
@settings(max_examples=20)
def test_steps_make_no_difference(made: Program, stops_us: list[int], seed: int) -> None:
    p = parameters(made, NODES)
    whole, steps = EventModel(p, seed, 1, True), EventModel(p, seed, 1, True)
    whole.run(MS)
    for stop_us in sorted(stops_us):
        steps.run(stop_us * US)
        steps.counts()
        steps.part_use()
    steps.run(MS)
    assert whole.trace().tolist() == steps.trace().tolist()
