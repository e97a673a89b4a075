"""A single scan with background work, by each path: training data of choosers.

As flows: rates of one scan in steady state, from which its time follows for any size. Event by
event: ``ScanPlays``, which simulates thousands a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf

import numpy as np
import numpy.typing as npt

from ..._kernel import ScanPlays
from ...machine.copy_engines import nearest_engines
from ...machine.costs import LINE_BYTES, CostModel
from .engine_parameters import initial_paths
from .entry_costs import EntryCosts, InOrder
from .instructions import OperatorInstructions
from .layout import PartState
from .parameters import task_setup
from .paths import PATHS
from .program import Background, Entries, Part, Path, Program, Query, Scheduling, Stage, Table
from .steady_state import State, SteadyState

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

VALUE_BYTES = 4.0
# Counted by hand: for four integers a load, two comparisons, their conjunction, its mask, a test.
PLAIN = OperatorInstructions(scan_row=1.5)
TASK_S = 2e-6


def plain_scan(costs: CostModel, selectivity: float, chunk_bytes: float) -> Stage:
    """A scan of integers of 32 bits that are not encoded, which writes positions."""
    workers = np.maximum(costs.cores, 0).astype(np.int64)
    cost = EntryCosts(costs, workers).of(
        PLAIN.scan_row + PLAIN.scan_match * selectivity,
        (
            InOrder("part", read_bytes=VALUE_BYTES),
            InOrder("local", written_bytes=VALUE_BYTES * selectivity),
        ),
    )
    return Stage(
        name=f"scan {selectivity:g}",
        task_class="scan",
        cost=cost,
        entries=Entries(per_row=1.0),
        table=0,
        concurrency=1,
        chunk_entries=max(float(chunk_bytes // VALUE_BYTES), 1.0),
    )


def _program(
    stages: Sequence[Stage], node: int, nodes: int, background: tuple[Background, ...]
) -> Program:
    workers = np.zeros(nodes, dtype=np.int64)
    workers[node] = 1
    # As they stand in a query, they name its tables and its earlier stages.
    stages = [replace(stage, table=0, inputs=(), pipelined=False, parts_min=1) for stage in stages]
    return Program(
        tables=(Table("column", (Part(1, node),), VALUE_BYTES, 0.0),),
        queries=tuple(Query(stage.name, (stage,), 1, 0.0) for stage in stages),
        scheduling=Scheduling(workers, 1, TASK_S, inf, 0.0),
        mix_clients=0,
        think_s=0.0,
        arrivals_per_s=0.0,
        background=background,
    )


@dataclass(frozen=True)
class ScanRate:
    """Of one scan by one path: times of an entry (both together, its copy, its work), and what a
    thread takes besides: ``setup_s`` once, ``request_s`` a chunk of ``chunk`` entries."""

    entry_s: float
    copy_s: float
    work_s: float
    setup_s: float
    request_s: float
    chunk: float

    def seconds(self, entries: Floats) -> Floats:
        """(N,) of scans of so many entries."""
        if not self.request_s and not self.setup_s:
            return entries * self.entry_s + TASK_S
        chunk = np.minimum(self.chunk, entries)
        more = np.ceil(entries / chunk - 1e-9) * self.request_s
        more += min(self.copy_s, self.work_s) * chunk
        return np.asarray(TASK_S + self.setup_s + more + entries * self.entry_s)


class FlowScans:
    """Scans by a thread of ``node`` (a position) as flows."""

    def __init__(self, costs: CostModel, node: int) -> None:
        self.costs, self.node, self.nodes = costs, node, len(costs.machine.nodes)
        self.traffic = cache(self._traffic)
        self._rates: dict[tuple[int, int, Path, tuple[Background, ...]], ScanRate] = {}
        self._stages: list[Stage] = []  # kept, so that what their names in `_rates` mean stays

    def rate(
        self, stage: Stage, home: int, path: Path, background: tuple[Background, ...]
    ) -> ScanRate:
        """Of a scan of that stage, whose data lie at ``home``."""
        key = id(stage), home, path, background
        if key not in self._rates:
            self._stages.append(stage)
            self._rates[key] = self._rate(stage, home, path, background)
        return self._rates[key]

    def _state(self, made: Program, home: int, path: Path, clients: float) -> State:
        stage = replace(made.queries[0].stages[0], path=path)
        paths = initial_paths(
            replace(made, queries=(replace(made.queries[0], stages=(stage,)),)), self.nodes
        )
        part = PartState(1_000_000_000, home, 0)
        return State(
            parts=(("column", (part,)),),
            clients=(clients,),
            mix_clients=0.0,
            shares=(0.0,),
            stealable=frozenset(),
            workers=tuple(made.scheduling.workers.tolist()),
            paths=paths if self.costs.machine.copy_engines else (),
        )

    def _rate(
        self, stage: Stage, home: int, path: Path, background: tuple[Background, ...]
    ) -> ScanRate:
        made = _program((stage,), self.node, self.nodes, background)
        served = SteadyState(made, self.costs).solve(self._state(made, home, path, 1.0)).served
        setup_s = request_s = 0.0
        if path != "cpu":
            engine = self.costs.machine.copy_engines[nearest_engines(self.costs.machine)[self.node]]
            setup_s, request_s = engine.setup_s, engine.request_s
        return ScanRate(
            float(served.entry_s[0]),
            float(served.copy_s[0]),
            float(served.work_s[0]),
            setup_s,
            request_s,
            stage.chunk_entries,
        )

    def _traffic(self, background: tuple[Background, ...]) -> tuple[float, float]:
        """Of the background: bytes per second that it moves over the interconnect from and to the
        node's memory, with nothing else running, and its copies under way at the node's engine.
        (Bytes per second would tell little: one copy fills the engine as well as many.)"""
        stage = plain_scan(self.costs, 0.0, 1.0)
        made = _program((stage,), self.node, self.nodes, background)
        served = (
            SteadyState(made, self.costs).solve(self._state(made, self.node, "cpu", 0.0)).served
        )
        engines = nearest_engines(self.costs.machine)
        over = through = 0.0
        first = len(served.entry_s) - len(background)
        for piece, entry_s in zip(background, served.entry_s[first:].tolist(), strict=True):
            Bps = piece.workers * LINE_BYTES / entry_s if piece.workers else 0.0
            if piece.kind == "interconnect":
                over += Bps * (self.node in (piece.node, piece.home))
            elif engines[piece.node] == engines[self.node]:
                through += piece.workers
        return over, through


class EventScans:
    """The same event by event; ``pieces``: of the background, each for itself."""

    def __init__(
        self, costs: CostModel, node: int, stages: Sequence[Stage], pieces: Sequence[Background]
    ) -> None:
        made = _program(stages, node, len(costs.machine.nodes), tuple(pieces))
        self.plays = ScanPlays(task_setup(made, costs))
        # Planes list those of the interconnect first.
        kinds = ("interconnect", "copy-engine")
        order = [k for kind in kinds for k, piece in enumerate(pieces) if piece.kind == kind]
        self._position = {k: index for index, k in enumerate(order)}

    def state(self, pieces: Sequence[int]) -> int:
        """The number of a state in which these pieces (positions) go on."""
        return self.plays.state([self._position[k] for k in pieces])

    def seconds(self, state: Ints, stage: Ints, home: Ints, entries: Floats, path: Path) -> Floats:
        """(N,) of scans."""
        return np.asarray(self.plays.play(state, stage, home, entries, PATHS.index(path))) / 1e12
