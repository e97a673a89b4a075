"""Processes that move between processors while they run: the reference, by hand.

The kernel's twin does the same on drawn hosts: test_commit_processors.py.
"""

from typing import Any

import simpy

from numatwin.sim._kernel import ProcessorSetup
from numatwin.sim.machine.reference.processors import SharedProcessors
from numatwin.sim.machine.reference.run_queues import Process

US, MS = 1_000_000, 1_000_000_000
SLICE, TICK = 3 * MS, 4 * MS


class Bench:
    """Processes that are given work and moved from outside; what ends is written down."""

    def __init__(self, count: int, processes: int, **costs: Any) -> None:
        self.env = simpy.Environment()
        setup = ProcessorSetup(count=count, slice_ps=SLICE, tick_ps=TICK, **costs)
        self.shared = SharedProcessors(self.env, setup)
        self.processes = [Process(place) for place in range(processes)]
        self.ended: list[tuple[int, int]] = []

    def submit(self, process: int, ps: int, job: int, sender: int = -1) -> None:
        by = None if sender < 0 else self.processes[sender]
        done = self.shared.work(self.processes[process], ps, by)
        done.callbacks.append(lambda _: self.ended.append((int(self.env.now), job)))

    def move(self, process: int, to: int) -> None:
        self.shared.move(self.processes[process], to)

    def run(self, until: int) -> None:
        if until > self.env.now:
            self.env.run(until)

    def state(self) -> tuple[list[tuple[int, int]], list[int]]:
        return self.ended, [self.shared.busy_ps(process) for process in self.processes]


def test_a_moved_process_leaves_one_processor_and_shares_the_other() -> None:
    """Processes 0 and 2 begin on processor 0, 1 on processor 1; 40 ms of work each; nothing costs.

    time      processor 0           processor 1
    0         0 and 2 by turns      1
    16 ms     2 moves: 0 alone      1 and 2 by turns

    At 16 ms each of 0 and 2 has run 8 ms: 0 ends at 16 + 32 = 48 ms. On processor 1 at 16 ms 24 ms
    are left of 1, 32 ms of 2: 1 has its last turn before 2, which ends at 16 + 56 = 72 ms. Before a
    process falls asleep it looks for work, for 1 ps.
    """
    bench = Bench(2, 3)
    for process in range(3):
        bench.submit(process, 40 * MS, process)
    bench.run(16 * MS)
    bench.move(2, 1)
    bench.run(200 * MS)
    ended, busy = bench.state()
    times = {job: time for time, job in ended}
    assert times[0] == 48 * MS
    assert 16 * MS + 48 * MS <= times[1] < times[2] == 72 * MS + 1
    assert busy == [40 * MS + 1] * 3


def test_a_moved_process_takes_over_from_nobody() -> None:
    """Alone on processor 0, to the idle processor 1 at 5 ms: it pays for a switch, 2 µs."""
    bench = Bench(2, 1, switch_ps=2 * US)
    bench.submit(0, 10 * MS, 0)
    bench.run(5 * MS)
    bench.move(0, 1)
    bench.run(20 * MS)
    assert bench.state()[0] == [(10 * MS + 2 * US, 0)]


def test_a_sleeping_process_is_woken_on_its_new_processor() -> None:
    bench = Bench(2, 2)
    bench.submit(0, 10 * MS, 0)  # on processor 0
    bench.move(1, 0)
    bench.move(1, 1)
    bench.submit(1, 10 * MS, 1)
    bench.run(11 * MS)
    assert bench.state()[0] == [(10 * MS, 0), (10 * MS, 1)]


def test_idle_processors_of_a_group_serve_all() -> None:
    """Processes 0 to 4 live on processors 0, 1, 2, 0, 1; 0 and 1 are a group, 2 is alone. 10 ms of
    work for 0 and 3, nothing for 1 and 2; nothing costs.

    time      processor 0   processor 1      processor 2
    0         0             3 (woken here)   idle
    10 ms     idle          idle             idle
    """
    bench = Bench(3, 5, groups=[0, 0, 1])
    bench.submit(0, 10 * MS, 0)
    bench.submit(3, 10 * MS, 1)
    bench.run(30 * MS)
    ended, busy = bench.state()
    assert ended == [(10 * MS, 0), (10 * MS, 1)]
    assert busy == [10 * MS + 1, 0, 0, 10 * MS + 1, 0]


def test_who_runs_out_of_work_takes_over_who_waits() -> None:
    """Processes 0, 2 and 4 live on processor 0, 1 and 3 on processor 1; all get work at once.

    0 and 1 have 4 ms of it, the others 8 ms. When 1 and 3 are done, one that has waited on
    processor 0 moves to processor 1. The two share 32 ms: none rests while somebody waits.
    """
    bench = Bench(2, 5, groups=[0, 0])
    for process in range(5):
        bench.submit(process, (4 if process < 2 else 8) * MS, process)
    bench.run(100 * MS)
    ended, busy = bench.state()
    assert sum(busy) == 32 * MS + 5
    assert max(time for time, _ in ended) <= 20 * MS  # 16 ms, and a part of the last piece
