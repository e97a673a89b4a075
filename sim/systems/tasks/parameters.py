"""A program on a machine in plain numbers: for both the event and the reference plane.

Nodes, classes, tables, stages and workers are positions; times are picoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isinf

import numpy as np
import numpy.typing as npt

from ....topologies import Machine
from ...machine.costs import CostModel
from ...machine.os_scheduler import OsSchedulerSetup, scheduler_of
from ...machine.reference.service_machine import ServiceMachine
from ...machine.service_machine import service_machine
from ...machine.threads import Workers, place_workers
from .engine_parameters import BackgroundPiece, EngineParameters, engines_in_play
from .program import EntryCost, Place, Program, Scheduling, Stage

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
    nodes of its tasks. ``concurrency`` 0: as the system says. ``chunk_entries``: copied at a time
    where a copy engine does it; 0: none may.
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
    warm_lines: tuple[float, ...]
    warm_ps: tuple[float, ...]
    chunk_entries: float = 0.0

    @property
    def lines(self) -> float:
        """That an entry reads and writes."""
        return sum(part.read + part.written for part in self.memory)


@dataclass(frozen=True)
class MovedThreads:
    """Workers that the operating system moves: where each begins, and its ``own`` processors."""

    setup: OsSchedulerSetup
    begin: tuple[int, ...]
    own: tuple[tuple[int, ...], ...]


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

    ``near[i]``: all nodes by latency, see ``near_nodes``. ``copy_core[i]``: the
    core of node i's copying thread, which has ``copy_slots[i]`` lines under way. ``tables``: of
    each its parts, (rows, node). ``concurrency`` 0: as many as workers are free. ``arrival_ps`` 0:
    closed clients. ``paths``: of scans, by stage and home (all nodes first), see ``paths.py``.
    closed clients. ``worker_node``: of whose pool each is. ``moved``: None where each has a core.
    ``one_queue``: of the whole machine, that of the first node with workers.
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
    engines: tuple[EngineParameters, ...] = ()
    engine_of_node: tuple[int, ...] = ()
    paths: tuple[int, ...] = ()
    background: tuple[BackgroundPiece, ...] = ()
    moved: MovedThreads | None = None
    switch_ps: float = 0.0
    one_queue: bool = False

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
    pool = np.repeat(np.arange(nodes, dtype=np.int64), scheduling.workers)
    workers = cores_of(costs.machine, scheduling)
    moved = None if scheduling.affinity == "core" else moved_threads(costs.machine, scheduling)
    threads = np.maximum(workers.on_cores.astype(np.int64), 1)
    machine = service_machine(
        costs,
        np.concatenate([workers.core_node, np.arange(nodes, dtype=np.int64)]),
        np.concatenate([threads, np.full(nodes, COPIES_AT_ONCE, dtype=np.int64)]),
    )
    one_queue = scheduling.queue == "machine"
    memory = [k for k, node in enumerate(costs.machine.nodes) if node.memory_bytes != 0]
    look_s = scheduling.look_s
    engines = engines_in_play(machine, program, costs)
    if moved is not None:  # they use none
        engines = replace(engines, engines=(), of_node=(), paths=())
    return TaskParameters(
        machine=engines.machine,
        worker_core=tuple(workers.core.tolist()) if moved is None else (0,) * len(pool),
        worker_node=tuple(pool.tolist() if not one_queue else (pool * 0 + pool[0]).tolist()),
        copy_core=tuple(range(workers.cores, workers.cores + nodes)),
        copy_slots=tuple(costs.streaming_misses.tolist()),
        near=near_nodes(costs),
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
        engines=engines.engines,
        engine_of_node=engines.of_node,
        paths=engines.paths,
        background=engines.background,
        moved=moved,
        switch_ps=scheduling.switch_s * PS_PER_S,
        one_queue=one_queue,
    )


def cores_of(machine: Machine, scheduling: Scheduling) -> Workers:
    """The cores that threads may use: of pinned ones, where each is; else all cores of the nodes
    with workers, and on each as many as it has hardware threads.
    """
    workers = scheduling.workers
    if scheduling.affinity == "core":
        return place_workers(machine, np.repeat(np.arange(len(workers)), workers))
    setup = _scheduler(machine, scheduling)
    node_of = dict(zip(setup.core, setup.node, strict=True))
    return Workers(
        np.array(setup.core, dtype=np.int64), np.array([*node_of.values()], dtype=np.int64)
    )


def _scheduler(machine: Machine, scheduling: Scheduling) -> OsSchedulerSetup:
    return scheduler_of(machine, np.flatnonzero(scheduling.workers).tolist())


def moved_threads(machine: Machine, scheduling: Scheduling) -> MovedThreads:
    """Threads of each node's pool begin on its processors in turn."""
    setup = _scheduler(machine, scheduling)
    begin, own = [], []
    for position, count in enumerate(scheduling.workers.tolist()):
        cpus = tuple(cpu for cpu, node in enumerate(setup.node) if node == position)
        begin += [cpus[k % len(cpus)] for k in range(count)]
        own += [cpus if scheduling.affinity == "node" else tuple(range(setup.cpus))] * count
    return MovedThreads(setup, tuple(begin), tuple(own))


def near_nodes(costs: CostModel) -> tuple[tuple[int, ...], ...]:
    """Of each node: itself, then the others by latency. Nodes that are equally far come in their
    order, beginning with the one after it; thieves go around them.
    """
    found, n = [], len(costs.idle_s)
    for i, row in enumerate(costs.idle_s):
        keys = [(-inf if j == i else float(s), (j - i) % n, j) for j, s in enumerate(row)]
        found.append(tuple(j for *_, j in sorted(keys)))
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
                    chunk_entries=stage.chunk_entries,
                    warm_lines=_by_node(cost.warm_lines, cost, 1.0),
                    warm_ps=_by_node(cost.warm_s, cost, PS_PER_S),
                )
            )
    return tuple(found)


def _by_node(
    values: npt.NDArray[np.float64] | None, cost: EntryCost, times: float
) -> tuple[float, ...]:
    found = np.zeros(len(cost.instructions_s)) if values is None else values * times
    return tuple(found.tolist())


def _counted(stages: tuple[Stage, ...], s: int) -> int | None:
    """The table of the stage, or of its first input that has one, however far back."""
    while stages[s].table is None and stages[s].inputs:
        s = stages[s].inputs[0]
    return stages[s].table


def _always(stages: tuple[Stage, ...], s: int) -> bool:
    """Whether the stage has tasks whatever parts its table is in."""
    stage = stages[s]
    return _always(stages, stage.inputs[0]) if stage.pipelined else stage.parts_min <= 1
