"""A program on a machine in plain numbers: what the event and the reference plane both play.

Nodes, classes, tables, stages and workers are positions; times are picoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isinf

import numpy as np
import numpy.typing as npt

from ...machine.costs import CostModel
from ...machine.reference.service_machine import ServiceMachine
from ...machine.service_machine import service_machine
from ...machine.threads import place_workers
from .program import Place, Program, Stage

Ints = npt.NDArray[np.int64]

PS_PER_S = 1e12
NEVER_PS = 2**63 - 1
INTERLEAVED = -1  # instead of a node
NOTHING = -1  # instead of a table, a part, a client

PLACES: tuple[Place, ...] = ("part", "local", "interleaved")

# How many pieces the core of a copying thread may hold: they share its time.
COPIES_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class MemoryLines:
    """Lines per entry; ``place``: a position in ``PLACES``."""

    place: int
    read: float
    written: float


@dataclass(frozen=True)
class StageParameters:
    """See ``program.Stage``. Costs per entry are by node of the thread, in ps.

    ``counted``: the table whose parts ``parts_min`` is about. ``kept``: a later stage follows the
    nodes of its tasks. ``concurrency`` 0: as the system says.
    """

    task_class: int
    query: int
    table: int
    counted: int
    inputs: tuple[int, ...]
    followers: tuple[int, ...]
    pipelined: bool
    kept: bool
    parts_min: int
    concurrency: int
    per_row: float
    per_part: float
    per_input_task: float
    constant: float
    most: float
    instructions_ps: tuple[float, ...]
    separate_ps: tuple[float, ...]
    slots: tuple[float, ...]
    memory: tuple[MemoryLines, ...]

    @property
    def lines(self) -> float:
        """That an entry reads and writes."""
        return sum(part.read + part.written for part in self.memory)


@dataclass(frozen=True)
class QueryParameters:
    """Stages ``first`` to ``end`` - 1; ``cumulative``: shares of the mix up to this one."""

    first: int
    end: int
    clients: int
    cumulative: float


@dataclass(frozen=True)
class TaskParameters:
    """What is played; see ``program.Program``.

    ``near[i]``: all nodes from node i on, by latency and position, i first. ``copy_core[i]``: the
    core of node i's copying thread, which has ``copy_slots[i]`` lines under way. ``tables``: of
    each its parts, (rows, node). ``concurrency`` 0: as many as workers are free. ``arrival_ps`` 0:
    closed clients.
    """

    machine: ServiceMachine
    worker_core: tuple[int, ...]
    worker_node: tuple[int, ...]
    copy_core: tuple[int, ...]
    copy_slots: tuple[float, ...]
    near: tuple[tuple[int, ...], ...]
    memory_nodes: tuple[int, ...]
    classes: int
    stages: tuple[StageParameters, ...]
    queries: tuple[QueryParameters, ...]
    tables: tuple[tuple[tuple[int, int], ...], ...]
    concurrency: int
    task_ps: float
    look_ps: int
    wake_ps: int
    queue_per_worker: bool
    mix_clients: int
    think_ps: float
    arrival_ps: float

    @property
    def nodes(self) -> int:
        """n, with and without workers."""
        return len(self.near)

    @property
    def client_query(self) -> tuple[int, ...]:
        """Of each closed client, the query that it asks for; ``NOTHING``: it draws from the mix."""
        if self.arrival_ps > 0:
            return ()
        own = [q for q, query in enumerate(self.queries) for _ in range(query.clients)]
        return (*own, *[NOTHING] * self.mix_clients)


def task_parameters(program: Program, costs: CostModel) -> TaskParameters:
    """The program's numbers on the machine of ``costs``."""
    scheduling, nodes = program.scheduling, len(costs.machine.nodes)
    workers = place_workers(
        costs.machine, np.repeat(np.arange(nodes, dtype=np.int64), scheduling.workers)
    )
    threads = np.maximum(workers.on_cores.astype(np.int64), 1)
    machine = service_machine(
        costs,
        np.concatenate([workers.core_node, np.arange(nodes, dtype=np.int64)]),
        np.concatenate([threads, np.full(nodes, COPIES_AT_ONCE, dtype=np.int64)]),
    )
    memory = [k for k, node in enumerate(costs.machine.nodes) if node.memory_bytes != 0]
    look_s = scheduling.look_s
    return TaskParameters(
        machine=machine,
        worker_core=tuple(workers.core.tolist()),
        worker_node=tuple(workers.node.tolist()),
        copy_core=tuple(range(workers.cores, workers.cores + nodes)),
        copy_slots=tuple(costs.streaming_misses.tolist()),
        near=_near(costs),
        memory_nodes=tuple(memory),
        classes=len(program.classes),
        stages=_stages(program),
        queries=_queries(program),
        tables=tuple(
            tuple((part.rows, INTERLEAVED if part.node is None else part.node) for part in t.parts)
            for t in program.tables
        ),
        concurrency=scheduling.concurrency or 0,
        task_ps=scheduling.task_s * PS_PER_S,
        look_ps=NEVER_PS if isinf(look_s) else round(look_s * PS_PER_S),
        wake_ps=round(scheduling.wake_s * PS_PER_S),
        queue_per_worker=scheduling.queue == "worker",
        mix_clients=program.mix_clients,
        think_ps=program.think_s * PS_PER_S,
        arrival_ps=PS_PER_S / program.arrivals_per_s if program.arrivals_per_s > 0 else 0.0,
    )


def _near(costs: CostModel) -> tuple[tuple[int, ...], ...]:
    found = []
    for i, row in enumerate(costs.idle_s):
        keys = [(-inf if j == i else float(s), j) for j, s in enumerate(row)]
        found.append(tuple(j for _, j in sorted(keys)))
    return tuple(found)


def _queries(program: Program) -> tuple[QueryParameters, ...]:
    found, first, shares = [], 0, 0.0
    for query in program.queries:
        end = first + len(query.stages)
        shares += 0.0 if query.clients else query.share
        found.append(QueryParameters(first, end, query.clients, shares))
        first = end
    return tuple(found)


def _stages(program: Program) -> tuple[StageParameters, ...]:
    numbers = {name: k for k, name in enumerate(program.classes)}
    found: list[StageParameters] = []
    for q, query in enumerate(program.queries):
        first = len(found)
        stages = query.stages
        if not any(_always(stages, s) for s in range(len(stages))):
            raise ValueError(f"query {query.name}: no stage has tasks whatever parts there are")
        for s, stage in enumerate(stages):
            if stage.pipelined and (len(stage.inputs) != 1 or stage.parts_min > 1):
                raise ValueError(f"stage {stage.name}: a pipelined one has one input, always")
            if not all(0 <= k < s for k in stage.inputs):
                raise ValueError(f"stage {stage.name}: inputs are earlier stages")
            followers = [t for t, other in enumerate(stages) if s in other.inputs]
            cost, entries = stage.cost, stage.entries
            counted = _counted(stages, s)
            kept = any(
                stages[t].table is None and not stages[t].pipelined and stages[t].inputs[0] == s
                for t in followers
            )
            found.append(
                StageParameters(
                    task_class=numbers[stage.task_class],
                    query=q,
                    table=NOTHING if stage.table is None else stage.table,
                    counted=NOTHING if counted is None else counted,
                    inputs=tuple(first + k for k in stage.inputs),
                    followers=tuple(first + t for t in followers),
                    pipelined=stage.pipelined,
                    kept=kept,
                    parts_min=stage.parts_min,
                    concurrency=stage.concurrency or 0,
                    per_row=entries.per_row,
                    per_part=entries.per_part,
                    per_input_task=entries.per_input_task,
                    constant=entries.constant,
                    most=entries.most,
                    instructions_ps=tuple((cost.instructions_s * PS_PER_S).tolist()),
                    separate_ps=tuple((cost.separate_s * PS_PER_S).tolist()),
                    slots=tuple(np.asarray(cost.misses_at_once, dtype=np.float64).tolist()),
                    memory=tuple(
                        MemoryLines(PLACES.index(use.place), use.read, use.written)
                        for use in cost.memory
                    ),
                )
            )
    return tuple(found)


def _counted(stages: tuple[Stage, ...], s: int) -> int | None:
    """The table of the stage, or of its first input that has one, however far back."""
    while stages[s].table is None and stages[s].inputs:
        s = stages[s].inputs[0]
    return stages[s].table


def _always(stages: tuple[Stage, ...], s: int) -> bool:
    """Whether the stage has tasks whatever parts its table is in."""
    stage = stages[s]
    return _always(stages, stage.inputs[0]) if stage.pipelined else stage.parts_min <= 1
