"""The whole model in SimPy: clients, queries, workers, and copies of parts (rule 8)."""

from collections.abc import Sequence

from ...._kernel import TaskSetup
from ....kernel.plain_fields import plain
from ....machine.reference.service_machine import MemoryUse, PieceDemand
from ..history import ARRIVED, COPYING
from ..parameters import homes
from .clock import Clock
from .engine_scans import ENGINE_JOBS
from .queries import Queries

PAGE_LINES = 64.0


class TaskModel:
    """Simulates a setup with the draws of one seed and replication.

    After each call that changes something, ``clock.plan`` is due; the methods here see to it.
    """

    def __init__(self, setup: TaskSetup, seed: int = 0, replication: int = 0) -> None:
        self.p = plain(setup)
        self.clock = Clock(setup.machine, self._ended)
        self.queries = Queries(self.p, self.clock, seed, replication)
        self.workers = self.queries.workers
        self.copies: dict[int, int] = {}
        self.arrived: list[int] = []

    def run(self, until_ps: int) -> bool:
        """Goes on to that time; False where copies have arrived before."""
        return self.clock.run(until_ps)

    def _ended(self, job: int) -> None:
        if job < len(self.workers.workers):
            self.workers.scans.step_on(job)
            return
        if job >= ENGINE_JOBS:
            self.workers.scans.copied(job - ENGINE_JOBS)
            return
        number = self.copies.pop(job)
        self.clock.log(ARRIVED, number)
        self.arrived.append(number)
        self.clock.halted = True

    def copy(self, number: int, source: int, target: int, pages: int, page_ps: float) -> None:
        """A copying thread begins; ``source``: a home."""
        lines = {home: [PAGE_LINES / part, 0.0] for home, part in homes(self.p, source)}
        lines.setdefault(target, [0.0, 0.0])[1] = PAGE_LINES
        node = target if source < 0 else source
        slots = self.p.copy_slots[node]
        demand = PieceDemand(
            instructions_ps=page_ps,
            separate_ps=0.0,
            memory=tuple(
                MemoryUse(home, read, written, slots)
                for home, (read, written) in sorted(lines.items())
            ),
        )
        job = len(self.workers.workers) + number
        self.copies[job] = number
        self.clock.log(COPYING, number, pages, source, target)
        self.clock.start(self.p.copy_core[node], demand, float(pages), job)
        self.clock.plan()

    def set_parts(self, table: int, rows: Sequence[int], nodes: Sequence[int]) -> None:
        self.queries.set_parts(table, list(rows), list(nodes))

    def block(self, table: int, part: int) -> None:
        self.queries.block(table, part)

    def place(self, table: int, part: int, node: int) -> None:
        self.queries.place(table, part, node)
        self.clock.plan()

    def allow(self, classes: Sequence[bool], within_node: bool = True) -> None:
        self.workers.allow(list(classes), within_node)
        self.clock.plan()

    def use(self, workers: Sequence[bool]) -> None:
        self.workers.use(workers)
        self.clock.plan()

    def set_mix(self, cumulative: Sequence[float]) -> None:
        """Shares of the queries that are drawn from now on, added up."""
        self.queries.mix = list(cumulative)

    def set_paths(self, paths: Sequence[int]) -> None:
        """Of scans that begin from now on."""
        self.workers.scans.paths = list(paths)
