"""Workers that the operating system moves (rule 9 of the README)."""

from collections.abc import Callable, Sequence

from ...._kernel import TaskSetup
from ....machine.costs import LINE_BYTES
from ....machine.reference.os_scheduler import OsScheduler
from ....machine.reference.service_machine import MemoryUse, PieceDemand
from ..history import ON
from ..parameters import NEVER_PS, NOTHING
from .clock import Clock
from .tasks import Task
from .workers import Worker, Workers


class MovedWorkers(Workers):
    """Workers whose ``cpu`` follows ``os``; ``settle`` is due after all that may change it."""

    def __init__(self, p: TaskSetup, clock: Clock, follow: Callable[[Task, int], None]) -> None:
        self.os = OsScheduler(p.os)
        self.ran_last = [NOTHING] * len(p.os.core)
        self.left_at = [-1] * len(p.os.core)
        self.waker = NOTHING
        self.ticks = False
        clock.settle = self.settle
        super().__init__(p, clock, follow)

    def settle(self) -> None:
        """First threads leave their processors, then others come."""
        while changed := self.os.changed():
            for number in changed:
                worker = self.workers[number]
                if worker.cpu not in (NOTHING, self.os.on(number)):
                    self._leave_cpu(worker)
            for number in changed:
                worker, cpu = self.workers[number], self.os.on(number)
                if cpu != NOTHING and worker.cpu == NOTHING:
                    self._join_cpu(worker, cpu)
        tick_ps = self.os.next_tick(self.clock.now)
        if tick_ps is not None and not self.ticks:
            self.ticks = True
            self.clock.after(tick_ps - self.clock.now, self._tick)

    def _tick(self) -> None:
        self.ticks = False
        self._finish_due()
        self.os.tick(self.clock.now)

    def _finish_due(self) -> None:
        """Tasks that end now end before their threads are moved."""
        while self.clock.finish_due():
            self.settle()

    def _leave_cpu(self, worker: Worker) -> None:
        now = self.clock.now
        self.left_at[worker.cpu], worker.cpu = now, NOTHING
        if worker.task is not None:
            left = self.clock.stop(worker.number)
            worker.ran_ps += now - worker.since
            self._count_use(worker, worker.task, -1)
            if worker.warms is not None:
                self._count_warmed(worker, worker.warm_units - left)
            else:
                self._count_traffic(worker, worker.task, worker.left - left)
                worker.left = left
        elif worker.idle and not worker.asleep:
            self.looked_ps[worker.here] += now - worker.looks_since

    def _join_cpu(self, worker: Worker, cpu: int) -> None:
        now = self.clock.now
        was_idle, is_cold = self.left_at[cpu] != now, self.ran_last[cpu] != worker.number
        is_near = worker.ran_on != NOTHING and self._cache(worker.ran_on) == self._cache(cpu)
        self.ran_last[cpu] = worker.number
        worker.cpu = worker.ran_on = cpu
        worker.core, worker.here = self.p.os.core[cpu], self.p.os.node[cpu]
        self.clock.log(ON, worker.number, cpu)
        if worker.task is not None:
            worker.since = now
            self._count_use(worker, worker.task, 1)
            worker.warms = None
            if is_cold:
                self._warm_up(worker, worker.task, is_near)
            if worker.warms is None:
                self._go_on(worker, worker.task)
        elif worker.waking:
            if was_idle:
                self._after_waking(worker)
            else:
                self._is_up(worker)
        elif now - worker.idle_since >= self.p.look_ps:
            worker.looks_since = now
            self._fall_asleep(worker)
        else:
            worker.looks_since = now
            task = self._found(worker)
            if task is not None:
                self._start(self._leave_idle(worker), task)

    def _cache(self, cpu: int) -> int:
        return self.p.os.cache[cpu]

    def _begin(self) -> None:
        """All sleep; those that look for work come up and begin to."""
        for worker in self.workers:
            if self.p.look_ps > 0:
                worker.waking = True
                self.os.wake(self.clock.now, worker.number)
            else:
                worker.idle = worker.asleep = True
                self.idle[worker.node].append(worker)

    def _after_waking(self, worker: Worker) -> None:
        worker.turn += 1
        turn = worker.turn

        def woken() -> None:
            if worker.waking and worker.turn == turn and worker.cpu != NOTHING:
                self._is_up(worker)

        self.clock.after(self.p.wake_ps, woken)

    def _looks(self, worker: Worker) -> bool:
        return worker.idle and not worker.asleep and worker.cpu != NOTHING

    def _looking(self, node: int) -> Worker | None:
        return next((worker for worker in reversed(self.idle[node]) if self._looks(worker)), None)

    def _sleeper(self, node: int) -> Worker | None:
        return next((worker for worker in reversed(self.idle[node]) if worker.asleep), None)

    def _sleeps(self, worker: Worker) -> bool:
        return worker.asleep

    def _rest(self, worker: Worker) -> None:
        now = self.clock.now
        worker.idle, worker.idle_since, worker.looks_since = True, now, now
        self.idle[worker.node].append(worker)
        worker.turn += 1
        if self.p.look_ps == 0:
            self._fall_asleep(worker)
        elif self.p.look_ps < NEVER_PS:
            turn = worker.turn

            def stops_looking() -> None:
                if worker.turn == turn and self._looks(worker):
                    self._fall_asleep(worker)

            self.clock.after(self.p.look_ps, stops_looking)

    def _fall_asleep(self, worker: Worker) -> None:
        self.looked_ps[worker.here] += self.clock.now - worker.looks_since
        worker.asleep = True
        self.os.sleep(self.clock.now, worker.number)

    def _leave_idle(self, worker: Worker) -> Worker:
        if self._looks(worker):
            self.looked_ps[worker.here] += self.clock.now - worker.looks_since
        self.idle[worker.node].remove(worker)
        worker.idle = worker.asleep = False
        worker.turn += 1
        return worker

    def looked_up_to_now(self) -> list[int]:
        looked_ps = self.looked_ps.copy()
        for worker in self.workers:
            if self._looks(worker):
                looked_ps[worker.here] += self.clock.now - worker.looks_since
        return looked_ps

    def _wake(self, worker: Worker) -> None:
        self._leave_idle(worker)
        worker.waking = True
        self.os.wake(self.clock.now, worker.number, self.waker)

    def ended(self, number: int) -> None:
        """A piece is done: the task goes on where it warmed a cache, else it may have ended."""
        worker = self.workers[number]
        assert worker.task is not None
        if worker.warms is not None:
            self._count_warmed(worker, worker.warm_units)
            worker.warms = None
            self._go_on(worker, worker.task)
            return
        self.waker = worker.cpu
        super().ended(number)
        self.waker = NOTHING

    def _go_on(self, worker: Worker, task: Task) -> None:
        demand = self._demand(task, worker.here)
        self.clock.start(worker.core, demand, worker.left, worker.number)

    def _warm_up(self, worker: Worker, task: Task, is_near: bool) -> None:
        """Another thread has used the processor: its core's own cache is cold. What the stage keeps
        there comes from the last-level cache, or from where its data lie."""
        stage, here = self.p.stages[task.stage], worker.here
        lines = stage.warm_lines[here]
        reads = [(home, read) for home, (read, _) in self.lines(task).items() if read > 0]
        from_memory = lines > 0 and not is_near and bool(reads)
        separate_ps = self.p.switch_ps
        if lines > 0 and not from_memory:
            separate_ps += stage.warm_ps[here]
        if not from_memory and separate_ps <= 0:
            return
        worker.warms, worker.warm_units = [], 1.0
        if from_memory:
            total = sum(read for _, read in reads)
            worker.warm_units, separate_ps = lines, separate_ps / lines
            worker.warms = [
                MemoryUse(home, read / total, 0.0, stage.slots[here]) for home, read in reads
            ]
        demand = PieceDemand(0.0, separate_ps, tuple(worker.warms))
        self.clock.start(worker.core, demand, worker.warm_units, worker.number)

    def _count_warmed(self, worker: Worker, units: float) -> None:
        for use in worker.warms or ():
            self.traffic[worker.here][use.home] += use.read * units * LINE_BYTES

    def use(self, in_use: Sequence[bool]) -> None:
        """Threads may run on these processors from now on."""
        self.processors = sum(in_use)
        self._finish_due()
        self.os.use(self.clock.now, [cpu for cpu, wanted in enumerate(in_use) if wanted])
