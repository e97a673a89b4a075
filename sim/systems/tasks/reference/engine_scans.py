"""Tasks whose data a copy engine copies ahead, chunk by chunk (rule 10)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

from ...._kernel import TaskSetup
from ....machine.copy_engines import copied_memory
from ....machine.costs import LINE_BYTES
from ....machine.reference.copy_engine import CopyEngine, DoubleBuffer
from ....machine.reference.service_machine import MemoryUse, PieceDemand
from ..parameters import NOTHING, PLACES, homes
from .clock import Clock
from .tasks import Task

ENDLESS_ENTRIES = 1e12
ENGINE_JOBS, BACKGROUND_JOBS = 1 << 48, 1 << 49
BY_CPU, BY_ENGINE = 0, 1
PASSING = PieceDemand(separate_ps=1.0)  # a ps of a thread's time


class Thread(Protocol):
    """A worker's number, core, and the core's node."""

    number: int
    here: int
    core: int


@dataclass
class _Scan:
    """A task under way. ``step``: setup, request, work or wait."""

    worker: Thread
    task: Task
    engine: int
    work: PieceDemand
    copy: PieceDemand
    chunk: float
    buffer: DoubleBuffer
    step: str = "setup"
    since: int = 0

    def part(self, chunk: int) -> float:
        """Entries of that chunk."""
        return min(self.chunk, self.task.entries - self.chunk * chunk)


@dataclass
class EngineScans:
    """All of them. ``ended``: told the worker whose task is done; ``looked_ps`` and ``traffic``
    are the workers'."""

    p: TaskSetup
    clock: Clock
    ended: Callable[[int], None]
    looked_ps: list[int]
    traffic: list[list[float]]
    scans: dict[int, _Scan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.paths = list(self.p.paths)
        self.engines = [CopyEngine(engine.contexts) for engine in self.p.engines]
        for number, piece in enumerate(self.p.background):
            if piece.engine != NOTHING:
                self.engines[piece.engine].request(0)
            lines = enumerate(zip(piece.read, piece.written, strict=True))
            memory = [MemoryUse(home, *each, piece.slots) for home, each in lines if any(each)]
            demand = PieceDemand(piece.instructions_ps, 0.0, tuple(memory))
            self.clock.start(piece.core, demand, ENDLESS_ENTRIES, BACKGROUND_JOBS + number)
        self.clock.plan()

    def takes(self, task: Task, node: int) -> bool:
        """Whether a thread of ``node`` has the task's data copied."""
        if not self.paths or self.p.stages[task.stage].chunk_entries <= 0:
            return False
        return self._path(task) != BY_CPU and self.p.engine_of_node[node] != NOTHING

    def _path(self, task: Task) -> int:
        return self.paths[task.stage * (len(self.p.copy_core) + 1) + max(task.home, -1) + 1]

    def begin(self, worker: Thread, task: Task, lines: dict[int, tuple[float, float]]) -> None:
        """``lines``: per entry, of work on data that lie on the worker's node."""
        p, stage, node = self.p, self.p.stages[task.stage], worker.here
        number = p.engine_of_node[node]
        engine = p.engines[number]
        slots = stage.slots[node]
        work = PieceDemand(
            stage.instructions_ps[node],
            stage.separate_ps[node],
            tuple(MemoryUse(at, *each, slots) for at, each in lines.items()),
        )
        uses = zip(stage.place, stage.read, strict=True)
        copied = sum(read for place, read in uses if PLACES[place] == "part")
        lies = homes(p, task.home)
        line_ps = engine.line_ps if self._path(task) == BY_ENGINE else engine.free_line_ps
        copy = PieceDemand(
            copied * line_ps,
            0.0,
            copied_memory(
                [(home, copied / part) for home, part in lies], [(node, copied)], engine.slots
            ),
        )
        chunk = stage.chunk_entries
        buffer = DoubleBuffer(ceil(task.entries / chunk))
        self.scans[worker.number] = _Scan(worker, task, number, work, copy, chunk, buffer)
        self.clock.start(worker.core, PASSING, p.task_ps + engine.setup_ps, worker.number)

    def step_on(self, number: int) -> None:
        """The worker's piece has ended."""
        scan = self.scans.get(number)
        if scan is None:
            self.ended(number)
            return
        if scan.step == "request" and self.engines[scan.engine].request(number):
            self._copy(scan)
        if scan.step == "work":
            scan.buffer.end_work()
        self._next(scan)

    def _next(self, scan: _Scan) -> None:
        """It asks for the next copy as soon as a buffer is free, else works on what is there, else
        waits."""
        number, core = scan.worker.number, scan.worker.core
        if scan.buffer.done:
            del self.scans[number]
            self.ended(number)
        elif scan.buffer.take_copy():
            scan.step = "request"
            self.clock.start(core, PASSING, self.p.engines[scan.engine].request_ps, number)
        elif scan.buffer.take_work():
            scan.step = "work"
            self.clock.start(core, scan.work, scan.part(scan.buffer.worked), number)
        else:
            scan.step, scan.since = "wait", self.clock.now

    def _copy(self, scan: _Scan) -> None:
        core = self.p.engines[scan.engine].core
        job = ENGINE_JOBS + scan.worker.number
        self.clock.start(core, scan.copy, scan.part(scan.buffer.copied), job)

    def copied(self, number: int) -> None:
        """A chunk of the worker's is there."""
        scan = self.scans[number]
        entries, node = scan.part(scan.buffer.copied), scan.worker.here
        for use in scan.copy.memory:
            self.traffic[node][use.home] += (use.read + use.written) * entries * LINE_BYTES
        following = self.engines[scan.engine].end()
        if following is not None:
            self._copy(self.scans[following])
        scan.buffer.end_copy()
        if scan.step == "wait":
            self.looked_ps[node] += self.clock.now - scan.since  # it polled
            self._next(scan)
