"""A cluster that joins or aggregates, on SimPy's clock: the specification of the compiled model.

Of each node, step by step: pieces of work, which its workers take in turn; rows that they send to
the nodes to which their partitions belong. What each event means is in
``kernel/exchange.hpp``; the compiled model gives the same trace, row for row.
"""

from ...._kernel import ExchangeOperator
from .messages import (
    ANSWERED,
    ASK,
    ASK_QUERY,
    BEGUN,
    DUE,
    ENDED,
    NONE,
    NOTHING,
    READ,
    READY,
    RECEIVED,
    UNDER_WAY,
    Messages,
    Worker,
)


class Exchange(Messages):
    """See the module; times in ps."""

    def _ask(self) -> None:
        self._happened(ASK_QUERY, 0, 0)
        if self.current != self.next_operator:
            self.current = self.next_operator
            self._prepare(self.operators[self.current])
        self.asked_at = self.now
        self.operator_used.append(self.current)
        self.arrived_rows = [0] * len(self.arrived_rows)
        self.entered, self.nodes_done = [0] * len(self.steps), 0
        for node in self.nodes:
            node.step = node.here = 0
        for worker in self.workers:
            worker.flushed = NONE
        for node_index in range(len(self.nodes)):
            self._enter(node_index)

    def _prepare(self, operator: ExchangeOperator) -> None:
        n = len(self.nodes)
        self.operator, self.steps = operator, list(operator.steps)
        self.sends = [[list(of_home) for of_home in step.rows] for step in self.steps]
        self.pieces_of = [[list[int]() for _ in range(n)] for _ in self.steps]
        self.rank = []
        self.expected: list[list[int]] = []
        self.demand: list[list[int]] = []
        sent, setup = [0] * n, self.setup
        for s, step in enumerate(self.steps):
            self.expected.append(list(sent))
            self.rank.append([])
            for k, home in enumerate(step.piece_home):
                self.rank[s].append(len(self.pieces_of[s][home]))
                self.pieces_of[s][home].append(k)
            for of_home in self.sends[s]:
                for p, rows in enumerate(of_home):
                    sent[p % n] += rows
            self.demand.append(
                [
                    self._demand(
                        step.instructions_ps[node_index],
                        step.read,
                        step.written,
                        node_index,
                        setup.slots[node_index],
                    )
                    for node_index in range(n)
                ]
            )
        partitions = max((len(of_home) for rows in self.sends for of_home in rows), default=0)
        self.arrived_rows = [0] * partitions
        for worker in self.workers:
            worker.fill = [0] * partitions
            worker.used += [0] * (partitions - len(worker.used))

    def _enter(self, node_index: int) -> None:
        """The node has come to a step: it begins, unless rows are missing, or other nodes."""
        node = self.nodes[node_index]
        node.open = node.waits = False
        if node.step == len(self.steps):
            self.nodes_done += 1
            if self.nodes_done == len(self.nodes):
                self._end_query()
            return
        step = self.steps[node.step]
        if step.gated and node.here < self.expected[node.step][node_index]:
            node.waits = True
            return
        if not step.central:
            return self._open(node_index)
        self.entered[node.step] += 1
        if self.entered[node.step] < len(self.nodes):
            return
        self.central, self.centrals = self.centrals, self.centrals + 1
        self.central_cursor, self.central_left = 0, len(step.piece_home)
        for worker in self.workers:
            worker.fetch = NOTHING
        for each in range(len(self.nodes)):
            self._open(each)

    def _open(self, node_index: int) -> None:
        node = self.nodes[node_index]
        step = self.steps[node.step]
        node.open, node.cursor = True, 0
        node.pieces_left = 0 if step.central else len(self.pieces_of[node.step][node_index])
        node.unflushed = len(node.workers) if self.sends[node.step] else 0
        if not step.central and node.pieces_left == 0 and node.unflushed == 0:
            return self._advance(node_index)
        self._wake(node_index)

    def _advance(self, node_index: int) -> None:
        """The node goes on where its step is done."""
        node = self.nodes[node_index]
        if not node.open or node.pieces_left > 0 or node.unflushed > 0:
            return
        if self.steps[node.step].central and self.central_left > 0:
            return
        node.open = False
        self._happened(ENDED, node_index, node.step)
        node.step += 1
        self._enter(node_index)

    def _close_central(self) -> None:
        self.central = NONE
        for node_index in range(len(self.nodes)):
            self._wake(node_index)
            self._advance(node_index)

    def _rows_here(self, node_index: int, rows: int) -> None:
        node = self.nodes[node_index]
        node.here += rows
        if node.waits and node.here == self.expected[node.step][node_index]:
            self._enter(node_index)

    def _end_query(self) -> None:
        self._happened(ANSWERED, 0, self.now - self.asked_at)
        self._check_query()
        self.latencies_ps.append(self.now - self.asked_at)
        self._after(self.setup.think_ps, self._ask)

    def _check_query(self) -> None:
        """Every row that was sent has arrived once, and is in one piece of the last step."""
        sent, into, checked = [0] * len(self.arrived_rows), 0, 0
        for step, rows in zip(self.steps, self.sends, strict=True):
            for of_home in rows:
                for p, count in enumerate(of_home):
                    sent[p] += count
            into += sum(map(sum, rows)) if step.input else 0
            checked += sum(step.piece_rows) if step.checked else 0
        if sent != self.arrived_rows:
            raise RuntimeError("rows were lost or doubled on their way")
        if into != checked:
            raise RuntimeError("rows were joined more or less than once")
        if any(any(worker.fill) for worker in self.workers):
            raise RuntimeError("rows were left in a buffer")

    def _wake(self, node_index: int) -> None:
        for worker in self.nodes[node_index].workers:
            if worker.idle:
                worker.idle = False
                self._next(worker)

    def _wake_one(self, node_index: int) -> None:
        for worker in self.nodes[node_index].workers:
            if worker.idle:
                worker.idle = False
                return self._next(worker)

    def _next(self, worker: Worker) -> None:
        """What a free worker does: receives, takes a piece, sends its open buffers, or waits."""
        node = self.nodes[worker.node]
        if node.inbox:
            return self._take_inbox(worker)
        if node.open:
            step = self.steps[node.step]
            if not step.central:
                pieces = self.pieces_of[node.step][worker.node]
                if node.cursor < len(pieces):
                    node.cursor += 1
                    worker.piece = pieces[node.cursor - 1]
                    return self._begin_piece(worker)
            elif worker.fetch == READY:
                worker.piece, worker.fetch = worker.fetched, NOTHING
                ps = self.setup.fetch[ASK - 1].send_ps + self.setup.fetch[READ - 1].send_ps
                return self._spend(worker, ps, self._begin_piece)
            elif worker.fetch in (NOTHING, UNDER_WAY) and self.central != NONE:
                worker.idle = True
                return self._fetch(worker) if worker.fetch == NOTHING else None
            if self.sends[node.step] and worker.flushed != node.step:
                return self._flush(worker)
        worker.idle = True

    def _take_inbox(self, worker: Worker) -> None:
        inbox, ps = self.nodes[worker.node].inbox, 0
        worker.taking, worker.taking_lines = 0, 0.0
        for _ in range(min(self.setup.taken_at_once, len(inbox))):
            rows, lines, receive_ps = inbox.popleft()
            worker.taking += rows
            worker.taking_lines += lines
            ps += receive_ps
        self._spend(worker, ps, self._received)

    def _received(self, worker: Worker) -> None:
        self._happened(RECEIVED, worker.number, worker.taking)
        self._start(worker, self.copying[worker.node], worker.taking_lines)

    def _begin_piece(self, worker: Worker) -> None:
        s = self.nodes[worker.node].step
        self._start(worker, self.demand[s][worker.node], self.steps[s].piece_lines[worker.piece])
        if self.steps[s].central and worker.fetch == NOTHING and self.central != NONE:
            self._fetch(worker)

    def _piece_ended(self, worker: Worker) -> None:
        if worker.piece == NONE:
            rows, worker.taking = worker.taking, 0
            self._happened(DUE, worker.number, rows)
            self._rows_here(worker.node, rows)
            return self._next(worker)
        piece, worker.piece = worker.piece, NONE
        self._happened(BEGUN, worker.number, piece)
        node = self.nodes[worker.node]
        self.counted["pieces"][worker.node] += 1
        central = self.steps[node.step].central
        if self.sends[node.step]:
            self._fill_buffers(worker, piece)
        if central:
            self.central_left -= 1
            if self.central_left == 0:
                self._close_central()
        else:
            node.pieces_left -= 1
            self._advance(worker.node)
        self._send_next(worker)
