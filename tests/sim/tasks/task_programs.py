"""Programs by hand for the tests of tasks, on made-up machines with round numbers.

A machine by hand: nodes with 2 cores each, 1 instruction a ns, a line of the own memory 100 ns, of
another's 200 ns, 64 GB/s a controller (a line a ns), links from each to each of 16 GB/s. Costs here
say what an entry takes in seconds, so that the time of a task is entries times cost where it uses
no memory.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from numatwin.inputs import parse_yaml
from numatwin.sim._kernel import TaskSetup
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.systems.tasks.event_plane import EventModel, Model, ReferenceModel
from numatwin.sim.systems.tasks.parameters import task_setup
from numatwin.sim.systems.tasks.program import (
    Entries,
    EntryCost,
    MemoryUse,
    Part,
    Program,
    Query,
    Scheduling,
    Stage,
    Table,
)
from numatwin.topologies import Machine, machine_from_document

NS, US, MS = 1_000, 1_000_000, 1_000_000_000  # in ps

Maker = Callable[[TaskSetup, int, int, bool], Model]
BOTH = pytest.mark.parametrize("make", [EventModel, ReferenceModel], ids=["event", "reference"])

MACHINE = """\
name: by-hand
node_types:
  plain:
    cores: {cores}
    clock: 1 GHz
    ipc: 1
    outstanding_misses: 10
    streaming_misses: 20
    stream_stall: 0
    memory: {{size: 64 GiB, bandwidth: 64 GB/s, latency: 100 ns}}
    energy: {{core_active: 5 W, core_idle: 1 W, memory: 10 pJ/bit}}
nodes: [{{ids: 0-{last}, type: plain}}]
{links}
"""


def machine(nodes: int = 2, cores: int = 2) -> Machine:
    """So many alike nodes, each linked to each, in the order of a line: 50 ns a link."""
    links = ""
    if nodes > 1:
        links = """\
link_types:
  link: {bandwidth: 16 GB/s, latency: 50 ns, data_header: 8 B, request: 8 B}
links:
""" + "\n".join(f"  - {{ends: [{k}, {k + 1}], type: link}}" for k in range(nodes - 1))
    text = MACHINE.format(cores=cores, last=nodes - 1, links=links)
    return machine_from_document(parse_yaml(text, "by-hand.yaml"))


def cost(
    nodes: int,
    instructions_s: float = 0.0,
    *,
    separate_s: float = 0.0,
    slots: float = 20.0,
    memory: Sequence[MemoryUse] = (),
) -> EntryCost:
    """Of an entry, the same on each node."""
    ones = np.ones(nodes)
    return EntryCost(instructions_s * ones, separate_s * ones, slots * ones, tuple(memory))


def stage(name: str, cost: EntryCost, table: int | None = 0, **more: Any) -> Stage:
    """A stage of a class of its own; an entry for each row, where there is a table."""
    entries = more.pop(
        "entries", Entries(per_row=1.0) if table is not None else Entries(constant=1)
    )
    return Stage(name, more.pop("task_class", name), cost, entries, table, **more)


def query(*stages: Stage, clients: int = 1, share: float = 0.0, name: str = "q") -> Query:
    return Query(name, stages, clients, share)


def table(*parts: tuple[int, int | None], name: str = "t") -> Table:
    """Parts as (rows, node)."""
    return Table(name, tuple(Part(*part) for part in parts), 4.0, 0.0)


def program(
    queries: Sequence[Query],
    workers: Sequence[int],
    tables: Sequence[Table] = (),
    *,
    mix_clients: int = 0,
    think_s: float = 0.0,
    arrivals_per_s: float = 0.0,
    **scheduling: Any,
) -> Program:
    """Tasks and wakes cost nothing and idle workers never sleep, unless it is said."""
    options: dict[str, Any] = {
        "concurrency": None, "task_s": 0.0, "look_s": float("inf"), "wake_s": 0.0, **scheduling
    }  # fmt: skip
    return Program(
        tuple(tables),
        tuple(queries),
        Scheduling(np.array(workers, dtype=np.int64), **options),
        mix_clients,
        think_s,
        arrivals_per_s,
    )


def parameters(program: Program, nodes: int = 2, cores: int = 2) -> TaskSetup:
    """The program on a machine by hand; the operating system's times are about a 50th."""
    made = task_setup(program, CostModel(machine(nodes, cores)))
    slice_ps = made.os.slice_ps // 50
    return made.replaced(os=made.os.replaced(tick_ps=50 * US, slice_ps=slice_ps, hot_ps=10 * US))


def same_counts(event: Model, reference: Model, rel: float, abs_: float) -> None:
    """Whole numbers are equal; busy times and lines within these bounds, all else of ``rel``."""
    a, b = event.counts(), reference.counts()
    assert a.keys() == b.keys()
    for name, of_event in a.items():
        if np.asarray(of_event).dtype.kind == "i":
            assert np.array_equal(of_event, b[name]), name
        else:
            shared = name in ("lines_read", "lines_written", "controller_ps", "link_ps", "core_ps")
            expected = pytest.approx(b[name], rel=rel, abs=abs_ if shared else None)
            assert of_event == expected, name
