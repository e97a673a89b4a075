"""Rates of queries in steady state: clients, stages and queues as a closed network.

A stage puts m tasks at a node where Q other ones are. With E workers that may take them, its last
task ends after

    T = S + max(0, Q + m - E) S' / E

where S is how long a task of its own runs, and S' those that come to the queue on average. A query
takes the sum over its steps of the slowest node's T; closed clients then ask at X = N / (Z + T),
and Q follows by Little's law, less what the asking client has there (Bard and Schweitzer's
approximation of mean value analysis). How long tasks run depends on how many run and where
(``service_times.py``). Workers that would be idle take tasks of other nodes' queues, nearest first,
where the class may be stolen.

Left out, and played by the event plane: that tasks come at random, and that they are whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...kernel.sums import group_sums
from ...machine.costs import LINE_BYTES, CostModel
from .batches import Batch, batches_of
from .layout import PAGE_BYTES, Copy, PartState
from .program import Program
from .service_times import Kinds, Served, ServiceTimes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

OUTER_MAX, INNER_MAX = 60, 200
OUTER_TOLERANCE, INNER_TOLERANCE = 1e-5, 1e-6
DAMPING = 0.5


@dataclass(frozen=True)
class State:
    """What rates depend on. ``parts`` of tables, by name. ``clients`` (K,) of each query;
    ``mix_clients`` who are not stuck, and ``shares`` (K,) of the mix. ``stealable``: classes.
    ``workers`` (n,): how many may run on each node. ``copies``: under way.
    """

    parts: tuple[tuple[str, tuple[PartState, ...]], ...]
    clients: tuple[float, ...]
    mix_clients: float
    shares: tuple[float, ...]
    stealable: frozenset[str]
    workers: tuple[int, ...]
    copies: tuple[Copy, ...] = ()


@dataclass(frozen=True)
class Rates:
    """What goes on in a state.

    ``queries`` (K,): per second; ``response_s`` (K,): of one. Tasks that run, by kind: ``batch``
    (F,) they belong to, ``node`` (F,) of their worker, ``running`` (F,) how many, ``task_s`` (F,)
    how long one takes, ``lines_per_s`` (F,) that all of them read and write. ``waiting`` (n,):
    tasks in queues. ``pages_per_s`` of each copy. ``blocked``: queries that wait for a moved part.
    """

    queries: Floats
    response_s: Floats
    batches: tuple[Batch, ...]
    batch: Ints
    node: Ints
    running: Floats
    task_s: Floats
    lines_per_s: Floats
    waiting: Floats
    pages_per_s: Floats
    blocked: frozenset[int]
    served: Served

    @property
    def stolen(self) -> Flags:
        """(F,) whether kinds run on another node than they waited at."""
        home = np.array([batch.node for batch in self.batches], dtype=np.int64)
        return np.asarray(home[self.batch] != self.node)


class SteadyState:
    """Finds the Rates of a Program on one machine."""

    def __init__(self, program: Program, costs: CostModel) -> None:
        self.program, self.costs = program, costs
        self.n = len(costs.machine.nodes)
        self.times = ServiceTimes(costs)
        latency_s = costs.idle_s
        self.nearest = [
            sorted(range(self.n), key=lambda k, row=latency_s[node]: (row[k], k))  # type: ignore[misc]
            for node in range(self.n)
        ]
        memory = np.array([float(node.memory_bytes != 0) for node in costs.machine.nodes])
        self.spread = memory / max(memory.sum(), 1.0)

    def solve(self, state: State) -> Rates:
        """The Rates of ``state``."""
        return _Search(self, state).run()


class _Search:
    """One search for the fixed point, over B batches and F kinds of running tasks."""

    def __init__(self, of: SteadyState, state: State) -> None:
        self.of, self.state, self.program = of, state, of.program
        self.workers = np.array(state.workers, dtype=np.float64)
        self.able = np.flatnonzero(self.workers > 0).tolist()
        self.free = float(self.workers.sum())
        self.batches, self.blocked = batches_of(
            of.program, dict(state.parts), self.able, self._queue, self.free
        )
        self.query = np.array([b.query for b in self.batches], dtype=np.int64)
        self.home_queue = np.array([b.node for b in self.batches], dtype=np.int64)
        self.entries = np.array([b.entries for b in self.batches])
        self.share = np.array([b.share for b in self.batches])
        self.least = np.array([b.least for b in self.batches])
        self.most = np.maximum(self.entries, self.least)
        self.hint = np.array([np.nan if b.hint is None else b.hint for b in self.batches])
        self.stealable = np.array([b.stage.task_class in state.stealable for b in self.batches])
        self._steps()
        self._clients()
        self._kinds()

    def _queue(self, node: int) -> int:
        """Where tasks of that node wait: there, or at the nearest node with workers."""
        return next(k for k in self.of.nearest[node] if self.workers[k] > 0)

    def _steps(self) -> None:
        """Batches of one step of one query, together: (G,) first batches, sorted."""
        keys = [(b.query, b.step) for b in self.batches]
        self.groups = sorted(set(keys))
        position = {key: g for g, key in enumerate(self.groups)}
        self.group = np.array([position[key] for key in keys], dtype=np.int64)
        self.group_query = np.array([query for query, _ in self.groups], dtype=np.int64)

    def _clients(self) -> None:
        """(K,) closed clients that may ask for each query, and their share of its asking."""
        own = np.array(self.state.clients, dtype=np.float64)
        shares = np.array(self.state.shares, dtype=np.float64)
        self.mixed = (own == 0) & (np.array([q.clients for q in self.program.queries]) == 0)
        self.population = np.where(self.mixed, self.state.mix_clients, own)
        self.shares = np.where(self.mixed, shares, 1.0)

    def _kinds(self) -> None:
        """Each batch on its own node; where it may be stolen, on all others with workers too."""
        pairs = [(b, batch.node) for b, batch in enumerate(self.batches)]
        pairs += [
            (b, node)
            for b, batch in enumerate(self.batches)
            if self.stealable[b]
            for node in self.able
            if node != batch.node
        ]
        self.kind_batch = np.array([b for b, _ in pairs], dtype=np.int64)
        self.kind_node = np.array([node for _, node in pairs], dtype=np.int64)
        count, copies, n = len(pairs), self.state.copies, self.of.n
        read, written = np.zeros((count + len(copies), n)), np.zeros((count + len(copies), n))
        instructions, separate = np.zeros(count + len(copies)), np.zeros(count + len(copies))
        slots = np.ones(count + len(copies))
        for f, (b, node) in enumerate(pairs):
            batch = self.batches[b]
            cost = batch.stage.cost
            instructions[f] = cost.instructions_s[node]
            separate[f] = cost.separate_s[node]
            slots[f] = max(float(cost.misses_at_once[node]), 1e-9)
            for use in cost.memory:
                if use.place == "local":
                    read[f, node] += use.read
                    written[f, node] += use.written
                else:
                    of_part = batch.home if use.place == "part" else None
                    where = self._where(of_part)
                    read[f] += use.read * where
                    written[f] += use.written * where
        page_lines = PAGE_BYTES / LINE_BYTES
        nodes = list(self.kind_node)
        for c, copy in enumerate(copies):
            at = copy.target if copy.source is None else copy.source
            nodes.append(at)
            read[count + c] += page_lines * self._where(copy.source)
            written[count + c, copy.target] += page_lines
            instructions[count + c] = copy.page_s
            slots[count + c] = max(float(self.of.costs.streaming_misses[at]), 1e-9)
        self.kinds = Kinds(
            np.array(nodes, dtype=np.int64),
            read,
            written,
            instructions,
            separate,
            slots,
            np.arange(count + len(copies)) < count,
        )
        self.lines = (read + written).sum(axis=1)

    def _where(self, node: int | None) -> Floats:
        """(n,) shares of what lies on a node, or on all with memory in turn."""
        if node is None:
            return np.asarray(self.of.spread)
        found = np.zeros(self.of.n)
        found[node] = 1.0
        return found

    # -- the fixed point --------------------------------------------------------------------------

    def run(self) -> Rates:
        """Service times from what runs, and what runs from service times, until both agree."""
        kinds, copies = len(self.kind_batch), len(self.state.copies)
        count = np.concatenate([np.zeros(kinds), np.ones(copies)])
        served = self.of.times.solve(self.kinds, count)
        queries = len(self.program.queries)
        self.rates, self.present = np.zeros(queries), np.zeros(len(self.batches))
        self.thieves = np.zeros((self.of.n, self.of.n))
        running, self.fit = np.zeros(kinds), np.ones(queries)
        for turn in range(OUTER_MAX):
            found = self._queues(served.entry_s[:kinds])
            step = found - running
            running = running + (1.0 if turn == 0 else DAMPING) * step
            free = max(float(self.workers.sum() - running.sum()), 1.0)
            change = max(np.abs(step).max(initial=0.0), abs(free - self.free))
            self.free += DAMPING * (free - self.free)
            count[:kinds] = running
            served = self.of.times.solve(self.kinds, count, served.wait_s)
            if turn and change <= OUTER_TOLERANCE * self.workers.sum():
                break
        entries = np.divide(count, served.entry_s, out=np.zeros_like(count), where=count > 0)
        waiting = group_sums(
            self.home_queue,
            np.maximum(self.present - self._by_batch(running), 0.0),
            self.of.n,
        )
        response_s = self.response_s
        if not self.program.arrivals_per_s:
            think_s = self.program.think_s
            response_s = (response_s + think_s) / self.fit - think_s
        return Rates(
            queries=self.rates * self.fit,
            response_s=response_s,
            batches=self.batches,
            batch=self.kind_batch,
            node=self.kind_node,
            running=running,
            task_s=self.task_s,
            lines_per_s=(entries * self.lines)[:kinds],
            waiting=waiting,
            pages_per_s=entries[kinds:],
            blocked=self.blocked,
            served=served,
        )

    def _by_batch(self, of_kinds: Floats) -> Floats:
        """(B,) sums of ``of_kinds`` (F,)."""
        return group_sums(self.kind_batch, of_kinds, len(self.batches))

    def _queues(self, entry_s: Floats) -> Floats:
        """(F,) tasks that run where an entry of each kind takes so long, once queues settle."""
        program, batches = self.program, len(self.batches)
        for _ in range(INNER_MAX):
            tasks = self._tasks()
            per_task = np.divide(self.entries, tasks)
            self.task_s = entry_s * per_task[self.kind_batch] + program.scheduling.task_s
            local_s = self.task_s[:batches]
            asked = self.rates[self.query] * tasks  # tasks per second
            # -- who else is there
            by_query = np.zeros((len(self.rates), self.of.n))
            np.add.at(by_query, (self.query, self.home_queue), self.present)
            together = by_query.sum(axis=0)
            own = self._own(by_query)
            seen = together[self.home_queue] - own[self.query, self.home_queue]
            arriving = group_sums(self.home_queue, asked, self.of.n)
            mean_s = np.divide(
                group_sums(self.home_queue, asked * local_s, self.of.n),
                arriving,
                out=np.zeros(self.of.n),
                where=arriving > 0,
            )[self.home_queue]
            mean_s = np.where(mean_s > 0, mean_s, local_s)
            # -- who takes it
            own_workers = self.workers[self.home_queue]
            able, remote = self._able(tasks, seen, local_s)
            ahead = np.maximum(seen + tasks - able, 0.0)
            last_s = local_s + ahead * mean_s / able
            behind = np.where(
                ahead <= tasks, ahead * (ahead + 1.0) / (2.0 * tasks), ahead - (tasks - 1.0) / 2.0
            )
            mean_residence_s = local_s + behind * mean_s / able
            response = np.zeros(len(self.groups))
            np.maximum.at(response, self.group, last_s)
            self.response_s = group_sums(self.group_query, response, len(self.rates))
            wanted = self._asked()
            # -- on to the next round
            change = np.abs(wanted - self.rates).max(initial=0.0)
            self.rates = wanted
            found = self.rates[self.query] * tasks * mean_residence_s
            self.present = self.present + DAMPING * (found - self.present)
            away = np.where(
                seen + tasks > own_workers,
                (1.0 - own_workers / able) * np.minimum((seen + tasks - own_workers) / tasks, 1.0),
                0.0,
            )
            running = self._running(asked, away, remote)
            if change <= INNER_TOLERANCE * max(float(wanted.max(initial=0.0)), 1e-300):
                break
        return running

    def _tasks(self) -> Floats:
        """(B,) tasks of each batch, as ``Batch.tasks``."""
        wanted = np.where(np.isnan(self.hint), self.free, self.hint) * self.share
        return np.asarray(np.minimum(np.maximum(wanted, self.least), self.most))

    def _own(self, by_query: Floats) -> Floats:
        """(K, n) of what is in each queue, that of one client who asks for a query."""
        own = by_query / np.maximum(self.population, 1.0)[:, None]
        if self.mixed.any():
            own[self.mixed] = by_query[self.mixed].sum(axis=0) / max(self.state.mix_clients, 1.0)
        if self.program.arrivals_per_s:
            own[:] = 0.0
        return own

    def _asked(self) -> Floats:
        """(K,) queries per second that clients ask for at the present response times."""
        program = self.program
        if program.arrivals_per_s:
            wanted = program.arrivals_per_s * self.shares
        else:
            with np.errstate(divide="ignore"):
                wanted = self.population / (program.think_s + self.response_s)
            wanted = np.where(self.population > 0, wanted, 0.0)
            if self.mixed.any():
                mean_s = float((self.shares * self.response_s)[self.mixed].sum())
                rate = self.state.mix_clients / max(program.think_s + mean_s, 1e-300)
                wanted = np.where(self.mixed, rate * self.shares, wanted)
        for query in self.blocked:
            wanted[query] = 0.0
        return np.asarray(wanted)

    def _able(self, tasks: Floats, seen: Floats, local_s: Floats) -> tuple[Floats, Floats]:
        """(B,) workers that may take a batch's tasks, in workers of its own node; (n, n) workers of
        each node (rows) that take tasks of each other one's queue.
        """
        n, workers = self.of.n, self.workers
        own = workers[self.home_queue]
        if not self.stealable.any():
            return own, self.thieves
        local = self.rates[self.query] * tasks * local_s
        busy = group_sums(self.home_queue, local, n)
        idle = np.maximum(workers - busy, 0.0)
        excess = np.zeros(n)
        np.maximum.at(
            excess, self.home_queue, np.where(self.stealable, np.maximum(seen + tasks - own, 0), 0)
        )
        taken = np.zeros((n, n))
        for thief in self.able:
            for victim in self.of.nearest[thief]:
                if victim != thief and excess[victim] > 0 and idle[thief] > 0:
                    some = min(idle[thief], excess[victim])
                    taken[thief, victim] = some
                    idle[thief] -= some
                    excess[victim] -= some
        self.thieves = self.thieves + DAMPING * (taken - self.thieves)
        able = own.copy()
        remote = self.kind_node != self.home_queue[self.kind_batch]
        f = np.flatnonzero(remote)
        b = self.kind_batch[f]
        worth = self.thieves[self.kind_node[f], self.home_queue[b]]
        worth = worth * local_s[b] / self.task_s[f]
        np.add.at(able, b, worth)
        return able, self.thieves

    def _running(self, asked: Floats, away: Floats, thieves: Floats) -> Floats:
        """(F,) tasks that run: by Little's law, and no more on a node than it has workers."""
        b, batches = self.kind_batch, len(self.batches)
        running = asked[b] * self.task_s
        running[:batches] *= 1.0 - away
        f = np.arange(batches, len(b))
        if len(f):
            worth = thieves[self.kind_node[f], self.home_queue[b[f]]] / self.task_s[f]
            whole = group_sums(b[f], worth, batches)
            share = np.divide(worth, whole[b[f]], out=np.zeros(len(f)), where=whole[b[f]] > 0)
            running[f] *= away[b[f]] * share
        on = group_sums(self.kind_node, running, self.of.n)
        fit = np.divide(self.workers, on, out=np.full(self.of.n, np.inf), where=on > 0)
        # The approximation may ask for a little more than all workers do; what open clients ask for
        # beyond that waits for ever longer.
        self.fit = np.ones(len(self.rates))
        np.minimum.at(self.fit, self.query[b], np.where(running > 0, fit[self.kind_node], 1.0))
        if self.mixed.any():
            self.fit[self.mixed] = self.fit[self.mixed].min()
        return np.asarray(running * np.minimum(fit, 1.0)[self.kind_node])
