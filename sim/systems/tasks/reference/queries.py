"""Clients, and how a query becomes stages and a stage tasks (rules 1 to 3 of the README)."""

from functools import partial
from math import floor

from ...._kernel import Durations, StageSetup, Stream, TaskSetup
from ....kernel.streams import stream
from ..history import ANSWERED, ARRIVAL_MIX, ARRIVALS, ASKED, CLIENT_MIX, CLIENT_THINK, MADE
from ..parameters import NOTHING
from .clock import Clock
from .moved_workers import MovedWorkers
from .tasks import Part, Query, Task
from .workers import Workers


class Queries:
    """All clients and their queries; ``parts``: of each table, now."""

    def __init__(self, p: TaskSetup, clock: Clock, seed: int, replication: int) -> None:
        self.p, self.clock = p, clock
        kind = MovedWorkers if p.os.core else Workers
        self.workers = kind(p, clock, self.task_ended)
        self.all_parts: list[Part] = []
        self.asked = self.tasks = 0
        self.parts: list[list[Part]] = [
            [self.new_part(*part) for part in zip(rows, nodes, strict=True)]
            for rows, nodes in zip(p.part_rows, p.part_node, strict=True)
        ]
        self.mix = p.cumulative
        self.answered = [0] * len(self.mix)
        self.latencies_ps: list[list[int]] = [[] for _ in self.mix]
        self.think = Durations.exponential(p.think_ps)
        self.streams = [
            [stream(seed, replication, name.format(client)) for name in (CLIENT_MIX, CLIENT_THINK)]
            for client in range(len(p.client_query))
        ]
        self.arrivals = Durations.exponential(p.arrival_ps)
        self.open_streams = [stream(seed, replication, name) for name in (ARRIVAL_MIX, ARRIVALS)]
        for client in range(len(p.client_query)):
            clock.after(0, partial(self.ask, client))
        if p.arrival_ps > 0:
            self._next_arrival()

    def new_part(self, rows: int, node: int) -> Part:
        """A part of a table, by its number."""
        self.all_parts.append(Part(len(self.all_parts), rows, node))
        self.all_parts[-1].use.since = self.clock.now
        return self.all_parts[-1]

    def _next_arrival(self) -> None:
        def arrive() -> None:
            self.begin(self._drawn(self.open_streams[0]), NOTHING)
            self._next_arrival()

        self.clock.after(self.arrivals.draw(self.open_streams[1]), arrive)

    def _drawn(self, draws: Stream) -> int:
        """A query of the mix."""
        drawn = draws.uniform() * self.mix[-1]
        return next((q for q, share in enumerate(self.mix) if drawn < share), self.p.last_of_mix)

    def ask(self, client: int) -> None:
        """A closed client asks."""
        own = self.p.client_query[client]
        self.begin(self._drawn(self.streams[client][0]) if own == NOTHING else own, client)

    def begin(self, kind: int, client: int) -> None:
        """A query is asked: stages without input start (2)."""
        stages = range(*self.p.query_first[kind : kind + 2])
        inputs_left = {s: len(self.p.stages[s].inputs) for s in stages}
        query = Query(
            self.asked, kind, client, self.clock.now, self.parts.copy(), len(stages), inputs_left
        )
        self.asked += 1
        self.clock.log(ASKED, kind, client, query.number)
        for s in stages:
            if not self.p.stages[s].inputs:
                self.start(query, s)

    def _answer(self, query: Query) -> None:
        latency_ps = self.clock.now - query.asked_ps
        self.answered[query.kind] += 1
        self.latencies_ps[query.kind].append(latency_ps)
        self.clock.log(ANSWERED, query.kind, query.client, query.number, latency_ps)
        client = query.client
        if client == NOTHING:
            return
        if self.p.think_ps == 0:
            self.ask(client)
        else:
            pause_ps = self.think.draw(self.streams[client][1])
            self.clock.after(pause_ps, partial(self.ask, client))

    def start(self, query: Query, s: int) -> None:
        """Makes the tasks of a stage whose inputs have ended."""
        stage = self.p.stages[s]
        too_few = stage.parts_min > 1 and len(query.parts[stage.counted]) < stage.parts_min
        if stage.pipelined or too_few:
            query.made[s] = 0
            self._stage_ended(query, s)
            return
        hint = stage.concurrency or self.p.concurrency or max(self.workers.free, 1)
        entries = self._entries(query, stage)
        tasks: list[tuple[Part | None, int]] = []
        if stage.table == NOTHING:
            tasks += [(None, max(1, min(hint, floor(entries))))]
        else:
            rows = sum(part.rows for part in query.parts[stage.table])
            for each in query.parts[stage.table]:
                most = floor(entries * each.rows / rows)
                tasks += [(each, max(1, min(hint * each.rows // rows, most)))]
        self._expect(query, s, sum(count for _, count in tasks))
        index = 0
        for part, count in tasks:
            share = 1.0 if part is None else part.rows / rows
            for _ in range(count):
                node = self._node_of(query, stage, index, part)
                self._make(query, s, index, part, share / count, entries, node)
                index += 1

    def _expect(self, query: Query, s: int, tasks: int) -> None:
        """So many tasks of a stage, and of those that follow them one by one."""
        query.made[s] = query.tasks_left[s] = tasks
        query.ran[s] = [NOTHING] * tasks
        for t in self.p.stages[s].followers:
            if self.p.stages[t].pipelined:
                self._expect(query, t, tasks)

    def _entries(self, query: Query, stage: StageSetup) -> float:
        parts = [] if stage.table == NOTHING else query.parts[stage.table]
        entries = (
            stage.per_row * sum(part.rows for part in parts)
            + stage.per_part * len(parts)
            + stage.per_input_task * sum(query.made[s] for s in stage.inputs)
            + stage.constant
        )
        return min(entries, stage.most)

    def _node_of(self, query: Query, stage: StageSetup, index: int, part: Part | None) -> int:
        """In whose queue a task belongs, as if all nodes had workers."""
        if part is not None:
            if part.node >= 0:
                return part.node
        elif stage.inputs and query.ran[stage.inputs[0]]:
            ran = query.ran[stage.inputs[0]]
            return ran[index % len(ran)]
        return self.workers.in_turn(stage.task_class)

    def _make(
        self,
        query: Query,
        s: int,
        index: int,
        part: Part | None,
        fraction: float,
        entries: float,
        node: int,
    ) -> None:
        task_class = self.p.stages[s].task_class
        task = Task(
            number=self.tasks,
            query=query,
            stage=s,
            index=index,
            part=part,
            fraction=fraction,
            entries=max(1.0, entries * fraction),
            home=node if part is None else part.node,
            node=self.workers.stand_in[node],
        )
        self.tasks += 1
        counts = self.workers.classes[task_class]
        counts.made += 1
        if part is not None and part.blocked:
            counts.waiting += 1
            part.waiting.append(task)
            self.clock.log(MADE, task.number, s, part.number, NOTHING)
            return
        number = NOTHING if part is None else part.number
        self.clock.log(MADE, task.number, s, number, task.node)
        self.workers.queue_task(task)

    def task_ended(self, task: Task, node: int) -> None:
        """First what follows this task, then what follows its stage."""
        query, s = task.query, task.stage
        query.ran[s][task.index] = node
        for t in self.p.stages[s].followers:
            stage = self.p.stages[t]
            if stage.pipelined:
                entries = self._entries(query, stage)
                self._make(query, t, task.index, task.part, task.fraction, entries, node)
        query.tasks_left[s] -= 1
        if query.tasks_left[s] == 0:
            self._stage_ended(query, s)

    def _stage_ended(self, query: Query, s: int) -> None:
        query.stages_left -= 1
        if query.stages_left == 0:
            self._answer(query)
            return
        for t in self.p.stages[s].followers:
            query.inputs_left[t] -= 1
            left_out = self.p.stages[t].pipelined and query.made[s] == 0
            if query.inputs_left[t] == 0 and (left_out or not self.p.stages[t].pipelined):
                self.start(query, t)

    def set_parts(self, table: int, rows: list[int], nodes: list[int]) -> None:
        """The table is in these parts, for queries that are asked from now on."""
        self.parts[table] = [
            self.new_part(each, node) for each, node in zip(rows, nodes, strict=True)
        ]

    def block(self, table: int, p: int) -> None:
        """The part begins to move: its tasks that have not begun wait (8)."""
        part = self.parts[table][p]
        part.blocked = True
        part.waiting = self.workers.take_out(lambda task: task.part is part)
        for task in part.waiting:
            self.workers.classes[self.p.stages[task.stage].task_class].waiting += 1

    def place(self, table: int, p: int, node: int) -> None:
        """The part has arrived: its tasks are queued there."""
        part = self.parts[table][p]
        part.node, part.blocked = node, False
        waiting, part.waiting = part.waiting, []
        for task in waiting:
            counts = self.workers.classes[self.p.stages[task.stage].task_class]
            counts.waiting -= 1
            task.home, task.owner = node, NOTHING
            task.node = self.workers.stand_in[node]
            self.workers.queue_task(task)
