"""Queues and workers: who runs which task, and where (rules 4 to 7 of the README)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...._kernel import LoopSetup, TaskSetup
from ....machine.costs import LINE_BYTES
from ....machine.reference.service_machine import Loop, MemoryUse, PieceDemand
from ..history import BEGAN, ENDED, WOKEN
from ..parameters import INTERLEAVED, NOTHING, PLACES, homes
from .clock import Clock
from .engine_scans import EngineScans
from .tasks import ClassCounts, Task, Use

AVERAGE_WEIGHT = 0.125


@dataclass(eq=False)
class Worker:
    """A thread of a node's pool, on a core of node ``here``. Without a task it is idle, is being
    woken, or is not in use. ``left``: entries of its task that were left when it last went on.

    Where the operating system moves it: the processor that it runs on (``cpu``) and ran on, whether
    it is ``asleep``; ``since`` when it has run, and ``ran_ps`` before; what it reads again to warm
    its cache (``warms``), so many units; ``turn``: of its timers only the latest counts.
    """

    number: int
    node: int
    core: int
    here: int
    task: Task | None = None
    idle: bool = False
    idle_since: int = 0
    waking: bool = False
    in_use: bool = True
    left: float = 0.0
    since: int = 0
    ran_ps: int = 0
    cpu: int = NOTHING
    ran_on: int = NOTHING
    asleep: bool = False
    looks_since: int = 0
    warms: list[MemoryUse] | None = None
    warm_units: float = 0.0
    turn: int = 0


class Workers:
    """All workers and queues. ``follow``: what a task that has ended brings about."""

    def __init__(self, p: TaskSetup, clock: Clock, follow: Callable[[Task, int], None]) -> None:
        self.p, self.clock, self.follow = p, clock, follow
        self.nodes = n = len(p.copy_core)
        self.near = [p.near[k * n : k * n + n] for k in range(n)]
        self.workers = [
            Worker(number, node, core, p.machine.core_node[core])
            for number, (node, core) in enumerate(zip(p.worker_node, p.worker_core, strict=True))
        ]
        self.queue: list[list[Task]] = [[] for _ in range(n)]
        self.idle: list[list[Worker]] = [[] for _ in range(n)]  # the last one: latest
        self.may_steal, self.within_node = [False] * p.classes, True
        self.classes = [ClassCounts() for _ in range(p.classes)]
        self.node_use = [Use() for _ in range(n)]
        self.traffic = [[0.0] * n for _ in range(n)]
        self.looked_ps = [0] * n
        self.running = 0
        self.dealt = [0] * n
        self.turn = [0] * p.classes
        self.victims = [list(near) for near in self.near]  # in the order of their turns
        self.stand_in: list[int] = []
        self.with_workers: list[int] = []
        self.processors = len(p.os.core) or len(self.workers)  # that threads may run on
        self._find_stand_ins()
        self._begin()
        self.scans = EngineScans(p, clock, self.ended, self.looked_ps, self.traffic)

    def _begin(self) -> None:
        for worker in self.workers:
            self._rest(worker)

    @property
    def free(self) -> int:
        """Workers in use that have no task."""
        return sum(worker.in_use and worker.task is None for worker in self.workers)

    def in_turn(self, task_class: int) -> int:
        """The next node with workers, for a task of that class that could be on any."""
        self.turn[task_class] += 1
        return self.with_workers[(self.turn[task_class] - 1) % len(self.with_workers)]

    def queue_task(self, task: Task) -> None:
        """An idle worker takes it; else it waits at its node (4)."""
        node, task_class = task.node, self.classes[self.p.stages[task.stage].task_class]
        taker = owner = None
        if self.p.queue_per_worker:
            own = [worker for worker in self.workers if worker.node == node and worker.in_use]
            owner = own[self.dealt[node] % len(own)]
            self.dealt[node] += 1
            task.owner = owner.number
            taker = owner if self._looks(owner) else None
        if taker is None and self.within_node:
            taker = self._looking(node)
        if taker is None and self._may_be_stolen(task):
            others = (self._looking(other) for other in self.near[node][1:])
            taker = next((worker for worker in others if worker is not None), None)
        task_class.waiting += 1
        if taker is not None:
            self._start(self._leave_idle(taker), task)
            return
        self.queue[node].append(task)
        sleepers = [self._sleeper(node) if self.within_node else owner]
        if self._may_be_stolen(task):
            sleepers += [self._sleeper(other) for other in self.near[node][1:]]
        for sleeper in sleepers:
            if sleeper is not None and self._sleeps(sleeper):
                self._wake(sleeper)
                return

    def take_out(self, wanted: Callable[[Task], bool]) -> list[Task]:
        """Waiting tasks leave their queues, in the order of nodes and as they came."""
        out = [task for queue in self.queue for task in queue if wanted(task)]
        for node, queue in enumerate(self.queue):
            self.queue[node] = [task for task in queue if not wanted(task)]
        for task in out:
            self.classes[self.p.stages[task.stage].task_class].waiting -= 1
        return out

    def _looks(self, worker: Worker) -> bool:
        return worker.idle and self.clock.now - worker.idle_since < self.p.look_ps

    def _looking(self, node: int) -> Worker | None:
        """The worker that became idle last, where it still looks for work."""
        last = self.idle[node][-1] if self.idle[node] else None
        return last if last is not None and self._looks(last) else None

    def _sleeper(self, node: int) -> Worker | None:
        """The worker that fell asleep last; nobody looks."""
        return self.idle[node][-1] if self.idle[node] else None

    def _sleeps(self, worker: Worker) -> bool:
        return worker.idle

    def _rest(self, worker: Worker) -> None:
        worker.idle, worker.idle_since = True, self.clock.now
        self.idle[worker.node].append(worker)

    def _leave_idle(self, worker: Worker) -> Worker:
        self.looked_ps[worker.node] += min(self.clock.now - worker.idle_since, self.p.look_ps)
        self.idle[worker.node].remove(worker)
        worker.idle = False
        return worker

    def looked_up_to_now(self) -> list[int]:
        """By node: time of idle workers that looked for work."""
        looked_ps = self.looked_ps.copy()
        for worker in self.workers:
            if worker.idle:
                looked_ps[worker.node] += min(self.clock.now - worker.idle_since, self.p.look_ps)
        return looked_ps

    def _wake(self, worker: Worker) -> None:
        self._leave_idle(worker)
        worker.waking = True
        self.clock.after(self.p.wake_ps, lambda: self._is_up(worker))

    def _is_up(self, worker: Worker) -> None:
        worker.waking = False
        self.clock.log(WOKEN, worker.number)
        self.take(worker)

    def take(self, worker: Worker) -> None:
        """The oldest task of its own node; else one of another node; else it is idle (5)."""
        if not worker.in_use:
            return
        task = self._found(worker)
        if task is None:
            self._rest(worker)
        else:
            self._start(worker, task)

    def _found(self, worker: Worker) -> Task | None:
        """Dealt to it, of its node, of another node; it leaves the queue."""
        queue = self.queue[worker.node]
        task = next((task for task in queue if task.owner == worker.number), None)
        if task is None and self.within_node:
            task = next(iter(queue), None)
        for node in self.victims[worker.node][1:]:
            if task is None:
                stealable = (task for task in self.queue[node] if self._may_be_stolen(task))
                task = next(stealable, None)
        if task is not None:
            self.queue[task.node].remove(task)
        return task

    def _may_be_stolen(self, task: Task) -> bool:
        return self.may_steal[self.p.stages[task.stage].task_class]

    def _start(self, worker: Worker, task: Task) -> None:
        """It runs as one piece (6)."""
        stolen = worker.node != task.node
        task_class = self.classes[self.p.stages[task.stage].task_class]
        task_class.waiting -= 1
        task_class.running += 1
        task_class.stolen += stolen
        if stolen:
            self._rotate_victims(task.node, worker.node)
        self.running += 1
        worker.task, task.owner, task.touched = task, NOTHING, worker.here
        worker.left, worker.since, worker.ran_ps = task.entries, self.clock.now, 0
        task.bytes_per_ps = max(task_class.bytes_per_ps, 0.0)
        self._count_use(worker, task, 1)
        self.clock.log(BEGAN, task.number, worker.number, task.node, int(stolen))
        task.copied = self.scans.takes(task, worker.here)
        if task.copied:
            self.scans.begin(worker, task, self.lines(task, copied=True))
            return
        demand = self._demand(task, worker.here)
        self.clock.start(worker.core, demand, task.entries, worker.number)

    def _rotate_victims(self, victim: int, thief: int) -> None:
        """Moves the victim behind the other nodes at the same distance."""
        order, row = self.victims[thief], thief * self.nodes
        latency_ps = self.p.machine.latency_ps[row : row + self.nodes]
        position = order.index(victim)
        while position + 1 < len(order) and latency_ps[order[position + 1]] == latency_ps[victim]:
            order[position], order[position + 1] = order[position + 1], order[position]
            position += 1

    def _count_use(self, worker: Worker, task: Task, threads: int) -> None:
        """Of its part and node, where it was not stolen (7), or runs where its part lies (9)."""
        by_home = self.p.one_queue or bool(self.p.os.core)
        if worker.here == task.home if by_home else worker.node == task.node:
            now, each = self.clock.now, threads * task.bytes_per_ps
            self.node_use[worker.here].change(now, threads, each)
            if task.part is not None:
                task.part.use.change(now, threads, each)

    def lines(self, task: Task, copied: bool = False) -> dict[int, tuple[float, float]]:
        """Lines per entry that it reads and writes, by home; ``copied``: the part lies in the
        buffers of its thread."""
        stage = self.p.stages[task.stage]
        return self._by_home(stage.place, stage.read, stage.written, task, copied)

    def _by_home(
        self,
        place: Sequence[int],
        read: Sequence[float],
        written: Sequence[float],
        task: Task,
        copied: bool = False,
    ) -> dict[int, tuple[float, float]]:
        found: dict[int, tuple[float, float]] = {}
        part = task.touched if copied else task.home
        for at, *lines in zip(place, read, written, strict=True):
            home = {"part": part, "local": task.touched}.get(PLACES[at], INTERLEAVED)
            for node, divisor in homes(self.p, home):
                before = found.get(node, (0.0, 0.0))
                found[node] = (before[0] + lines[0] / divisor, before[1] + lines[1] / divisor)
        return {home: found[home] for home in sorted(found) if any(found[home])}

    def _demand(self, task: Task, node: int) -> PieceDemand:
        """Of an entry; the time of the task itself is spread over its entries. What interrupts
        take from all other processors, it takes itself: as much comes back from theirs (6)."""
        stage, lines = self.p.stages[task.stage], self.lines(task)
        separate_ps = stage.separate_ps[node] + (self.p.task_ps + stage.task_ps) / task.entries
        others, held = float(min(self.processors, len(self.workers)) - 1), []
        for lock, held_ps, each_ps in zip(
            stage.locks, stage.held_ps, stage.interrupt_ps, strict=True
        ):
            more_ps = others * each_ps
            separate_ps += 2 * more_ps
            held.append((lock, held_ps + more_ps))
        return PieceDemand(
            instructions_ps=stage.instructions_ps[node],
            separate_ps=separate_ps,
            memory=_memory(lines, stage.slots[node]),
            loops=tuple(self._loop(loop, task, node) for loop in stage.loops),
            held=tuple(held),
        )

    def _loop(self, loop: LoopSetup, task: Task, node: int) -> Loop:
        lines = self._by_home(loop.place, loop.read, [0.0] * len(loop.read), task)
        return Loop(loop.instructions_ps[node], _memory(lines, loop.slots[node]))

    def ended(self, number: int) -> None:
        """The worker's task has ended (7); what follows from it comes first, then it takes one."""
        worker = self.workers[number]
        task, worker.task = worker.task, None
        assert task is not None
        stage = self.p.stages[task.stage]
        task_class = self.classes[stage.task_class]
        task_class.running -= 1
        task_class.done += 1
        self.running -= 1
        self._count_use(worker, task, -1)
        self._count_traffic(worker, task, worker.left)
        took_ps = max(self.clock.now - worker.since + worker.ran_ps, 1)
        moved = task.entries * stage.lines * LINE_BYTES / took_ps
        if task_class.bytes_per_ps < 0.0:
            task_class.bytes_per_ps = moved
        else:
            task_class.bytes_per_ps += AVERAGE_WEIGHT * (moved - task_class.bytes_per_ps)
        self.clock.log(ENDED, task.number, number, stage.task_class)
        self.follow(task, worker.here)
        self.take(worker)

    def _count_traffic(self, worker: Worker, task: Task, entries: float) -> None:
        for home, (read, written) in self.lines(task, task.copied).items():
            self.traffic[worker.here][home] += (read + written) * entries * LINE_BYTES

    def allow(self, may_steal: list[bool], within_node: bool) -> None:
        """Tasks of these classes may be stolen from now on, and (within a node) those that were
        dealt to others be taken; idle workers that look try again."""
        self.may_steal = list(may_steal)
        self.within_node = within_node or not self.p.queue_per_worker
        for node in range(self.nodes):
            while (worker := self._looking(node)) is not None:
                task = self._found(worker)
                if task is None:
                    break
                self._start(self._leave_idle(worker), task)

    def use(self, in_use: Sequence[bool]) -> None:
        """Only these workers take tasks from now on; at least one."""
        self.processors, back = sum(in_use), []
        for worker, wanted in zip(self.workers, in_use, strict=True):
            if worker.in_use and not wanted and worker.idle:
                self._leave_idle(worker)
            if not worker.in_use and wanted and worker.task is None and not worker.waking:
                back.append(worker)
            worker.in_use = wanted
        self._find_stand_ins()
        for task in self.take_out(self._is_homeless):
            task.node, task.owner = self.stand_in[task.node], NOTHING
            self.queue_task(task)
        for worker in back:
            self.take(worker)

    def _is_homeless(self, task: Task) -> bool:
        """No worker in use has it in its queue."""
        if task.owner != NOTHING and not self.workers[task.owner].in_use:
            return True
        return self.stand_in[task.node] != task.node

    def _find_stand_ins(self) -> None:
        """Of each node the nearest one with workers in use."""
        has = {worker.node for worker in self.workers if worker.in_use}
        self.with_workers = sorted(has)
        self.stand_in = [next(k for k in near if k in has) for near in self.near]


def _memory(lines: dict[int, tuple[float, float]], slots: float) -> tuple[MemoryUse, ...]:
    return tuple(MemoryUse(home, *each, slots) for home, each in lines.items())
