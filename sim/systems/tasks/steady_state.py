"""Rates of queries in steady state: clients, stages and queues as a closed network.

A stage puts m tasks at a node where Q other ones are. With E workers that may take them, its last
task ends after

    T = S + max(0, Q + m - E) S' / E

where S is how long a task of its own runs, and S' those that come to the queue on average. A query
takes the sum over its steps of the slowest node's T; closed clients then ask at X = N / (Z + T),
and Q follows by Little's law, less what the asking client has there (Bard and Schweitzer's
approximation of mean value analysis). How long tasks run depends on how many run and where
(``service_times.py``). Workers that would be idle take tasks of other nodes' queues, nearest first
and equally far ones in turn, where the class may be stolen; those of one client alone at once.

Queries of open clients come at random: what they wait for others is that of M/G/c
(``kernel/settled_queues.cpp``). Of up to three clients that do not think, tasks are played round
by round. Left out, and simulated by the event plane: that queries of several closed clients come at
random, too, that their tasks are whole, and that workers who are free are many at one time and few
at another.
"""

from copy import copy

import numpy as np

from ..._kernel import QueueSetup, SettledQueues, SettledService
from ...kernel.arrays import Floats
from ...kernel.sums import group_sums
from ...machine.costs import LINE_BYTES, CostModel
from .batches import batches_of
from .layout import PAGE_BYTES
from .parameters import CopiedKinds, background_lines, cores_of, near_nodes, spreads_of
from .program import Program
from .service_times import (
    KindLoop,
    Kinds,
    ServiceTimes,
    Sharing,
    lines_by_home,
    lines_by_place,
    loops_of,
)
from .steady_rates import Rates, State

OUTER_MAX, INNER_MAX = 200, 200
OUTER_TOLERANCE, INNER_TOLERANCE = 2e-6, 1e-6
DAMPING, PART_MIN = 0.5, 0.02
FEW_CLIENTS = 3
# What more clients leave free for each other evens out.
MEAN_FREE_MAX = 24
KEPT_UP = 0.999  # of what open clients ask for: who does less falls ever further behind


class SteadyState:
    """Finds the Rates of a Program on one machine."""

    def __init__(self, program: Program, costs: CostModel) -> None:
        self.program, self.costs = program, costs
        self.n = len(costs.machine.nodes)
        used = cores_of(costs.machine, program.scheduling).core_node
        self.times = ServiceTimes(costs, np.bincount(used, minlength=self.n), len(program.locks))
        self.nearest = near_nodes(costs)
        by = spreads_of(program, costs.machine)
        self.spreads = np.divide(1.0, by, out=np.zeros_like(by), where=by > 0)
        self.stages = [stage for query in program.queries for stage in query.stages]
        self.place_of = {id(stage): place for place, stage in enumerate(self.stages)}
        self.search: Search | None = None  # the last one

    def where(self, node: int | None, spread: int) -> Floats:
        """(n,) shares of what lies on a node, or on those of a spread in turn."""
        if node is None:
            return np.asarray(self.spreads[spread])
        found = np.zeros(self.n)
        found[node] = 1.0
        return found

    def solve(self, state: State, near: Rates | None = None) -> Rates:
        """The Rates of ``state``; looked for from those of a program and machine nearly alike,
        where the same kinds of tasks run.
        """
        search = self.search = Search(self, state)
        alike = near is not None and np.array_equal(near.node, search.kind_node)
        return search.run(near if alike else None)


class Search:
    """One search for the fixed point, over B batches and F kinds of running tasks."""

    def __init__(self, steady_state: SteadyState, state: State) -> None:
        self.of, self.state, self.program = steady_state, state, steady_state.program
        self.workers = np.array(state.workers, dtype=np.float64)
        self.able = np.flatnonzero(self.workers > 0).tolist()
        spread = None if state.spread is None else np.array(state.spread)
        self.spread = spread
        # (n,) that run on each node at most.
        self.room = self.workers if spread is None else spread * self.workers.sum()
        whole = float(self.workers.sum())
        self.others = max(whole - 1.0, 0.0)  # processors of the process besides a thread's own
        self.free = np.full(len(self.program.queries), whole)  # as a query of each kind finds them
        self.batches, self.blocked = batches_of(
            steady_state.program, dict(state.parts), self.able, self._queue, whole
        )
        self.query = np.array([b.query for b in self.batches], dtype=np.int64)
        self.home_queue = np.array([b.node for b in self.batches], dtype=np.int64)
        self.entries = np.array([b.entries for b in self.batches])
        self.share = np.array([b.share for b in self.batches])
        self.least = np.array([b.least for b in self.batches])
        self.most = np.maximum(self.entries, self.least)
        self.hint = np.array([np.nan if b.hint is None else b.hint for b in self.batches])
        classes = [b.stage.task_class for b in self.batches]
        self.stealable = np.array([name in state.stealable for name in classes], dtype=bool)
        place_of = steady_state.place_of
        self.place = np.array([place_of[id(b.stage)] for b in self.batches], dtype=np.int64)
        self._steps()
        self._clients()
        self._pairs()
        self._kinds()

    def on(self, program: Program, costs: CostModel) -> "Search":
        """The same where entries cost something else, and parts of the machine are faster."""
        found = copy(self)
        found.of, found.program = SteadyState(program, costs), program
        # Bytes, lines and instructions are the same on a machine whose parts are faster; but for
        # those of engines.
        if program is not self.program or self.kinds.copied is not None:
            found._kinds()
        return found

    def _queue(self, node: int) -> int:
        """Where tasks of that node wait: there, or at the nearest node with workers."""
        if self.workers[node] > 0:
            return node
        return next(k for k in self.of.nearest[node] if self.workers[k] > 0)

    def _steps(self) -> None:
        """Batches of one step of one query, together: (G,) first batches, sorted."""
        keys = np.array([(b.query, b.step) for b in self.batches], dtype=np.int64).reshape(-1, 2)
        groups, group = np.unique(keys, axis=0, return_inverse=True)
        self.group_query, self.group = groups[:, 0], group.ravel()

    def _clients(self) -> None:
        """(K,) closed clients that may ask for each query, and their share of its asking."""
        own = np.array(self.state.clients, dtype=np.float64)
        shares = np.array(self.state.shares, dtype=np.float64)
        self.mixed = (own == 0) & (np.array([q.clients for q in self.program.queries]) == 0)
        self.population = np.where(self.mixed, self.state.mix_clients, own)
        self.shares = np.where(self.mixed, shares, 1.0)

    def _pairs(self) -> None:
        """Each batch on its own node; where it may be stolen, on all others with workers too."""
        every = np.arange(len(self.batches))
        if self.spread is not None:
            nodes = np.flatnonzero(self.spread > 0)
            self.kind_batch = np.repeat(every, len(nodes))
            self.kind_node = np.tile(nodes, len(every))
            self.shares_of_kinds = self.spread[self.kind_node]
        else:
            thieves = np.array(self.able, dtype=np.int64)
            of, on = np.nonzero(self.stealable[:, None] & (thieves != self.home_queue[:, None]))
            self.kind_batch = np.concatenate([every, of])
            self.kind_node = np.concatenate([self.home_queue, thieves[on]])
        self.kind_stage = self.place[self.kind_batch]
        home = np.array([0 if b.home is None else b.home + 1 for b in self.batches], dtype=np.int64)
        self.path = np.zeros(len(self.batches), dtype=np.int64)  # positions in PATHS
        if self.state.paths and self.of.costs.machine.copy_engines:
            scans = np.array([b.stage.chunk_entries > 0 for b in self.batches])
            of_scans = np.array(self.state.paths)[self.place * (self.of.n + 1) + home]
            self.path = np.where(scans, of_scans, self.path)

    def _kinds(self) -> None:
        """What entries of each kind demand, and what goes on besides."""
        self.own_s = np.array([stage.task_s for stage in self.of.stages])[self.kind_stage]
        count, copies, n = len(self.kind_batch), self.state.copies, self.of.n
        background = self.program.background
        whole = count + len(copies) + len(background)
        read, written, instructions, separate, slots = (
            np.concatenate([each, np.zeros((whole - count, *each.shape[1:]))])
            for each in self._entry_demands()
        )
        slots[count:] = 1.0
        copied, by_engine = None, np.flatnonzero(self.path[self.kind_batch])
        if len(by_engine) or any(piece.kind == "copy-engine" for piece in background):
            copied = CopiedKinds.none(whole, self.of.costs)
        for f in by_engine.tolist():
            assert copied is not None
            b, node = int(self.kind_batch[f]), int(self.kind_node[f])
            batch, stage = self.batches[b], self.of.stages[self.kind_stage[f]]
            lines = sum(use.read for use in stage.cost.memory if use.place == "part")
            here = np.zeros(n)
            here[node] = lines
            lines_at = lines * self.of.where(batch.home, batch.spread)
            copied.add(f, node, lines_at, here, self.path[b] == 1, stage.chunk_entries)
        page_lines = PAGE_BYTES / LINE_BYTES
        nodes = []  # of what goes on besides
        for c, move in enumerate(copies):
            from_node = move.target if move.source is None else move.source
            nodes.append(from_node)
            read[count + c] += page_lines * self.of.where(move.source, move.spread)
            written[count + c, move.target] += page_lines
            instructions[count + c] = move.page_s
            slots[count + c] = max(float(self.of.costs.streaming_misses[from_node]), 1e-9)
        for f, piece in enumerate(background, count + len(copies)):
            nodes.append(piece.node)
            of_read, of_written = background_lines(piece, n)
            if piece.kind == "interconnect":
                read[f], written[f] = of_read, of_written
                slots[f] = max(float(self.of.costs.streaming_misses[piece.node]), 1e-9)
            elif copied is not None:
                copied.add(f, piece.node, of_read, of_written, coherent=True)
        self.endless = np.array([float(piece.workers) for piece in background])
        self.kinds = Kinds(
            np.concatenate([self.kind_node, np.array(nodes, dtype=np.int64)]),
            read,
            written,
            instructions,
            separate,
            slots,
            np.arange(whole) < count,
            copied,
            self._loops(whole - count),
            self._held(whole),
        )
        self.lines = np.add(*self.kinds.lines).sum(axis=1)

    def _loops(self, more: int) -> tuple[tuple[KindLoop, ...], ...]:
        """Of each kind, and of ``more`` that have none; empty where no stage has several loops."""
        stages, where = self.of.stages, self.of.where
        if not any(stage.cost.loops for stage in stages):
            return ()
        each = zip(self.kind_batch, self.kind_stage, self.kind_node.tolist(), strict=True)
        found = (loops_of(self.batches[b], stages[s], node, where) for b, s, node in each)
        return (*found, *[()] * more)

    def _held(self, kinds: int) -> Floats | None:
        """(F, locks) time that an entry of each kind holds each lock; None without locks."""
        locks = self.program.locks
        if not locks:
            return None
        found = np.zeros((kinds, len(locks)))
        for f, s in enumerate(self.kind_stage.tolist()):
            for lock in self.of.stages[s].locks:
                more_s = self.others * lock.interrupt_s
                found[f, locks.index(lock.name)] = lock.held_s + more_s
        return found

    def _entry_demands(self) -> tuple[Floats, ...]:
        """Of an entry of each kind: lines read and written (F, n), times of instructions and
        separate (F,), slots (F,); what is copied ahead lies with the thread.
        """
        of, batches, of_all = self.of, self.batches, (self.kind_stage, self.kind_node)
        costs = [stage.cost for stage in of.stages]
        # What interrupts take from the others comes back from theirs.
        interrupted_s = [2 * self.others * stage.interrupt_s for stage in of.stages]
        by_place = np.array([lines_by_place(cost.memory) for cost in costs])[self.kind_stage]
        own = np.eye(of.n)[self.kind_node]
        part = np.array([of.where(b.home, b.spread) for b in batches])[self.kind_batch]
        copied = self.path[self.kind_batch] > 0
        part[copied] = own[copied]
        lines = (lines_by_home(by_place[:, k], part, own, of.where(None, 0)) for k in range(2))
        return (
            *lines,
            np.array([cost.instructions_s for cost in costs])[of_all],
            np.array([cost.separate_s for cost in costs])[of_all]
            + np.array(interrupted_s)[self.kind_stage],
            np.maximum(np.array([cost.misses_at_once for cost in costs])[of_all], 1e-9),
        )

    def run(self, near: Rates | None) -> Rates:
        """All that goes on in the steady state."""
        sharing, count, running = self._settle(near)
        sharing.solve(count)
        served = sharing.served()
        kinds, copies = len(self.kind_batch), len(self.state.copies)
        entries = np.divide(count, served.entry_s, out=np.zeros_like(count), where=count > 0)
        waiting = group_sums(
            self.home_queue,
            np.maximum(self.queues.present - self._by_batch(running), 0.0),
            self.of.n,
        )
        response_s, fit = self.queues.response_s, self.queues.fit
        if self.program.arrivals_per_s:
            response_s = np.where(fit < KEPT_UP, np.inf, response_s)
        else:
            think_s = self.program.think_s
            response_s = (response_s + think_s) / fit - think_s
        return Rates(
            queries=self.queues.rates * fit,
            response_s=response_s,
            batches=self.batches,
            batch=self.kind_batch,
            node=self.kind_node,
            running=running,
            task_s=self.task_s,
            lines_per_s=(entries * self.lines)[:kinds],
            waiting=waiting,
            pages_per_s=entries[kinds : kinds + copies],
            blocked=self.blocked,
            served=served,
            moved=self.spread is not None,
            mean_free=self._mean_free(),
            queueing=self.queues.state,
        )

    def queries_per_s(self, near: Rates) -> float:
        """Of all kinds together, looked for from the rates of a search like it."""
        self._settle(near)
        return float((self.queues.rates * self.queues.fit).sum())

    def _settle(self, near: Rates | None) -> tuple[Sharing, Floats, Floats]:
        """Service times from what runs, and what runs from service times, until both agree: what
        kinds share, how many of each take part in it (F,), and how many tasks run (F,).

        Each step goes the part of the way that the last two aim at (Aitken's relaxation: Irons and
        Tuck, 1969): where all workers just get busy, a whole one overshoots by far.
        """
        kinds, copies = len(self.kind_batch), len(self.state.copies)
        enough = OUTER_TOLERANCE * self.workers.sum()
        count = np.concatenate([np.zeros(kinds), np.ones(copies), self.endless])
        running, last, part = np.zeros(kinds), np.zeros(kinds), 1.0
        if near is not None:
            running = count[:kinds] = near.running
            self.free = self._free(running)
        sharing = self.of.times.of(self.kinds)
        self.queues = self._settled_queues()
        if near is not None:
            self.queues.go_on(near.queueing)
        passing = np.ones(kinds)  # of a task's time, that in which entries pass
        for turn in range(OUTER_MAX):
            found = self._queues(sharing.solve(count))
            step = found - running
            if turn == 1:
                part = DAMPING
            elif turn:
                turned = step - last
                aimed = -part * float(last @ turned) / max(float(turned @ turned), 1e-300)
                # Steps that get longer are far from the end.
                part = min(max(aimed, PART_MIN) if aimed > 0 else 1.0, 2.0 * part, 1.0)
            running, last = running + part * step, step
            free, self.free = self.free, self._free(running)
            change = max(np.abs(step).max(initial=0.0), np.abs(self.free - free).max(initial=0.0))
            late = np.abs(self.passing - passing) > OUTER_TOLERANCE * self.passing
            count[:kinds], passing = running * self.passing, self.passing
            if turn and change <= enough and not late.any():
                break
        return sharing, count, running

    def _mean_free(self) -> bool:
        """Whether few clients have as many tasks as workers are free, and that matters."""
        clients = self.state.mix_clients + self.population[~self.mixed].sum()
        if self.program.arrivals_per_s or not 2.0 <= clients <= MEAN_FREE_MAX:
            return False
        tasks, able = self._tasks(), self.workers[self.home_queue]
        some = np.isnan(self.hint) & (tasks > 1.05 * self.least) & (tasks < 0.95 * able)
        return bool(some.any())

    def _by_batch(self, of_kinds: Floats) -> Floats:
        """(B,) sums of ``of_kinds`` (F,)."""
        return group_sums(self.kind_batch, of_kinds, len(self.batches))

    def _queues(self, times: SettledService) -> Floats:
        """(F,) tasks that run where an entry of each kind takes so long, once queues settle."""
        kinds = len(self.kind_batch)
        entry_s, copied = times.entry_s[:kinds], self.kinds.copied
        tasks = self._tasks()
        each = np.divide(self.entries, tasks)[self.kind_batch]
        self.task_s = entry_s * each + self.program.scheduling.task_s + self.own_s
        if copied is not None:
            by_engine = copied.engine[:kinds] >= 0
            least_s = np.minimum(times.copy_s, times.work_s)[:kinds]
            chunk = np.minimum(copied.chunk[:kinds], each)
            chunks = np.ceil(each / chunk - 1e-9)
            more_s = copied.setup_s[:kinds] + chunks * copied.request_s[:kinds]
            self.task_s = self.task_s + np.where(by_engine, more_s + least_s * chunk, 0.0)
        self.passing = entry_s * each / self.task_s
        local_s = self.task_s[: len(self.batches)]  # of each batch's tasks on its node
        if self.spread is not None:  # on average
            local_s = self._by_batch(self.shares_of_kinds * self.task_s)
        return np.asarray(self.queues.settle(tasks, local_s, self.task_s))

    def _free(self, running: Floats) -> Floats:
        """(K,) workers without a task as a stage of each query starts: a closed client's own tasks
        have ended by then.
        """
        own = group_sums(self.query[self.kind_batch], running, len(self.program.queries))
        own[self.mixed] = own[self.mixed].sum() / max(self.state.mix_clients, 1.0)
        own[~self.mixed] /= np.maximum(self.population[~self.mixed], 1.0)
        if self.program.arrivals_per_s:
            own[:] = 0.0
        return np.asarray(np.maximum(self.workers.sum() - running.sum() + own, 1.0))

    def _tasks(self) -> Floats:
        """(B,) tasks of each batch, as ``Batch.tasks``."""
        wanted = np.where(np.isnan(self.hint), self.free[self.query], self.hint) * self.share
        return np.asarray(np.minimum(np.maximum(wanted, self.least), self.most))

    def _played_clients(self) -> list[int]:
        """The query of each closed client, where they are few, go on at once, and have steps of a
        known number of tasks that nobody steals; else none."""
        program, of_mix = self.program, self.state.mix_clients * self.shares
        asks = np.where(self.mixed, of_mix, self.population)
        asks[list(self.blocked)] = 0.0
        drawn = ((asks > 0) & (self.shares < 1.0)).any() or (asks % 1.0).any()
        by_chance = program.arrivals_per_s or program.think_s or drawn or np.isnan(self.hint).any()
        stolen = self.spread is None and self.stealable.any()
        if by_chance or stolen or not 1.0 < asks.sum() <= FEW_CLIENTS:
            return []
        there = np.isin(np.arange(len(asks)), self.group_query)
        return [int(k) for k in np.repeat(np.arange(len(asks)), (asks * there).astype(np.int64))]

    def _settled_queues(self) -> SettledQueues:
        """What finds the queues at given service times."""
        program, queries = self.program, len(self.program.queries)
        return SettledQueues(
            QueueSetup(
                query=self.query,
                home=self.home_queue,
                group=self.group,
                stealable=self.stealable.astype(np.int64),
                group_query=self.group_query,
                kind_batch=self.kind_batch,
                kind_node=self.kind_node,
                kind_share=[] if self.spread is None else self.shares_of_kinds,
                workers=self.workers,
                room=self.room,
                able=self.able,
                nearest=np.array(self.of.nearest),
                distance=self.of.costs.idle_s,
                population=self.population,
                mixed=self.mixed.astype(np.int64),
                shares=self.shares,
                blocked=[int(k in self.blocked) for k in range(queries)],
                few=self._played_clients(),
                mix_clients=self.state.mix_clients,
                think_s=program.think_s,
                arrivals_per_s=program.arrivals_per_s or 0.0,
                damping=DAMPING,
                tolerance=INNER_TOLERANCE,
                rounds_max=INNER_MAX,
            )
        )
