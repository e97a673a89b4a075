"""Scans for which a copy engine copies ahead: schedules by hand, equal traces, flows that agree."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples import few_and_many
from hypothesis import given, settings
from hypothesis import strategies as st
from task_programs import (
    BOTH,
    MACHINE,
    MS,
    NS,
    Maker,
    cost,
    program,
    query,
    same_counts,
    stage,
    table,
)

from numatwin.inputs import parse_yaml
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.systems.tasks.event_plane import EventModel, Model, ReferenceModel
from numatwin.sim.systems.tasks.history import ANSWERED, ENDED
from numatwin.sim.systems.tasks.parameters import initial_paths, task_setup
from numatwin.sim.systems.tasks.program import Background, MemoryUse, Path, Program
from numatwin.sim.systems.tasks.steady_rates import State
from numatwin.sim.systems.tasks.steady_state import SteadyState
from numatwin.topologies import Machine, machine_from_document

pytestmark = pytest.mark.kernel


HUBS = """\
hubs: [{{id: hub}}]
link_types:
  link: {{bandwidth: 16 GB/s, latency: 50 ns, data_header: 8 B, request: 8 B}}
generate: [{{shape: attach, link: link, hubs: [hub]}}]
"""
ENGINE = """\
copy_engines:
  - {{at: [{at}], contexts: {contexts}, setup: 1 us, request: 100 ns, bandwidth: 8 GB/s,
      in_flight: 64 KiB, non_coherent_bandwidth: 12.8 GB/s}}
"""


def machine(at: str = "0, 1", contexts: int = 4) -> Machine:
    """Two nodes of 2 cores around a hub: 100 ns a line, 200 ns from the other; an engine takes 8 ns
    a line."""
    text = MACHINE.format(cores=2, last=1, links=(HUBS + ENGINE).format(at=at, contexts=contexts))
    return machine_from_document(parse_yaml(text, "by-hand.yaml"))


SCAN = cost(2, 5e-9, memory=[MemoryUse("part", 1.0)])
"""An entry is a line: 5 ns of instructions, and of one's own memory 100 ns / 20 slots."""


def scans(path: Path = "copy-engine", **more: Any) -> Any:
    return stage("scan", SCAN, chunk_entries=100.0, path=path, **more)


def model_of(made: Program, make: Maker, **of: Any) -> Model:
    return make(task_setup(made, CostModel(machine(**of))), 1, 1, True)


def times_ns(model: Model, what: int) -> list[float]:
    """In ns: ends are rounded up to a ps."""
    rows = model.trace()
    return [row[0] // NS for row in rows[rows[:, 1] == what].tolist()]


@BOTH
def test_a_scan_by_hand(make: Maker) -> None:
    """250 entries in chunks of 100, of node 1's memory, by a thread of node 0.

    | ns | thread | engine |
    | --- | --- | --- |
    | 0 to 1,100 | setup, request | |
    | 1,100 to 1,900 | waits, then request (to 2,000) | chunk 0 |
    | 2,000 to 2,800 | works on 0 (to 2,500), waits | chunk 1 |
    | 2,800 to 3,300 | request (to 2,900), works on 1 (to 3,400) | from 2,900 chunk 2, 50 entries |
    | 3,400 to 3,650 | works on 2 | |
    """
    made = program([query(scans(), name="q")], [1, 0], [table((250, 1))], think_s=1.0)
    model = model_of(made, make)
    model.run(MS)
    assert times_ns(model, ANSWERED) == [3_650.0]
    use = model.counts()
    assert use["lines_read"].tolist() == pytest.approx([250, 250])  # by the thread, by the engine
    assert use["lines_written"].tolist() == pytest.approx([250, 0])
    assert model.counts()["traffic"][0].tolist() == pytest.approx([500 * 64, 250 * 64])


@BOTH
def test_without_coherence_the_engine_is_faster(make: Maker) -> None:
    """5 ns a line: the copies of 500 ns are as long as the work.

    1,100 + 500, then twice request and work, then the work on half a chunk: 1,600 + 2 * 600 + 250.
    """
    made = program(
        [query(scans("copy-engine-noncoherent"))], [1, 0], [table((250, 1))], think_s=1.0
    )
    model = model_of(made, make)
    model.run(MS)
    assert times_ns(model, ANSWERED) == [3_050.0]


@BOTH
@pytest.mark.parametrize(("contexts", "first"), [(1, 2_400.0), (2, 3_200.0)])
def test_copies_wait_for_contexts(make: Maker, contexts: int, first: float) -> None:
    """Two threads, a chunk each, asked for at 1,100: one after the other (800 ns each), or both at
    half the pace."""
    made = program([query(scans(concurrency=2))], [2, 0], [table((200, 1))], think_s=1.0)
    model = model_of(made, make, contexts=contexts)
    model.run(MS)
    assert times_ns(model, ENDED) == [first, 3_200.0]


@BOTH
def test_an_engine_in_a_hub_takes_the_links(make: Maker) -> None:
    """A line of the own node: over its link to the hub, and back: 72 B each way and a request."""
    made = program([query(scans())], [1, 0], [table((250, 0))], think_s=1.0)
    model = model_of(made, make, at="hub")
    model.run(MS)
    assert times_ns(model, ANSWERED) == [3_650.0]
    busy_ns = model.counts()["link_ps"] / NS
    assert busy_ns == pytest.approx([250 * (4.5 + 0.5)] * 2 + [0, 0])


@BOTH
def test_background_copies_share_the_engine(make: Maker) -> None:
    """One copy there and back keeps the engine busy: half of it is left, 16 ns a line."""
    made = replace(
        program([query(scans())], [1, 0], [table((100, 1))], think_s=1.0),
        background=(Background("copy-engine", 0, 1, 1),),
    )
    model = model_of(made, make)
    model.run(MS)
    assert times_ns(model, ANSWERED) == [1_100.0 + 1_600.0 + 500.0]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    nodes = st.one_of(st.none(), st.integers(0, 1))
    tables = [
        table(*draw(st.lists(st.tuples(st.integers(1, 3_000), nodes), min_size=1, max_size=2)))
    ]
    pick = stage("pick", cost(2, 5e-9), inputs=(0,))
    paths: Any = st.sampled_from(["cpu", "copy-engine", "copy-engine-noncoherent", None])
    shapes = [
        [
            scans(draw(paths), concurrency=draw(st.integers(1, 4))),
            *draw(st.sampled_from([[], [pick]])),
        ]
        for _ in range(draw(st.integers(1, 2)))
    ]
    background = tuple(
        Background(
            draw(st.sampled_from(["interconnect", "copy-engine"])),
            draw(st.integers(0, 1)),
            draw(st.integers(0, 1)),
            1,
        )
        for _ in range(draw(st.integers(0, 2)))
    )
    made = program(
        [query(*shape, clients=draw(st.integers(1, 3))) for shape in shapes],
        [draw(st.integers(1, 2)), draw(st.integers(0, 2))],
        tables,
        think_s=draw(st.sampled_from([0.0, 2e-5])),
        task_s=draw(st.sampled_from([0.0, 1e-6])),
    )
    return replace(made, background=background)


PLACES, CHOICES = st.sampled_from(["0", "hub", "0, 1"]), st.integers(0, 2**12)


@few_and_many(10, 50)
def test_traces_are_the_same(examples: int) -> None:
    drawn = given(programs(), PLACES, st.integers(3, 5), CHOICES)
    settings(max_examples=examples)(drawn(check_traces))()


def check_traces(made: Program, at: str, contexts: int, choice: int) -> None:
    p = task_setup(made, CostModel(machine(at, contexts)))
    models: list[Model] = [EventModel(p, 1, 1, True), ReferenceModel(p, 1, 1, True)]
    paths = [choice >> k & 1 for k in range(len(p.stages) * 3)]
    for model in models:
        model.run(MS // 8)
        model.set_paths(paths)
        model.run(MS // 4)
        made_, done, waiting, running, _ = model.counts()["classes"].sum(axis=0).tolist()
        assert made_ == done + waiting + running
    event, reference = models
    assert event.trace().tolist() == reference.trace().tolist()
    same_counts(event, reference, rel=1e-5, abs_=500.0)


@pytest.mark.parametrize("path", ["cpu", "copy-engine", "copy-engine-noncoherent"])
@pytest.mark.parametrize("home", [0, 1])
@pytest.mark.parametrize("busy", [False, True])
def test_flows_agree_with_events(path: Path, home: int, busy: bool) -> None:
    """One scan after the other, of 20 chunks and a half."""
    background = (Background("copy-engine", 1, 0, 1),) if busy else ()
    made = replace(
        program([query(scans(path, concurrency=1))], [1, 0], [table((2_050, home))]),
        background=background,
    )
    costs = CostModel(machine("hub"))
    model = EventModel(task_setup(made, costs), 1, 1)
    model.run(3 * MS)
    state = State(
        parts=tuple((one.name, _parts(one)) for one in made.tables),
        clients=(1.0,),
        mix_clients=0.0,
        shares=(0.0,),
        stealable=frozenset(),
        workers=(1, 0),
        paths=initial_paths(made, 2),
    )
    (rate,) = SteadyState(made, costs).solve(state).queries
    assert rate == pytest.approx(model.counts()["answered"][0] / 3e-3, rel=0.04)


def _parts(one: Any) -> Any:
    from numatwin.sim.systems.tasks.layout import Layout

    layout = Layout([one], np.full(2, 10**6), 1e-6, 1e-6, [0, 1])
    return layout.parts[one.name]
