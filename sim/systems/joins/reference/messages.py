"""A cluster that joins on SimPy's clock, and what its workers send.

They send numbers that they fetch from the central queue, and buffers of rows.

Who takes part in an exchange: workers, nodes, and the messages between them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import simpy

from ...._kernel import ExchangeOperator, ExchangeSetup, ExchangeStep, MessageCost
from ....machine.reference.clock import run_until
from ....machine.reference.message_path import Adapter
from ....machine.reference.service_machine import MemoryUse, PieceDemand
from ....machine.reference.shared_service import NEVER, SharedService

QUEUE_NODE = 0  # has the central queue


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


class Messages(Cluster):
    """From a worker's buffers through adapters into the memory, or the inbox, of another node."""

    def _fetch(self, worker: Worker) -> None:
        worker.fetch = UNDER_WAY
        m = Message(ASK, worker.number, worker.node, QUEUE_NODE, number=self.central)
        if m.source == m.target:
            return self._arrived(m)
        self._carry(m)

    def _take_central(self) -> int:
        step = self.steps[self.nodes[0].step]
        if self.central_cursor == len(step.piece_home):
            return NONE
        self.central_cursor += 1
        return self.central_cursor - 1

    def _fill_buffers(self, worker: Worker, piece: int) -> None:
        s = self.nodes[worker.node].step
        step = self.steps[s]
        home = step.piece_home[piece]
        pieces, rank, size = len(self.pieces_of[s][home]), self.rank[s][piece], step.rows_of_buffer
        for p, rows in enumerate(self.sends[s][home]):
            until, before = (
                rows // pieces * k + rows % pieces * k // pieces for k in (rank + 1, rank)
            )
            worker.fill[p] += until - before
            while worker.fill[p] >= size:
                worker.fill[p] -= size
                worker.full.append((p, size))

    def _flush(self, worker: Worker) -> None:
        worker.flushed, worker.flushing = self.nodes[worker.node].step, True
        for p, rows in enumerate(worker.fill):
            if rows:
                worker.full.append((p, rows))
                worker.fill[p] = 0
        self._send_next(worker)

    def _send_next(self, worker: Worker) -> None:
        n = len(self.nodes)
        while worker.full and worker.full[0][0] % n == worker.node:
            self._local_rows(worker, *worker.full.popleft())
        if not worker.full:
            if worker.left_at <= self.now:
                return self._sent_all(worker)
            worker.waits_since = self.now
            return self._after(worker.left_at - self.now, lambda: self._left(worker))
        partition, rows = worker.full[0]
        if self.operator.one_sided and worker.used[partition] == self.setup.send_buffers:
            worker.blocked, worker.waits_since = True, self.now
            return None
        cost = self.costs[self.current][self._part_of(worker, rows)]
        self._spend(worker, cost.send_ps, self._hand_over)

    def _part_of(self, worker: Worker, rows: int) -> int:
        size = self.steps[self.nodes[worker.node].step].rows_of_buffer
        return (rows * (len(self.costs[self.current]) - 1) + size - 1) // size

    def _local_rows(self, worker: Worker, partition: int, rows: int) -> None:
        node = self.nodes[worker.node]
        self.arrived_rows[partition] += rows
        if self.operator.one_sided:
            return self._rows_here(worker.node, rows)
        node.inbox.append((rows, rows * self.steps[node.step].row_lines, 0))
        self._wake_one(worker.node)

    def _left(self, worker: Worker) -> None:
        self.counted["waited_ps"][worker.node] += self.now - worker.waits_since
        self._sent_all(worker)

    def _sent_all(self, worker: Worker) -> None:
        if worker.flushing:
            worker.flushing = False
            self.nodes[worker.node].unflushed -= 1
            self._advance(worker.node)
        self._next(worker)

    def _hand_over(self, worker: Worker) -> None:
        """The message has been posted: the adapter takes it."""
        self._happened(POSTED, worker.number, 0)
        partition, rows = worker.full.popleft()
        target, size = partition % len(self.nodes), self.steps[self.nodes[worker.node].step]
        m = Message(ROWS, worker.number, worker.node, target, partition, rows)
        m.lines, m.part = rows * size.row_lines, self._part_of(worker, rows)
        if self.operator.one_sided:
            worker.sent[target] += 1
            worker.used[partition] += 1
            m.number = worker.sent[target]
            last = worker.used[partition] == self.setup.send_buffers
            m.signaled = m.number % self.setup.signal_every == 0 or last
            worker.unknown[target].append((m.number, partition))
        self.counted["messages"][worker.node] += 1
        self.counted["rows_sent"][worker.node] += rows
        self._carry(m)
        if not self.operator.one_sided:
            worker.left_at = m.last_bits - self._cost(m).wire_ps
        self._send_next(worker)

    def _cost(self, m: Message) -> MessageCost:
        return self.costs[self.current][m.part] if m.kind == ROWS else self.setup.fetch[m.kind - 1]

    def _carry(self, m: Message) -> None:
        cost = self._cost(m)
        passage = self.adapters[m.source].send(self.now, cost.out_ps, cost.wire_ps)
        m.last_bits = passage.last_bits
        self._after(passage.first_bits - self.now, lambda: self._reached(m))

    def _reached(self, m: Message) -> None:
        self._happened(REACHED, m.target, m.worker)
        arrived_ps = self.adapters[m.target].receive(self.now, self._cost(m).in_ps, m.last_bits)
        self._after(arrived_ps - self.now, lambda: self._arrived(m, traced=True))

    def _arrived(self, m: Message, traced: bool = False) -> None:
        if traced:
            self._happened(ARRIVED, m.target, m.worker)
        if m.kind == ROWS:
            return self._rows_arrived(m)
        if m.kind == ASK:
            if m.number != self.central:
                return None
            m = replace(
                m, kind=ANSWER, partition=self._take_central(), source=m.target, target=m.source
            )
            return self._arrived(m) if m.source == m.target else self._carry(m)
        if m.kind == ANSWER:
            if m.number != self.central and m.partition == NONE:
                return None
            home = m.target
            if m.partition != NONE:
                home = self.steps[self.nodes[m.target].step].piece_home[m.partition]
            if home != m.target:
                return self._carry(replace(m, kind=READ, source=m.target, target=home))
        if m.kind == READ:
            return self._carry(replace(m, kind=DATA, source=m.target, target=m.source))
        worker = self.workers[m.worker]
        worker.fetched, worker.fetch = m.partition, OVER if m.partition == NONE else READY
        if worker.idle:
            worker.idle = False
            self._next(worker)

    def _rows_arrived(self, m: Message) -> None:
        self.arrived_rows[m.partition] += m.rows
        cost = self._cost(m)
        if not self.operator.one_sided:
            self.nodes[m.target].inbox.append((m.rows, m.lines, cost.receive_ps))
            return self._wake_one(m.target)
        if m.signaled:
            self._after(cost.wire_ps, lambda: self._complete(m))
        self._rows_here(m.target, m.rows)

    def _complete(self, m: Message) -> None:
        """A signaled request is done: it vouches for those before it to the same node."""
        self._happened(COMPLETED, m.worker, m.number)
        worker = self.workers[m.worker]
        unknown = worker.unknown[m.target]
        while unknown and unknown[0][0] <= m.number:
            worker.used[unknown.popleft()[1]] -= 1
        if not worker.blocked or worker.used[worker.full[0][0]] == self.setup.send_buffers:
            return
        worker.blocked = False
        self.counted["waited_ps"][worker.node] += self.now - worker.waits_since
        self._send_next(worker)


# Rows of the trace, as the kernel numbers them.
ASK_QUERY, DUE, ENDED, POSTED, LEFT, REACHED, ARRIVED, COMPLETED, RECEIVED, BEGUN, ANSWERED = range(
    11
)
ROWS, ASK, ANSWER, READ, DATA = range(5)  # kinds of messages
NOTHING, UNDER_WAY, READY, OVER = range(4)  # states of fetching a piece from the queue
NONE = -1


@dataclass
class Message:
    """``part``: of the costs of rows; ``number``: of the request, or of the central step."""

    kind: int
    worker: int
    source: int
    target: int
    partition: int = NONE
    rows: int = 0
    lines: float = 0.0
    part: int = 0
    number: int = 0
    signaled: bool = False
    last_bits: int = 0


@dataclass
class Worker:
    """A thread with a core of its own.

    ``full``: (partition, rows) of buffers to be sent. ``spent_at``: its work on messages is over.
    """

    number: int
    node: int
    core: int
    idle: bool = True
    piece: int = NONE
    taking: int = 0
    taking_lines: float = 0.0
    flushed: int = NONE
    flushing: bool = False
    blocked: bool = False
    left_at: int = 0
    waits_since: int = 0
    spent_at: int = 0
    fetch: int = NOTHING
    fetched: int = NONE
    fill: list[int] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    unknown: list[deque[tuple[int, int]]] = field(default_factory=list)
    full: deque[tuple[int, int]] = field(default_factory=deque)


@dataclass
class Node:
    """``inbox``: (rows, lines, CPU time of receiving) of messages."""

    step: int = 0
    open: bool = False
    waits: bool = False
    cursor: int = 0
    pieces_left: int = 0
    unflushed: int = 0
    here: int = 0
    workers: list[Worker] = field(default_factory=list)
    inbox: deque[tuple[int, float, int]] = field(default_factory=deque)
