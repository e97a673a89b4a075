"""Queues of processors by Linux's rules since 6.6 (EEVDF; kernel/sched/fair.c), as
``kernel/run_queues.hpp``.

Each process has its home, a processor with a queue of its own, and may be moved to another one at
any time: what it does goes on there in its turn. All weigh the same. What a process has run is its
virtual time; the mean of a queue's is its virtual time V. Who has run less than V is eligible: it
has had less than its share. What is in the queue (``pick``):

- Of those eligible the one whose deadline comes first runs: its virtual time when it was placed,
  plus a slice. A deadline that has passed is moved on by a slice.
- It runs on until it sleeps, until it gives way, until a tick finds its slice used up, or until
  another one is woken that is picked before it: one that is eligible while it is not (or, once its
  slice is used up, whose deadline comes first). While it is eligible and has of its slice, it is
  protected (RUN_TO_PARITY).
- Who gives way forfeits its slice: its virtual time moves to its deadline, if it is eligible and
  not alone in the queue; sleepers that have not left it count, though nobody runs instead.
- Who falls asleep eligible takes what it is behind V (its lag, of two slices or a tick at most)
  along, and has it again when it is woken (PLACE_LAG): as much more as moves V by its coming. In an
  empty queue there is none.
- Who falls asleep beyond V stays in the queue until it would be picked (DELAY_DEQUEUE), and then
  leaves it with nothing. If it is woken before, it goes on from there, or from V, where the others
  have passed it since.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

import simpy

from ..._kernel import ProcessorSetup

ON = ("running", "settling", "spinning")


@dataclass
class Job:
    """Work of a process: how much is left, and what happens when it is done; of a message also who
    has sent it, and of how many parts it is."""

    left_ps: int
    done: simpy.Event
    sender: "Process | None" = None
    parts: int = 1


@dataclass(eq=False)
class Process:
    """One that runs on the processors; ``debt_ps`` of work comes before what it does next."""

    place: int = 0
    own: deque[Job] = field(default_factory=deque)
    incoming: deque[Job] = field(default_factory=deque)
    current: Job | None = None
    state: Literal["asleep", "starting", "waiting", "running", "settling", "spinning"] = "asleep"
    gives_way: bool = False
    woken: bool = False
    moved_to: int | None = None
    """Its home since it was moved; None: where it began."""
    found: int = 0
    """Messages of the last look that are still to be handled."""
    debt_ps: int = 0
    rest_ps: int = 0
    """Of what it paid last, in time."""
    since_ps: int = 0
    ran_ps: int = 0
    virtual_ps: int = 0
    """Its virtual time, as of ``counted_ps`` where it runs."""
    counted_ps: int = 0
    deadline_ps: int = 0
    lag_ps: int = 0
    """Of one asleep that is not in the queue: how far it was behind."""

    def renew(self, setup: ProcessorSetup) -> bool:
        """The deadline, once a slice is used up."""
        if self.virtual_ps < self.deadline_ps:
            return False
        self.deadline_ps = self.virtual_ps + setup.slice_ps
        return True


@dataclass(eq=False)
class Processor:
    """``generation`` counts its events: only the latest one counts. ``queue``: in the order in
    which they came, with the one that runs, and with sleepers beyond V."""

    process: Process | None = None
    last: Process | None = None
    queue: list[Process] = field(default_factory=list)
    base_ps: int = 0
    """V when the queue became empty."""
    generation: int = 0
    tick_scheduled: bool = False
    job_end_ps: int = 0

    def catch_up(self, now_ps: int, setup: ProcessorSetup) -> None:
        """Who runs has run up to now; ticks since then have moved its deadline on."""
        process = self.process
        if process is None or process.state not in ON:
            return
        tick_ps, began_ps = setup.tick_ps, process.counted_ps
        due_ps = began_ps + max(process.deadline_ps - process.virtual_ps, 0)
        renewed_ps = -(-due_ps // tick_ps) * tick_ps
        if renewed_ps < now_ps:
            each_ps = -(-setup.slice_ps // tick_ps) * tick_ps
            renewed_ps += (now_ps - 1 - renewed_ps) // each_ps * each_ps
            process.deadline_ps = process.virtual_ps + renewed_ps - began_ps + setup.slice_ps
        process.virtual_ps += now_ps - began_ps
        process.counted_ps = now_ps

    def behind_ps(self, process: Process) -> int:
        """How far it is behind V, times the length of the queue; below 0: beyond."""
        total_ps = sum(process.virtual_ps for process in self.queue)
        return total_ps - len(self.queue) * process.virtual_ps

    def remove(self, process: Process) -> None:
        """From the queue."""
        self.queue.remove(process)
        if not self.queue:
            self.base_ps = process.virtual_ps

    def pick(self) -> Process | None:
        """Who runs next. Sleepers whose turn it would be leave."""
        while self.queue:
            total_ps, count = sum(process.virtual_ps for process in self.queue), len(self.queue)
            able = [process for process in self.queue if process.virtual_ps * count <= total_ps]
            # Of equal deadlines another one's than that of who runs, then who came first.
            best = min(able, key=lambda process: (process.deadline_ps, process is self.process))
            if best.state != "asleep":
                return best
            self.remove(best)
            best.lag_ps = 0
        return None

    def place(self, process: Process, lag_ps: int, setup: ProcessorSetup) -> None:
        """So far behind V once it is there: its coming moves V back by a part of that."""
        process.virtual_ps = self.base_ps
        if count := len(self.queue):
            mean_ps = sum(process.virtual_ps for process in self.queue) // count
            process.virtual_ps = mean_ps - lag_ps * (count + 1) // count
        process.deadline_ps = process.virtual_ps + setup.slice_ps
        self.queue.append(process)
