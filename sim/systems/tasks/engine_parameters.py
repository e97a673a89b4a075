"""Copy engines, paths of scans and background work, in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ..._kernel import BackgroundSetup, EngineSetup, ServiceMachine
from ...kernel.picoseconds import PS_PER_S
from ...machine.copy_engines import EnginesInService, line_s, with_copy_engines
from ...machine.costs import LINE_BYTES, CostModel
from .copied_kinds import background_lines
from .paths import PATHS
from .program import Background, Program


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
