"""A program on a machine in plain numbers: for both the event and the reference plane.

Nodes, classes, tables, stages and workers are positions; times are picoseconds.

Copy engines, paths of scans and background work, in plain numbers.

Scans by a copy engine, and work in the background, as rates: what they add to kinds of tasks.

A thread asks for a copy (r), then works on one chunk while the next is copied: r + max(copy, work)
a chunk. Before the first there are the setup and a copy, after the last copy its work: a task takes

    setup + chunks * (r + max(copy, work)) + min(copy, work)

Left out, and simulated by the event plane: that tasks are whole, and meet at the engine at random.
"""

from dataclasses import dataclass, replace
from math import inf, isinf

import numpy as np

from ....topologies import Machine
from ..._kernel import (
    BackgroundSetup,
    EngineSetup,
    LoopSetup,
    OsSetup,
    ServiceMachine,
    StageSetup,
    TaskSetup,
)
from ...kernel.arrays import Floats, Ints
from ...kernel.picoseconds import PS_PER_S
from ...kernel.plain_fields import plain
from ...machine.copy_engines import NONE, EnginesInService, line_s, with_copy_engines
from ...machine.costs import LINE_BYTES, CostModel
from ...machine.os_scheduler import scheduler_of
from ...machine.reference.interconnect import route
from ...machine.service_machine import service_machine
from ...machine.threads import Workers, place_workers
from .layout import PartState
from .paths import PATHS
from .program import Background, EntryCost, LoopCost, Part, Place, Program, Scheduling, Stage

NEVER_PS = 2**63 - 1
INTERLEAVED = -1  # instead of a node; less the number of the spread
NOTHING = -1  # instead of a table, a part, a client

PLACES: tuple[Place, ...] = ("part", "local", "interleaved")

# How many pieces the core of a copying thread may hold: they share its time.
COPIES_AT_ONCE = 1 << 12


def task_setup(program: Program, costs: CostModel) -> TaskSetup:
    """The program's numbers on the machine of ``costs``."""
    scheduling, nodes = program.scheduling, len(costs.machine.nodes)
    pool = np.repeat(np.arange(nodes, dtype=np.int64), scheduling.workers)
    workers = cores_of(costs.machine, scheduling)
    pinned = scheduling.affinity == "core"
    threads = np.maximum(workers.on_cores.astype(np.int64), 1)
    machine = service_machine(
        costs,
        np.concatenate([workers.core_node, np.arange(nodes, dtype=np.int64)]),
        np.concatenate([threads, np.full(nodes, COPIES_AT_ONCE, dtype=np.int64)]),
        workers.core_node,
    )
    engines = engines_in_play(machine, program, costs)
    if not pinned:  # they use none
        engines = replace(engines, engines=(), of_node=(), paths=())
    locks = engines.machine.limits  # come behind the limits of transfers
    one_queue, arrivals_per_s = scheduling.queue == "machine", program.arrivals_per_s
    first, shares = [0], [0.0]
    for query in program.queries:
        first.append(first[-1] + len(query.stages))
        shares.append(shares[-1] + (0.0 if query.clients else query.share))
    mixed = [q for q, query in enumerate(program.queries) if not query.clients]
    own = [q for q, query in enumerate(program.queries) for _ in range(query.clients)]
    return TaskSetup(
        machine=engines.machine.replaced(limits=locks + len(program.locks)),
        worker_core=workers.core if pinned else pool * 0,
        worker_node=pool * 0 + pool[0] if one_queue else pool,
        os=OsSetup() if pinned else moved_threads(costs.machine, scheduling),
        switch_ps=scheduling.switch_s * PS_PER_S,
        one_queue=one_queue,
        copy_core=range(workers.cores, workers.cores + nodes),
        copy_slots=costs.streaming_misses,
        near=np.array(near_nodes(costs), dtype=np.int64),
        spreads=spreads_of(program, costs.machine).ravel(),
        classes=len(program.classes),
        stages=_stages(program, locks),
        query_first=first,
        cumulative=shares[1:],
        last_of_mix=max(mixed, default=NOTHING),
        part_rows=[[part.rows for part in table.parts] for table in program.tables],
        part_node=[[home_of(part) for part in table.parts] for table in program.tables],
        client_query=[] if arrivals_per_s > 0 else [*own, *[NOTHING] * program.mix_clients],
        concurrency=scheduling.concurrency or 0,
        task_ps=scheduling.task_s * PS_PER_S,
        look_ps=NEVER_PS if isinf(scheduling.look_s) else round(scheduling.look_s * PS_PER_S),
        wake_ps=round(scheduling.wake_s * PS_PER_S),
        queue_per_worker=scheduling.queue == "worker",
        think_ps=program.think_s * PS_PER_S,
        arrival_ps=PS_PER_S / arrivals_per_s if arrivals_per_s > 0 else 0.0,
        engines=engines.engines,
        engine_of_node=engines.of_node,
        background=engines.background,
        paths=engines.paths,
    )


def home_of(part: Part | PartState) -> int:
    """Where a part lies, as planes count."""
    return INTERLEAVED - part.spread if part.node is None else part.node


def spreads_of(program: Program, machine: Machine) -> Floats:
    """(S, n) by what to divide for each node's part of a spread; 0 where it has none. Without any
    in the program, of all nodes with memory in turn.
    """
    if not program.spreads:
        memory = np.array([float(node.memory_bytes != 0) for node in machine.nodes])
        return np.asarray((memory * memory.sum())[None, :])
    shares = np.array(program.spreads)
    return np.asarray(np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0))


def homes(setup: TaskSetup, home: int) -> list[tuple[int, float]]:
    """Nodes of a home (a node, or ``INTERLEAVED`` less a spread), with divisors for each one's."""
    if home >= 0:
        return [(home, 1.0)]
    n, spread = len(setup.copy_core), INTERLEAVED - home
    row = setup.spreads[spread * n : (spread + 1) * n]
    return [(node, float(part)) for node, part in enumerate(row) if part > 0]


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


def _scheduler(machine: Machine, scheduling: Scheduling) -> OsSetup:
    return scheduler_of(machine, np.flatnonzero(scheduling.workers).tolist())


def moved_threads(machine: Machine, scheduling: Scheduling) -> OsSetup:
    """Threads of each node's pool begin on its processors in turn."""
    setup = _scheduler(machine, scheduling)
    begin, own, everywhere = [], [], range(len(setup.node))
    for position, count in enumerate(scheduling.workers.tolist()):
        cpus = [cpu for cpu, node in enumerate(setup.node) if node == position]
        begin += [cpus[k % len(cpus)] for k in range(count)]
        own += [cpus if scheduling.affinity == "node" else [*everywhere]] * count
    return setup.replaced(begin=begin, own=own)


def near_nodes(costs: CostModel) -> tuple[tuple[int, ...], ...]:
    """Of each node: itself, then the others by latency. Nodes that are equally far come in their
    order, beginning with the one after it; thieves go around them.
    """
    found, n = [], len(costs.idle_s)
    for i, row in enumerate(costs.idle_s):
        keys = [(-inf if j == i else float(s), (j - i) % n, j) for j, s in enumerate(row)]
        found.append(tuple(j for *_, j in sorted(keys)))
    return tuple(found)


def _stages(program: Program, first_lock: int) -> list[StageSetup]:
    locks = {name: first_lock + k for k, name in enumerate(program.locks)}
    numbers = {name: k for k, name in enumerate(program.classes)}
    found: list[StageSetup] = []
    for query in program.queries:
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
                StageSetup(
                    task_class=numbers[stage.task_class],
                    table=NOTHING if stage.table is None else stage.table,
                    counted=NOTHING if counted is None else counted,
                    inputs=[first + k for k in stage.inputs],
                    followers=[first + t for t in followers],
                    pipelined=stage.pipelined,
                    kept=kept,
                    parts_min=stage.parts_min,
                    concurrency=stage.concurrency or 0,
                    **vars(entries),
                    instructions_ps=cost.instructions_s * PS_PER_S,
                    separate_ps=cost.separate_s * PS_PER_S,
                    slots=cost.misses_at_once,
                    place=[PLACES.index(use.place) for use in cost.memory],
                    read=[use.read for use in cost.memory],
                    written=[use.written for use in cost.memory],
                    lines=sum(use.read + use.written for use in cost.memory),
                    loops=[_loop(loop) for loop in cost.loops],
                    task_ps=stage.task_s * PS_PER_S,
                    locks=[locks[lock.name] for lock in stage.locks],
                    held_ps=[lock.held_s * PS_PER_S for lock in stage.locks],
                    interrupt_ps=[lock.interrupt_s * PS_PER_S for lock in stage.locks],
                    chunk_entries=stage.chunk_entries,
                    warm_lines=_by_node(cost.warm_lines, cost, 1.0),
                    warm_ps=_by_node(cost.warm_s, cost, PS_PER_S),
                )
            )
    return found


def _loop(loop: LoopCost) -> LoopSetup:
    return LoopSetup(
        instructions_ps=loop.instructions_s * PS_PER_S,
        slots=loop.misses_at_once,
        place=[PLACES.index(use.place) for use in loop.memory],
        read=[use.read for use in loop.memory],
    )


def _by_node(values: Floats | None, cost: EntryCost, times: float) -> Floats:
    return np.zeros(len(cost.instructions_s)) if values is None else values * times


def _counted(stages: tuple[Stage, ...], s: int) -> int | None:
    """The table of the stage, or of its first input that has one, however far back."""
    while stages[s].table is None and stages[s].inputs:
        s = stages[s].inputs[0]
    return stages[s].table


def _always(stages: tuple[Stage, ...], s: int) -> bool:
    """Whether the stage has tasks whatever parts its table is in."""
    stage = stages[s]
    return _always(stages, stage.inputs[0]) if stage.pipelined else stage.parts_min <= 1


@dataclass(frozen=True)
class EnginesInPlay:
    """The ``machine`` with its copy engines and cores for work in the background, both; the engine
    ``of_node`` (n,), -1 for none, and ``paths`` of scans, see ``initial_paths``."""

    machine: ServiceMachine
    engines: tuple[EngineSetup, ...] = ()
    of_node: tuple[int, ...] = ()
    paths: tuple[int, ...] = ()
    background: tuple[BackgroundSetup, ...] = ()


def engines_in_play(machine: ServiceMachine, program: Program, costs: CostModel) -> EnginesInPlay:
    """Copy engines where the program has a use for them, and what goes on in the background."""
    workers = [piece for piece in program.background if piece.kind == "interconnect"]
    nodes = [worker.node for worker in workers for _ in range(worker.workers)]
    first = len(machine.core_node)
    pieces = [
        _piece(piece, costs, first + k, slots=float(costs.streaming_misses[piece.node]))
        for k, piece in enumerate(worker for worker in workers for _ in range(worker.workers))
    ]
    machine = machine.replaced(
        core_node=[*machine.core_node, *nodes],
        core_threads=[*machine.core_threads, *[1] * len(nodes)],
    )
    scans = any(stage.chunk_entries > 0 for query in program.queries for stage in query.stages)
    if not costs.machine.copy_engines or not (scans or program.background):
        return EnginesInPlay(machine, background=tuple(pieces))
    found = with_copy_engines(machine, costs)
    copies = [
        _copy(piece, costs, found)
        for piece in program.background
        if piece.kind == "copy-engine"
        for _ in range(piece.workers)
    ]
    return EnginesInPlay(
        machine=found.service,
        engines=tuple(
            EngineSetup(
                core=core,
                contexts=engine.contexts,
                setup_ps=engine.setup_s * PS_PER_S,
                request_ps=engine.request_s * PS_PER_S,
                line_ps=line_s(engine) * PS_PER_S,
                free_line_ps=0.0
                if engine.non_coherent_Bps is None
                else line_s(engine, coherent=False) * PS_PER_S,
                slots=engine.in_flight_bytes / LINE_BYTES,
            )
            for engine, core in zip(found.engines, found.core, strict=True)
        ),
        of_node=found.of_node,
        paths=initial_paths(program, len(costs.machine.nodes)),
        background=(*pieces, *copies),
    )


def initial_paths(program: Program, nodes: int) -> tuple[int, ...]:
    """By stage and home, all nodes first: positions in ``PATHS``."""
    return tuple(
        PATHS.index(stage.path or "cpu")
        for query in program.queries
        for stage in query.stages
        for _ in range(nodes + 1)
    )


def _copy(background: Background, costs: CostModel, found: EnginesInService) -> BackgroundSetup:
    """Lines that an engine copies there and back."""
    number = found.of_node[background.node]
    engine = found.engines[number]
    piece = _piece(background, costs, found.core[number], slots=engine.in_flight_bytes / LINE_BYTES)
    lines_ps = sum(piece.read) * line_s(engine) * PS_PER_S
    return piece.replaced(engine=number, instructions_ps=lines_ps)


def _piece(background: Background, costs: CostModel, core: int, slots: float) -> BackgroundSetup:
    read, written = background_lines(background, len(costs.machine.nodes))
    return BackgroundSetup(core=core, read=read, written=written, slots=slots)


@dataclass(frozen=True)
class CopiedKinds:
    """Of F kinds of tasks: which ``engine`` (F,) of those ``found`` copies for each, -1 for none;
    per entry the engine's time (F,), lines that it reads and writes (F, n), and its slots (F,).

    ``setup_s``, ``request_s`` (F,): of a thread, before all and for each chunk of ``chunk`` (F,)
    entries.
    """

    found: EnginesInService
    engine: Ints
    engine_s: Floats
    read: Floats
    written: Floats
    slots: Floats
    setup_s: Floats
    request_s: Floats
    chunk: Floats

    @staticmethod
    def none(kinds: int, costs: CostModel) -> "CopiedKinds":
        """Nothing is copied yet."""
        zero, nodes, none = np.zeros(kinds), len(costs.machine.nodes), np.zeros(0, dtype=np.int64)
        return CopiedKinds(
            found=with_copy_engines(service_machine(costs, none, none), costs),
            engine=np.full(kinds, NONE, dtype=np.int64),
            engine_s=zero.copy(),
            read=np.zeros((kinds, nodes)),
            written=np.zeros((kinds, nodes)),
            slots=np.ones(kinds),
            setup_s=zero.copy(),
            request_s=zero.copy(),
            chunk=np.ones(kinds),
        )

    def add(
        self,
        kind: int,
        node: int,
        read: Floats,
        written: Floats,
        coherent: bool,
        chunk: float = 0.0,
    ) -> None:
        """The engine of ``node`` copies these lines (n,) per entry, a ``chunk`` at a time for a
        thread, if for one."""
        engine = self.found.of_node[node]
        facts = self.found.engines[engine]
        self.engine[kind] = engine
        self.engine_s[kind] = read.sum() * line_s(facts, coherent)
        self.read[kind], self.written[kind] = read, written
        self.slots[kind] = facts.in_flight_bytes / LINE_BYTES
        if chunk:
            self.setup_s[kind], self.request_s[kind] = facts.setup_s, facts.request_s
            self.chunk[kind] = chunk

    def link_bytes(self, costs: CostModel) -> Floats:
        """(F, 2L) on links, per entry."""
        total = np.zeros((len(self.engine), len(costs.link_Bps)))
        if not costs.machine.links:
            return total
        service = plain(self.found.service)
        data, request = LINE_BYTES + costs.link_header_bytes, costs.link_request_bytes
        response, nodes = costs.link_response_bytes, len(costs.machine.nodes)
        for f in np.flatnonzero(self.engine != NONE).tolist():
            engine_node = service.core_node[self.found.core[self.engine[f]]]
            for home in np.flatnonzero(self.read[f] + self.written[f]).tolist():
                read, written = self.read[f, home], self.written[f, home]
                if engine_node < nodes:
                    of_read, of_written = costs.line_bytes(engine_node, home)
                    total[f] += read * of_read + written * of_written
                    continue
                to_engine = route(service, home, engine_node)
                back = route(service, engine_node, home)
                total[f, to_engine] += read * data[to_engine] + written * response[to_engine]
                total[f, back] += read * request[back] + written * data[back]
        return total


def background_lines(background: Background, nodes: int) -> tuple[Floats, Floats]:
    """(n,) lines that are read and written per line of a worker's data."""
    read, written = np.zeros(nodes), np.zeros(nodes)
    read[background.home] += 1.0
    written[background.node] += 1.0
    if background.kind == "interconnect":
        read[background.node] += 2.0  # the place of what is written, and the scan
    else:
        read[background.node] += 1.0
        written[background.home] += 1.0
    return read, written
