"""Copy engines, paths of scans and background work, in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ...machine.copy_engines import (
    NONE,
    PS_PER_S,
    EnginesInService,
    copied_memory,
    line_s,
    with_copy_engines,
)
from ...machine.costs import LINE_BYTES, CostModel
from ...machine.reference.service_machine import PieceDemand, ServiceMachine
from .paths import PATHS
from .program import Background, Program


@dataclass(frozen=True)
class EngineParameters:
    """A copy engine: its ``core`` in the service, copies at a time, times in ps of a thread before
    its first request and for each, of a line (``free_line_ps``: not coherent; 0: it makes no such
    copies), and lines that it asks for at a time."""

    core: int
    contexts: int
    setup_ps: float
    request_ps: float
    line_ps: float
    free_line_ps: float
    slots: float


@dataclass(frozen=True)
class BackgroundPiece:
    """What goes on without end, on a ``core``; ``engine``: whose context it holds, or -1."""

    core: int
    engine: int
    demand: PieceDemand


@dataclass(frozen=True)
class EnginesInPlay:
    """The ``machine`` with its copy engines and cores for work in the background, both; the engine
    ``of_node`` (n,), -1 for none, and ``paths`` of scans, see ``initial_paths``."""

    machine: ServiceMachine
    engines: tuple[EngineParameters, ...] = ()
    of_node: tuple[int, ...] = ()
    paths: tuple[int, ...] = ()
    background: tuple[BackgroundPiece, ...] = ()


def engines_in_play(machine: ServiceMachine, program: Program, costs: CostModel) -> EnginesInPlay:
    """Copy engines where the program has a use for them, and what goes on in the background."""
    workers = [one for one in program.background if one.kind == "interconnect"]
    nodes = [one.node for one in workers for _ in range(one.workers)]
    pieces = _interconnect(workers, len(machine.core_node), costs)
    if nodes:
        machine = machine._replace(
            core_node=[*machine.core_node, *nodes],
            core_threads=[*machine.core_threads, *[1] * len(nodes)],
        )
    scans = any(stage.chunk_entries > 0 for query in program.queries for stage in query.stages)
    if not costs.machine.copy_engines or not (scans or program.background):
        return EnginesInPlay(machine, background=pieces)
    found = with_copy_engines(machine, costs)
    copies = [
        piece
        for one in program.background
        if one.kind == "copy-engine"
        for piece in _copies(one, found)
    ]
    return EnginesInPlay(
        machine=found.service,
        engines=tuple(
            EngineParameters(
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


def interconnect_line(node: int, home: int, costs: CostModel) -> PieceDemand:
    """A line that a worker copies from ``home`` to its node and scans there: read, its place read
    and written, and read again."""
    memory = copied_memory(
        [(home, 1.0), (node, 2.0)], [(node, 1.0)], float(costs.streaming_misses[node])
    )
    return PieceDemand(memory=memory)


def _interconnect(
    workers: list[Background], first: int, costs: CostModel
) -> tuple[BackgroundPiece, ...]:
    pieces = [
        interconnect_line(one.node, one.home, costs) for one in workers for _ in range(one.workers)
    ]
    return tuple(BackgroundPiece(first + k, NONE, piece) for k, piece in enumerate(pieces))


def _copies(one: Background, found: EnginesInService) -> list[BackgroundPiece]:
    engine = found.of_node[one.node]
    round_trip = found.line(
        engine, [(one.home, 1.0), (one.node, 1.0)], [(one.node, 1.0), (one.home, 1.0)]
    )
    return [BackgroundPiece(found.core[engine], engine, round_trip)] * one.workers
