"""Processors that processes share, as an operating system shares them.

Who waits for one stands in one queue; whoever has run for a slice while others wait goes to its
end. A process that has run out of work looks for more (spins) for a while, then sleeps until a
message wakes it. Messages that came are handled in order, after what the process does on its own.
What all this costs: ``Processors`` in commits/parameters.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import simpy

from ...commits.processors import Processors


@dataclass
class Job:
    """Work of a process: how much is left, and what happens when it is done."""

    left_ps: int
    done: simpy.Event


@dataclass
class Process:
    """One that runs on the processors; ``debt_ps`` is added to what it does next."""

    own: deque[Job] = field(default_factory=deque)
    incoming: deque[Job] = field(default_factory=deque)
    current: Job | None = None
    state: Literal["asleep", "starting", "waiting", "running", "spinning"] = "asleep"
    gives_way: bool = False
    woken: bool = False
    found: int = 0
    """Messages of the last look that are still to be handled."""
    debt_ps: int = 0
    since_ps: int = 0
    ran_ps: int = 0
    home: Processor | None = None
    """Where it ran last."""


@dataclass
class Processor:
    """``turn`` counts who took it over, ``generation`` its events: only the latest one counts."""

    process: Process | None = None
    last: Process | None = None
    generation: int = 0
    turn: int = 0
    slice_asked: bool = False
    began_ps: int = 0
    job_end_ps: int = 0


class SharedProcessors:
    """All processors of a host."""

    def __init__(self, env: simpy.Environment, setup: Processors) -> None:
        self.env, self.setup = env, setup
        self.processors = [Processor() for _ in range(setup.count)]
        self.waiting: deque[Process] = deque()

    def work(self, process: Process, ps: int, sender: Process | None = None) -> simpy.Event:
        """Work for a process, its own or (of a ``sender``) a message's; the event is its end."""
        job = Job(ps, self.env.event())
        (process.own if sender is None else process.incoming).append(job)
        if process.state == "spinning":
            processor = next(c for c in self.processors if c.process is process)
            if process.gives_way and self.waiting:
                process.gives_way = False
                self._preempt(processor)
            else:
                self._begin(processor)
        elif process.state == "asleep":
            self._wake(process, sender)
        return job.done

    def give_way(self, process: Process) -> None:
        """Before its next work a process lets those run who wait."""
        process.gives_way = True
        process.debt_ps += self.setup.yield_ps

    def busy_ps(self, process: Process) -> int:
        """How long the process was on a processor."""
        on = process.state in ("running", "spinning")
        return process.ran_ps + (int(self.env.now) - process.since_ps if on else 0)

    # Sleeping and waking.

    def _wake(self, process: Process, sender: Process | None) -> None:
        process.debt_ps += self.setup.sleep_ps
        process.woken = True
        idle = [c for c in self.processors if c.process is None]
        taken = self._taken_for(process) if self.setup.wakes_first and not idle else None
        if taken is not None:
            before = taken.process
            assert before is not None
            if sender is not None and before is not sender:
                sender.debt_ps += self.setup.notify_ps
            self._interrupt(taken)
            self.waiting.appendleft(before)
            self._put_on(taken, process)
            return
        if not idle:
            process.state = "waiting"
            self.waiting.append(process)
            for processor in self.processors:
                self._ask_slice(processor)
            return
        if sender is not None:
            sender.debt_ps += self.setup.notify_ps
        process.state = "starting"
        processor = next((c for c in idle if c.last is process), idle[0])
        processor.process = process
        self._after(self.setup.wake_ps, processor, lambda: self._put_on(processor, process))

    def _taken_for(self, process: Process) -> Processor | None:
        """One that it ran on last, or the first; None where all are about to start someone."""
        running = [c for c in self.processors if c.process and c.process.state != "starting"]
        if any(c is process.home for c in running):
            return process.home
        return running[0] if running else None

    # Who runs.

    def _put_on(self, processor: Processor, process: Process) -> None:
        if processor.last is not process and not process.woken:
            process.debt_ps += self.setup.switch_ps
        process.woken = False
        process.since_ps = processor.began_ps = int(self.env.now)
        processor.process = processor.last = process
        process.home = processor
        processor.turn += 1
        processor.slice_asked = False
        self._begin(processor)
        if self.waiting:
            self._ask_slice(processor)

    def _leave(self, processor: Processor) -> None:
        process = processor.process
        assert process is not None
        process.ran_ps += int(self.env.now) - process.since_ps
        processor.process = None
        processor.generation += 1

    def _take_next(self, processor: Processor) -> None:
        if self.waiting:
            self._put_on(processor, self.waiting.popleft())

    def _ask_slice(self, processor: Processor) -> None:
        process = processor.process
        if processor.slice_asked or process is None or process.state == "starting":
            return
        processor.slice_asked = True
        turn, now_ps = processor.turn, int(self.env.now)
        over = self.env.timeout(max(processor.began_ps + self.setup.slice_ps - now_ps, 0))

        def slice_over(_: object) -> None:
            if processor.turn != turn:
                return
            processor.slice_asked = False
            if self.waiting:
                self._preempt(processor)

        over.callbacks.append(slice_over)

    def _preempt(self, processor: Processor) -> None:
        process = processor.process
        assert process is not None
        self._interrupt(processor)
        self.waiting.append(process)
        self._take_next(processor)

    def _interrupt(self, processor: Processor) -> None:
        process = processor.process
        assert process is not None
        if process.current is not None:
            process.current.left_ps = processor.job_end_ps - int(self.env.now)
        process.state = "waiting"
        self._leave(processor)

    # What it does.

    def _begin(self, processor: Processor) -> None:
        process = processor.process
        assert process is not None
        process.gives_way = process.gives_way and not (
            process.current or process.own or process.incoming
        )
        if process.current is None:
            process.current = self._next_job(process)
        if process.current is None:
            process.state = "spinning"
            takes_ps = max(self.setup.spin_ps, 1)
        else:
            process.state = "running"
            process.current.left_ps += process.debt_ps
            process.debt_ps = 0
            takes_ps = process.current.left_ps
        processor.job_end_ps = int(self.env.now) + takes_ps
        self._after(takes_ps, processor, lambda: self._run_over(processor))

    def _next_job(self, process: Process) -> Job | None:
        if process.own:
            return process.own.popleft()
        if not process.incoming:
            return None
        if process.found == 0:
            process.found = len(process.incoming)
            process.debt_ps += self.setup.look_ps
        process.found -= 1
        return process.incoming.popleft()

    def _run_over(self, processor: Processor) -> None:
        process = processor.process
        assert process is not None
        if process.state == "spinning":
            process.state = "asleep"
            self._leave(processor)
            self._take_next(processor)
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
