"""A single scan with background work, by each path: training data of choosers.

As flows: rates of one scan in steady state, from which its time follows for any size. Event by
event: ``ScanPlays``, which simulates thousands a second.

Current paths of scans, and observations of choosers; the same on all planes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from math import inf

import numpy as np

from ..._kernel import ScanPlays
from ...kernel.arrays import Floats, Ints
from ...machine.copy_engines import NONE, nearest_engines
from ...machine.costs import LINE_BYTES, CostModel
from .commands import AccessPathObservation, ChoosePath, ScanSeen
from .entry_costs import EntryCosts, InOrder
from .facts import OperatorInstructions
from .layout import PartState
from .parameters import initial_paths, task_setup
from .paths import PATHS
from .program import Background, Entries, Part, Path, Program, Query, Scheduling, Stage, Table
from .steady_rates import State
from .steady_state import SteadyState

VALUE_BYTES = 4.0
# Counted by hand: for four integers a load, two comparisons, their conjunction, its mask, a test.
PLAIN = OperatorInstructions(scan_row=1.5)
TASK_S = 2e-6


def plain_scan(costs: CostModel, selectivity: float, chunk_bytes: float) -> Stage:
    """A scan of integers of 32 bits that are not encoded, which writes positions."""
    workers = np.maximum(costs.cores, 0).astype(np.int64)
    cost = EntryCosts(costs, workers).of(
        PLAIN.scan_row + PLAIN.positions(selectivity),
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


class ScanPaths:
    """Of a program on one machine. ``current``: by stage and home, all nodes first.

    ``unchanging``: tables whose copies need not be coherent. ``policy``: who chooses; one that has
    nothing to choose from is a warning of the costs.
    """

    def __init__(
        self, program: Program, costs: CostModel, unchanging: Sequence[str], policy: str
    ) -> None:
        self.program, self.costs, self.unchanging = program, costs, frozenset(unchanging)
        self.nodes = len(costs.machine.nodes)
        # Threads that are moved have no engine near: their scans go by CPU.
        pinned = program.scheduling.affinity == "core"
        able = pinned and bool(costs.machine.copy_engines)
        self.current = initial_paths(program, self.nodes) if able else ()
        self._engines = nearest_engines(costs.machine)
        self._flows = cache(partial(FlowScans, costs))  # of a node
        if policy != "none" and not self._open:
            costs.warnings.append(
                f"policy access-path={policy} chooses nothing: no scan by pinned threads leaves "
                "its path open (path: null)"
            )

    @cached_property
    def _open(self) -> dict[tuple[str, int | None], tuple[int, Stage]]:
        found: dict[tuple[str, int | None], tuple[int, Stage]] = {}
        pinned, place = self.program.scheduling.affinity == "core", 0
        for query in self.program.queries:
            for stage in query.stages:
                # What a scan says itself, no policy changes.
                if pinned and stage.chunk_entries > 0 and stage.path is None:
                    for home in (None, *range(self.nodes)):
                        found[f"{query.name}/{stage.name}", home] = place, stage
                place += 1
        return found

    def seen(
        self,
        time_s: float,
        parts: Sequence[tuple[str, Sequence[PartState]]],
        workers: Sequence[int],
    ) -> AccessPathObservation:
        """Kinds of scans whose path is open, where parts of their tables lie now."""
        by_table = dict(parts)
        found: dict[tuple[str, int | None], ScanSeen] = {}
        for (name, home), (place, stage) in self._open.items():
            assert stage.table is not None
            table = self.program.tables[stage.table]
            whole = by_table[table.name]
            here = [part for part in whole if part.node == home]
            if here:
                seen = self._scan(name, home, place, stage, table.name, here, whole, workers)
                found[name, home] = seen
        return AccessPathObservation(time_s, tuple(found.values()))

    def _scan(
        self,
        name: str,
        home: int | None,
        place: int,
        stage: Stage,
        table: str,
        here: Sequence[PartState],
        of_table: Sequence[PartState],
        workers: Sequence[int],
    ) -> ScanSeen:
        node = self._thread(home, workers)
        rows = sum(part.rows for part in here) / len(here)
        total = sum(part.rows for part in of_table)
        hint = stage.concurrency or self.program.scheduling.concurrency or sum(workers)
        entries = max(rows / max(int(hint * rows / total), 1), 1.0)
        memory = stage.cost.memory
        read = sum(use.read for use in memory if use.place == "part") * LINE_BYTES
        written = sum(use.written for use in memory) * LINE_BYTES
        idle = self.costs.idle_s[node]
        latency_s = float(np.nanmean(idle)) if home is None else float(idle[home])
        flows = self._flows(node)
        over, through = flows.traffic(self.program.background)
        paths: list[Path] = ["cpu"]
        engine = self._engines[node]
        if engine != NONE:
            paths.append("copy-engine")
            free = self.costs.machine.copy_engines[engine].non_coherent_Bps is not None
            if free and table in self.unchanging:
                paths.append("copy-engine-noncoherent")
        number = 0 if home is None else home + 1
        path = PATHS[self.current[place * (self.nodes + 1) + number]] if self.current else "cpu"
        background = self.program.background

        def played(by: Path) -> float:
            # Memory of all nodes in turn: on average.
            homes = [home] if home is not None else list(range(self.nodes))
            amounts = np.array([entries])
            times = [flows.rate(stage, home, by, background).seconds(amounts) for home in homes]
            return float(np.mean(times))

        return ScanSeen(
            scan=name,
            home=home,
            node=node,
            data_bytes=entries * read,
            latency_ns=latency_s * 1e9,
            result_bytes=entries * written,
            interconnect_Bps=over,
            engine_copies=through,
            path=path,
            paths=tuple(paths),
            seconds=played,
        )

    def _thread(self, home: int | None, workers: Sequence[int]) -> int:
        """The node of the thread: where the part lies, or the nearest one with workers."""
        able = [k for k, count in enumerate(workers) if count]
        if home is None or workers[home]:
            return able[0] if home is None else home
        latency_s = self.costs.idle_s[:, home]
        return min(able, key=lambda k: (latency_s[k], k))

    def choose(self, command: ChoosePath) -> None:
        """From now on scans of that kind take the path."""
        place, _ = self._open[command.scan, command.home]
        number = 0 if command.home is None else command.home + 1
        paths = list(self.current)
        paths[place * (self.nodes + 1) + number] = PATHS.index(command.path)
        self.current = tuple(paths)
