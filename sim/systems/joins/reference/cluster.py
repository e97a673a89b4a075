"""The parts of a cluster that joins, on SimPy's clock: nodes, workers, adapters, their service.

What happens on them is in ``messages.py`` and ``exchange.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

import simpy

from ...._kernel import ExchangeOperator, ExchangeSetup, ExchangeStep
from ....machine.reference.adapter import Adapter
from ....machine.reference.clock import run_until
from ....machine.reference.service_machine import MemoryUse, PieceDemand
from ....machine.reference.shared_service import NEVER, SharedService
from .parties import NONE, Node, Worker


class Cluster(ABC):
    """Its state and its clock; times in ps."""

    def __init__(self, setup: ExchangeSetup, seed: int, replication: int) -> None:
        del seed, replication  # it draws nothing
        self.setup, self.env, self.events = setup, simpy.Environment(), 0
        machine = setup.machine
        self.service = SharedService(machine)
        self.planned = 0
        n = len(machine.read_ps)
        self.nodes = [Node() for _ in range(n)]
        self.adapters = [Adapter() for _ in range(n)]
        self.workers: list[Worker] = []
        core_node = machine.core_node
        for number, core in enumerate(setup.worker_core):
            node = core_node[core]
            worker = Worker(number, node, core, sent=[0] * n, unknown=[deque() for _ in range(n)])
            self.workers.append(worker)
            self.nodes[node].workers.append(worker)
        self.copying = [self._demand(setup.copy_ps[node], 0.0, 1.0, node, 1.0) for node in range(n)]
        self.operators = list(setup.operators)
        self.costs = [list(operator.costs) for operator in self.operators]
        self.steps: list[ExchangeStep] = []
        self.operator: ExchangeOperator
        self.sends: list[list[list[int]]] = []
        self.pieces_of: list[list[list[int]]] = []
        self.rank: list[list[int]] = []
        self.next_operator, self.current = setup.chosen, NONE
        self.arrived_rows: list[int] = []
        self.central, self.centrals, self.central_cursor, self.central_left = NONE, 0, 0, 0
        self.rows: list[tuple[int, int, int, int]] = []
        self.latencies_ps: list[int] = []
        self.operator_used: list[int] = []
        self.counted = {name: [0] * n for name in ("messages", "rows_sent", "pieces", "waited_ps")}
        self.cpu_ps = [0] * n  # of messages' work that was begun
        self._after(setup.think_ps, self._ask)

    @property
    def now(self) -> int:
        """Picoseconds."""
        return int(self.env.now)

    def run(self, until_ps: int) -> bool:
        """Handles what comes before that time."""
        self.events += run_until(self.env, until_ps)
        return True

    def choose(self, operator: int) -> None:
        """Queries that begin from now on take this one."""
        self.next_operator = operator

    def message_cpu_ps(self) -> list[int]:
        """Of messages' work on each node's threads, up to now."""
        spent = list(self.cpu_ps)
        for worker in self.workers:
            spent[worker.node] -= max(worker.spent_at - self.now, 0)
        return spent

    def _after(self, ps: int, then: Callable[[], None]) -> None:
        callbacks = self.env.timeout(ps).callbacks
        assert callbacks is not None
        callbacks.append(lambda _: then())

    def _happened(self, event: int, subject: int, data: int) -> None:
        self.rows.append((self.now, event, subject, data))

    def _demand(
        self, instructions_ps: float, read: float, written: float, node: int, slots: float
    ) -> int:
        ps = instructions_ps * self.setup.slow[node]
        return self.service.demand(PieceDemand(ps, 0.0, (MemoryUse(node, read, written, slots),)))

    def _plan(self) -> None:
        self.planned += 1
        plan, due_ps = self.planned, self.service.next_change()
        if due_ps < NEVER:
            self._after(
                due_ps - self.now, lambda: self._look_for_ends() if plan == self.planned else None
            )

    def _look_for_ends(self) -> None:
        jobs = []
        while (job := self.service.finish(self.now)) is not None:
            jobs.append(job)
        for job in jobs:
            self._piece_ended(self.workers[job])
        self._plan()

    def _start(self, worker: Worker, demand: int, lines: float) -> None:
        self.service.start(self.now, worker.core, demand, lines, worker.number)
        self._plan()

    def _spend(self, worker: Worker, ps: int, then: Callable[[Worker], None]) -> None:
        """The worker's thread is busy with messages."""
        ps *= self.setup.slow[worker.node]
        self.cpu_ps[worker.node] += ps
        worker.spent_at = self.now + ps
        self._after(ps, lambda: then(worker))

    @abstractmethod
    def _ask(self) -> None:
        """A query begins."""

    @abstractmethod
    def _piece_ended(self, worker: Worker) -> None:
        """What the worker was busy with is done."""

    @abstractmethod
    def _next(self, worker: Worker) -> None:
        """The worker is free."""

    @abstractmethod
    def _wake_one(self, node: int) -> None:
        """There is something for a free worker of that node."""

    @abstractmethod
    def _advance(self, node: int) -> None:
        """The node goes on where its step is done."""

    @abstractmethod
    def _rows_here(self, node: int, rows: int) -> None:
        """So many more rows are in that node's memory."""
