"""Processors that processes share, as Linux shares them: who runs when is told by the rules of
``run_queues.py``.

A process that has run out of work pays what it owes for its last (settles: who has woken another
one is busy with that), looks for more (spins) for a while, then sleeps until a message wakes it.
Messages that came are handled in order, after what the process does on its own. What all
this costs: ``ProcessorSetup`` (kernel/run_queues.hpp).
"""

from collections.abc import Callable, Iterable

import simpy

from ..._kernel import ProcessorSetup
from ...kernel.plain_fields import plain
from ..processors import SHARES_NONE
from .run_queues import ON, Job, Process, Processor


class SharedProcessors:
    """All processors of a host."""

    def __init__(self, env: simpy.Environment, setup: ProcessorSetup) -> None:
        self.env, self.setup = env, plain(setup)
        self.processors = [Processor() for _ in range(setup.count)]
        self.lag_max_ps = max(2 * setup.slice_ps, setup.tick_ps)

    @property
    def now_ps(self) -> int:
        """The time reached."""
        return int(self.env.now)

    def position(self, process: Process) -> int | None:
        """Which processor is a process's home; None: it shares none."""
        homes = self.setup.homes
        if process.moved_to is not None:
            return process.moved_to
        home = homes[process.place] if homes else process.place % self.setup.count
        return None if home == SHARES_NONE else home

    def home(self, process: Process) -> Processor:
        """Where a process runs."""
        position = self.position(process)
        assert position is not None
        return self.processors[position]

    def _remote(self, sender: Process | None, process: Process) -> bool:
        """Whether there is a sender, with another home."""
        return sender is not None and self.position(sender) != self.position(process)

    def work(
        self, process: Process, ps: int, sender: Process | None = None, parts: int = 1
    ) -> simpy.Event:
        """Work for a process, its own or (of a ``sender``) a message's; the event is its end."""
        if self._remote(sender, process):
            ps += parts * self.setup.across_ps
        job = Job(ps, self.env.event(), sender, parts)
        (process.own if sender is None else process.incoming).append(job)
        if process.state == "spinning":
            self._go_on(self.home(process), process)
        elif process.state == "asleep":
            self._wake(self.home(process), process, sender)
        return job.done

    def give_way(self, process: Process) -> None:
        """Before its next work a process lets those run who wait."""
        process.gives_way = True
        process.debt_ps += self.setup.yield_ps

    def move(self, process: Process, to: int) -> None:
        """The process has another home from now on, by position."""
        before, processor = self.home(process), self.processors[to]
        if before is processor:
            return
        before.catch_up(self.now_ps, self.setup)
        starts, was_on = process.state == "starting", before.process is process
        if starts:  # it is woken there instead
            before.process = None
            before.generation += 1
        elif was_on:
            self._interrupt(before)
        if process in before.queue:
            lag_ps = before.behind_ps(process) // len(before.queue)
            asleep = process.state == "asleep"
            process.lag_ps = 0 if asleep else max(min(lag_ps, self.lag_max_ps), -self.lag_max_ps)
            before.remove(process)
        process.moved_to = to
        if process.state != "asleep":
            processor.catch_up(self.now_ps, self.setup)
            processor.place(process, process.lag_ps, self.setup)
            if processor.process is not None:
                self._wait_for_turn(processor, process)
            elif starts:
                self._begin_waking(processor, process)
            else:
                self._put_on(processor, process)
        if was_on:
            self._take_next(before)

    def busy_ps(self, process: Process) -> int:
        """How long the process was on a processor."""
        on = process.state in ON
        return process.ran_ps + (self.now_ps - process.since_ps if on else 0)

    # The queue.

    def _wake(self, processor: Processor, process: Process, sender: Process | None) -> None:
        idle = (k for k in self._group(processor) if self.processors[k].process is None)
        if processor.process is not None and (sibling := next(idle, None)) is not None:
            self.move(process, sibling)
            processor = self.processors[sibling]
        process.debt_ps += self.setup.sleep_ps
        process.woken = True
        processor.catch_up(self.now_ps, self.setup)
        if process not in processor.queue:
            processor.place(process, process.lag_ps, self.setup)
        elif processor.behind_ps(process) > 0:
            processor.remove(process)
            processor.place(process, 0, self.setup)
        remote = self._remote(sender, process)
        if sender is not None and remote:
            sender.debt_ps += self.setup.notify_ps
            if sender.state == "spinning":
                self._begin(self.home(sender))  # at once, before it looks for work
        if processor.process is None:
            self._begin_waking(processor, process)
            return
        if remote:
            process.debt_ps += self.setup.interrupt_ps
        self._wait_for_turn(processor, process)

    def _begin_waking(self, processor: Processor, process: Process) -> None:
        """On an idle processor."""
        process.state = "starting"
        processor.process = process
        self._after(self.setup.wake_ps, processor, lambda: self._put_on(processor, process))

    def _wait_for_turn(self, processor: Processor, process: Process) -> None:
        """It is in the queue of a processor that another one has: maybe it is its turn."""
        runs = processor.process
        assert runs is not None
        process.state = "waiting"
        if runs.state == "starting":
            return
        renewed = runs.renew(self.setup)
        if not renewed and processor.behind_ps(runs) >= 0:
            self._schedule_tick(processor)  # it is protected
            return
        following = processor.pick()
        if following is process or renewed:
            self._switch(processor, runs, following)
        self._schedule_tick(processor)

    def _fall_asleep(self, processor: Processor, process: Process) -> None:
        processor.catch_up(self.now_ps, self.setup)
        process.state = "asleep"
        if (behind_ps := processor.behind_ps(process)) >= 0:
            process.lag_ps = min(behind_ps // len(processor.queue), self.lag_max_ps)
            processor.remove(process)
        self._leave(processor)
        self._take_next(processor)
        if (
            processor.process is None
            and (waiting := self._waiting_on_sibling(processor)) is not None
        ):
            self.move(waiting, self.processors.index(processor))

    def _schedule_tick(self, processor: Processor) -> None:
        """Where a process waits."""
        waits = any(process.state == "waiting" for process in processor.queue)
        if processor.tick_scheduled or not waits or processor.process is None:
            return
        processor.tick_scheduled = True
        left_ps = self.setup.tick_ps - self.now_ps % self.setup.tick_ps

        def tick(_: object) -> None:
            processor.tick_scheduled = False
            process = processor.process
            if process is not None and process.state != "starting":
                processor.catch_up(self.now_ps, self.setup)
                if process.renew(self.setup):
                    self._switch(processor, process, processor.pick())
            self._schedule_tick(processor)

        self.env.timeout(left_ps).callbacks.append(tick)

    def _switch(self, processor: Processor, runs: Process, following: Process | None) -> bool:
        """To who was picked; False where that is who runs."""
        if following is None or following is runs:
            return False
        self._interrupt(processor)
        self._put_on(processor, following)
        return True

    # Who runs.

    def _put_on(self, processor: Processor, process: Process) -> None:
        if processor.last is not process and not process.woken:
            process.debt_ps += self.setup.switch_ps
        process.woken = False
        process.since_ps = process.counted_ps = self.now_ps
        process.renew(self.setup)
        processor.process = processor.last = process
        self._begin(processor)
        self._schedule_tick(processor)

    def _leave(self, processor: Processor) -> None:
        process = processor.process
        assert process is not None
        process.ran_ps += self.now_ps - process.since_ps
        processor.process = None
        processor.generation += 1

    def _take_next(self, processor: Processor) -> None:
        following = processor.pick()
        if following is not None:
            self._put_on(processor, following)

    # Groups.

    def _group(self, processor: Processor) -> list[int]:
        """Positions of the processors of its group; none where there are no groups."""
        groups = self.setup.groups
        own = groups[self.processors.index(processor)] if groups else None
        return [index for index, group in enumerate(groups) if group == own]

    def _waiting_on_sibling(self, processor: Processor) -> Process | None:
        """Of the group's processor where most processes wait, the first of these."""
        queues = (self.processors[index].queue for index in self._group(processor))
        waiting = ([process for process in queue if process.state == "waiting"] for queue in queues)
        most = max(waiting, key=len, default=[])
        return most[0] if most else None

    def _interrupt(self, processor: Processor) -> None:
        process = processor.process
        assert process is not None
        processor.catch_up(self.now_ps, self.setup)
        left_ps = processor.job_end_ps - self.now_ps
        if process.current is not None:
            process.current.left_ps = left_ps
        elif process.state == "settling":
            process.rest_ps = left_ps
        process.state = "waiting"
        self._leave(processor)

    # What it does.

    def _go_on(self, processor: Processor, process: Process) -> None:
        """Work has come while it looked for some."""
        if process.gives_way:
            process.gives_way = False
            if len(processor.queue) > 1:
                processor.catch_up(self.now_ps, self.setup)
                if processor.behind_ps(process) >= 0:
                    process.virtual_ps = process.deadline_ps
                    process.deadline_ps += self.setup.slice_ps
                if self._switch(processor, process, processor.pick()):
                    return
        self._begin(processor)

    def _begin(self, processor: Processor) -> None:
        process = processor.process
        assert process is not None
        process.gives_way = process.gives_way and not (
            process.current or process.own or process.incoming
        )
        if process.current is None:
            process.current = self._next_job(process)
        paid_ps = process.debt_ps + process.rest_ps
        process.debt_ps = process.rest_ps = 0
        if process.current is not None:
            process.current.left_ps += paid_ps
            process.state, takes_ps = "running", process.current.left_ps
        elif paid_ps:
            process.state, takes_ps = "settling", paid_ps
        else:
            process.state, takes_ps = "spinning", max(self.setup.spin_ps, 1)
        processor.job_end_ps = self.now_ps + takes_ps
        self._after(takes_ps, processor, lambda: self._run_over(processor))

    def _next_job(self, process: Process) -> Job | None:
        if process.own:
            return process.own.popleft()
        if not process.incoming:
            return None
        if process.found == 0:
            process.found = len(process.incoming)
            process.debt_ps += self.setup.look_ps + self._connections_ps(process.incoming)
        process.found -= 1
        return process.incoming.popleft()

    def _connections_ps(self, messages: Iterable[Job]) -> int:
        """What the processes cost that they are from."""
        known_ps = self.setup.connection_ps
        parts: dict[int, int] = {}
        for job in messages:
            assert job.sender is not None
            parts[job.sender.place] = parts.get(job.sender.place, 0) + job.parts
        return sum(known_ps[min(n, len(known_ps)) - 1] for n in parts.values()) if known_ps else 0

    def _run_over(self, processor: Processor) -> None:
        process = processor.process
        assert process is not None
        if process.state == "spinning":
            self._fall_asleep(processor, process)
            return
        if process.state == "settling":
            # Messages that have come are found as if it had looked all the time.
            found = process.own or process.incoming
            self._go_on(processor, process) if found else self._begin(processor)
            return
        assert process.current is not None
        process.current.done.succeed()
        process.current = None
        self._begin(processor)

    def _after(self, ps: int, processor: Processor, then: Callable[[], None]) -> None:
        """Unless something else has happened to that processor before."""
        processor.generation += 1
        generation = processor.generation

        def over(_: object) -> None:
            if processor.generation == generation:
                then()

        self.env.timeout(ps).callbacks.append(over)
