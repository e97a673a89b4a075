"""Small Programs of tasks made by hand: round figures, so that times can be worked out.

One entry of a scan takes ENTRY_NS of instructions and reads one line of its table's part, of which
SLOTS are under way at a time.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from numatwin.sim.systems.tasks.program import (
    Entries,
    EntryCost,
    MemoryUse,
    Part,
    Place,
    Program,
    Query,
    Scheduling,
    Stage,
    Table,
)

ENTRY_NS = 100.0
SLOTS = 10.0


def cost(
    nodes: int = 2,
    *,
    instructions_ns: float = ENTRY_NS,
    separate_ns: float = 0.0,
    slots: float = SLOTS,
    memory: Sequence[MemoryUse] = (MemoryUse("part", 1.0),),
) -> EntryCost:
    """The same on all nodes; by default an entry reads a line of its part."""
    return EntryCost(
        instructions_s=np.full(nodes, instructions_ns * 1e-9),
        separate_s=np.full(nodes, separate_ns * 1e-9),
        misses_at_once=np.full(nodes, slots),
        memory=tuple(memory),
    )


def scan(table: int = 0, nodes: int = 2, *, task_class: str = "scan", **more: Any) -> Stage:
    """An entry for each row of the table; ``more``: fields of ``cost``, and of Stage."""
    of_cost = {
        name: more.pop(name)
        for name in ("instructions_ns", "separate_ns", "slots", "memory")
        if name in more
    }
    usual = {"name": task_class, "entries": Entries(per_row=1.0), **more}
    return Stage(task_class=task_class, cost=cost(nodes, **of_cost), table=table, **usual)


def table(name: str = "t", rows: int = 1_000, nodes: Sequence[int | None] = (0,)) -> Table:
    """``rows`` of 8 bytes, in a part on each of ``nodes``, as even as they go."""
    edges = np.arange(len(nodes) + 1) * rows // len(nodes)
    parts = tuple(Part(int(count), node) for count, node in zip(np.diff(edges), nodes, strict=True))
    return Table(name, parts, bytes_per_row=8.0, fixed_bytes=4_096.0)


def query(*stages: Stage, name: str = "q", clients: int = 1, share: float = 0.0) -> Query:
    """Closed clients that ask for nothing else; a share of the mix where there are none."""
    return Query(name, stages, clients, share)


def scheduling(workers: Sequence[int] = (2, 2), **more: Any) -> Scheduling:
    """Workers that take tasks and wake up in no time, and never sleep."""
    usual: dict[str, Any] = {
        "concurrency": None,
        "task_s": 0.0,
        "look_s": float("inf"),
        "wake_s": 0.0,
    }
    return Scheduling(workers=np.array(workers, dtype=np.int64), **usual | more)


def program(
    *queries: Query,
    tables: Sequence[Table] | None = None,
    workers: Sequence[int] = (2, 2),
    mix_clients: int = 0,
    think_s: float = 0.0,
    arrivals_per_s: float = 0.0,
    **more: Any,
) -> Program:
    """By default one client that scans a table of 1,000 rows on node 0; ``more``: of Scheduling."""
    return Program(
        tables=tuple(tables or (table(),)),
        queries=queries or (query(scan(nodes=len(workers))),),
        scheduling=scheduling(workers, **more),
        mix_clients=mix_clients,
        think_s=think_s,
        arrivals_per_s=arrivals_per_s,
    )


@st.composite
def programs(draw: st.DrawFn, nodes: int = 2, workers_max: int = 3) -> Program:
    """Any small Program for a machine of so many nodes with memory and cores."""
    on = st.one_of(st.none(), st.integers(0, nodes - 1))
    tables = [
        table(f"t{k}", draw(st.integers(4, 400)), draw(st.lists(on, min_size=1, max_size=4)))
        for k in range(draw(st.integers(1, 3)))
    ]
    mixed = draw(st.booleans())
    queries = [_query(draw, k, len(tables), nodes) for k in range(draw(st.integers(1, 3)))]
    shares = draw(st.lists(st.integers(1, 4), min_size=len(queries), max_size=len(queries)))
    return program(
        *(
            Query(name, stages, 0 if mixed else draw(st.integers(1, 3)), mixed * w / sum(shares))
            for (name, stages), w in zip(queries, shares, strict=True)
        ),
        tables=tables,
        workers=draw(
            st.lists(st.integers(0, workers_max), min_size=nodes, max_size=nodes).filter(any)
        ),
        mix_clients=draw(st.integers(1, 5)) if mixed else 0,
        think_s=draw(st.sampled_from([0.0, 1e-6, 1e-5])),
        concurrency=draw(st.sampled_from([None, 1, 3, 8])),
        task_s=draw(st.sampled_from([0.0, 1e-7])),
        look_s=draw(st.sampled_from([0.0, 2e-6, float("inf")])),
        wake_s=draw(st.sampled_from([0.0, 5e-6])),
        queue=draw(st.sampled_from(["node", "worker"])),
    )


def _query(draw: st.DrawFn, at: int, tables: int, nodes: int) -> tuple[str, tuple[Stage, ...]]:
    """A scan, and up to two stages after any before them."""
    stages = [_stage(draw, at, "scan", draw(st.integers(0, tables - 1)), nodes, ())]
    for step in range(draw(st.integers(0, 2))):
        pipelined = draw(st.booleans())
        before = st.integers(0, len(stages) - 1)
        inputs = (
            (draw(before),)
            if pipelined
            else tuple(sorted(draw(st.sets(before, min_size=1, max_size=2))))
        )
        on = None if pipelined else draw(st.one_of(st.none(), st.integers(0, tables - 1)))
        stages.append(_stage(draw, at, f"step{step}", on, nodes, inputs, pipelined))
    return f"q{at}", tuple(stages)


def _stage(
    draw: st.DrawFn,
    at: int,
    name: str,
    on: int | None,
    nodes: int,
    inputs: tuple[int, ...],
    pipelined: bool = False,
) -> Stage:
    elsewhere: list[Place] = ["part", "interleaved"] if on is not None else []
    places = st.sampled_from(["local", *elsewhere])
    uses = [
        MemoryUse(place, draw(st.sampled_from([0.0, 0.25, 3.0])), draw(st.sampled_from([0.0, 0.5])))
        for place in draw(st.lists(places, max_size=2, unique=True))
    ]
    entries = (
        Entries(per_row=draw(st.sampled_from([0.5, 1.0])))
        if on is not None
        else Entries(per_input_task=2.0, constant=draw(st.sampled_from([0.0, 7.0])))
    )
    return Stage(
        name=name,
        task_class=f"{name}/q{at}",
        cost=cost(
            nodes,
            instructions_ns=draw(st.sampled_from([10.0, 100.0])),
            separate_ns=draw(st.sampled_from([0.0, 5.0])),
            slots=draw(st.sampled_from([1.0, 10.0])),
            memory=uses,
        ),
        entries=entries,
        table=on,
        inputs=inputs,
        pipelined=pipelined,
        parts_min=draw(st.sampled_from([1, 1, 1, 2])) if inputs and on is not None else 1,
        concurrency=draw(st.sampled_from([None, None, 2])),
    )
