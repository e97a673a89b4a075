"""Processors shared by Linux's rules (EEVDF): shares, who is woken, who gives way."""

import itertools
from collections.abc import Generator
from typing import Any

import pytest
import simpy
from commit_clusters import on_one_machine
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.sim._kernel import ProcessorSetup
from numatwin.sim.machine.reference.processors import SharedProcessors
from numatwin.sim.machine.reference.run_queues import Process
from numatwin.sim.systems.commits.host import homes
from numatwin.sim.systems.commits.parameters import CommitParameters
from numatwin.sim.systems.commits.plane import KernelCommitModel

MS = 1_000_000_000
SLICE, TICK = 1_400_000_000, 4 * MS
FOREVER = 10**16


class Bench:
    """Processes that spin, or sleep and work in turn."""

    def __init__(self, count: int = 1, **more: Any) -> None:
        self.env = simpy.Environment()
        setup = ProcessorSetup(count=count, **{"slice_ps": SLICE, "tick_ps": TICK, **more})
        self.shared = SharedProcessors(self.env, setup)

    def spinner(self, place: int = 0) -> Process:
        process = Process(place)
        self.shared.work(process, FOREVER)
        return process

    def sleeper(self, asleep_ps: int, busy_ps: int, took: list[int], place: int = 0) -> Process:
        process = Process(place)

        def goes_on() -> Generator[simpy.Event, Any, None]:
            while True:
                yield self.env.timeout(asleep_ps)
                began = self.env.now
                yield self.shared.work(process, busy_ps)
                took.append(int(self.env.now) - int(began))

        self.env.process(goes_on())
        return process


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 9), st.sampled_from((MS // 10, MS, 4 * MS)), st.sampled_from((MS, 4 * MS)))
def test_those_who_never_stop_have_equal_shares(number: int, slice_ps: int, tick_ps: int) -> None:
    """Nobody is further ahead than what a turn adds (Stoica and Abdel-Wahab, 1995)."""
    bench = Bench(slice_ps=slice_ps, tick_ps=tick_ps)
    spinners = [bench.spinner() for _ in range(number)]
    bench.env.run(997 * MS)
    ran = [bench.shared.busy_ps(one) for one in spinners]
    assert sum(ran) == 997 * MS
    assert max(ran) - min(ran) <= 2 * (slice_ps + tick_ps)


def test_who_never_stops_runs_from_tick_to_tick() -> None:
    bench = Bench()
    first, second = bench.spinner(), bench.spinner()
    seen = []
    for tick in range(1, 9):
        bench.env.run(tick * TICK + 1)
        seen.append([one.state for one in (first, second)])
    assert seen == [["waiting", "running"], ["running", "waiting"]] * 4


def test_who_wants_less_than_its_share_runs_as_soon_as_it_is_woken_but_for_a_slice() -> None:
    """It has nothing saved up: who runs is protected until its slice is used up."""
    bench = Bench()
    took: list[int] = []
    spinner = bench.spinner()
    bench.sleeper(10 * MS, MS, took)
    bench.env.run(1_000 * MS)
    assert max(took) <= MS + TICK
    # 1.4 of the 4 ms between two ticks are a slice that has just begun.
    at_once = sum(1 for each in took if each == MS)
    assert at_once / len(took) == pytest.approx(1 - SLICE / TICK, abs=0.1)
    assert bench.shared.busy_ps(spinner) == pytest.approx((1_000 - len(took)) * MS, rel=1e-6)


def test_who_wants_more_than_its_share_gets_that_and_waits() -> None:
    bench = Bench()
    took: list[int] = []
    spinner = bench.spinner()
    sleeper = bench.sleeper(MS // 10, 20 * MS, took)
    bench.env.run(2_000 * MS)
    assert bench.shared.busy_ps(sleeper) == pytest.approx(1_000 * MS, rel=0.02)
    assert bench.shared.busy_ps(spinner) == pytest.approx(1_000 * MS, rel=0.02)
    assert max(took) > 38 * MS


def test_who_slept_ahead_of_its_share_does_not_come_first_at_once() -> None:
    """Asleep for no time, it has what it ran before against it: it waits for the spinner's turn."""
    bench = Bench()
    took: list[int] = []
    bench.spinner()
    bench.sleeper(1, MS // 2, took)
    bench.env.run(400 * MS)
    ran = sum(1 for each in took if each == MS // 2)
    # Half of the time is its own: 400 times half a millisecond.
    assert len(took) == pytest.approx(400, rel=0.05)
    assert 0 < ran < len(took)


def test_those_who_give_way_take_turns() -> None:
    bench = Bench(gives_way=True)
    order: list[str] = []

    def goes_on(name: str) -> Generator[simpy.Event, Any, None]:
        process = Process()
        while True:
            yield bench.shared.work(process, 1_000)
            order.append(name)
            bench.shared.give_way(process)

    for name in "abc":
        bench.env.process(goes_on(name))
    bench.env.run(300_001)
    assert len(order) == 300
    for one in "abc":
        turns = [at for at, name in enumerate(order) if name == one]
        assert 50 <= len(turns) <= 130
        assert max(b - a for a, b in itertools.pairwise(turns)) <= 5


def test_who_gives_way_beside_a_sleeper_forfeits_its_slice() -> None:
    """The sleeper has run for more than its share and has not left the queue; Linux counts it."""
    bench = Bench(gives_way=True)
    first, second = Process(), Process()

    def one_job(process: Process, ps: int, *, again: bool) -> Generator[simpy.Event, Any, None]:
        yield bench.shared.work(process, ps)
        if again:
            bench.shared.give_way(process)
            yield bench.shared.work(process, MS)

    bench.env.process(one_job(first, MS // 2, again=False))
    bench.env.process(one_job(second, MS // 10, again=True))
    bench.env.run(MS)
    queue = bench.shared.processors[0].queue
    assert (first.state, second.state) == ("asleep", "running")
    assert queue == [second]  # the sleeper was next, and left
    assert second.deadline_ps == 2 * SLICE
    assert second.virtual_ps == SLICE  # when it was counted last
    bench.env.run(2 * MS)
    assert bench.shared.busy_ps(second) == pytest.approx(MS + MS // 10, rel=1e-3)


def test_homes() -> None:
    assert homes(4, 1, 1, 2, served=False) == (0, 1, 0, 1, 0, 1)
    # The storage server has as much to do as all clients, and stays alone with the timestamps.
    assert homes(1, 1, 1, 2, served=True) == (1, 0, 0)
    assert homes(4, 1, 1, 2, served=True) == (1, 1, 1, 1, 0, 0)
    # A timestamp server that manages transactions has nearly as much to do.
    assert homes(2, 1, 1, 2, served=True, manages=True) == (1, 0, 0, 1)
    assert homes(2, 2, 1, 8, served=True) == (2, 3, 0, 1, 4)
    assert set(homes(7, 3, 1, 1, served=True)) == {0}


def crowd(
    clients: int, *, in_step: bool, gives_way: bool, held: float = 0.5, ps: int = 1_000_000
) -> CommitParameters:
    """RSI by loads and stores on one processor: all update one record, and hold its lock for that
    part of a transaction."""
    made: CommitParameters = on_one_machine(
        clients,
        round(ps * (1 - held)),
        round(ps * held),
        records=1,
        compute_ps=ps // 100,
        compute_spread=1.0,
        in_step=in_step,
        processors=ProcessorSetup(count=1, slice_ps=SLICE, tick_ps=TICK, gives_way=gives_way),
    )
    return made


def test_who_was_stopped_stops_the_others_for_its_whole_time_away() -> None:
    """The run stands at the timestamp of who waits for the processor. With one record each commits
    once on what that one left, once on its own, and then aborts, a read after another, for the rest
    of its turn."""
    model = KernelCommitModel(crowd(2, in_step=True, gives_way=False, held=0.5), 1)
    model.run(400 * MS)
    found = model.result()
    assert found.commits == pytest.approx(2 * 400 * MS / TICK, abs=4)
    assert found.aborts["snapshot"] == pytest.approx(400 * MS / 500_000, rel=0.001)


@pytest.mark.parametrize("clients", [2, 3, 6])
def test_in_step_those_who_give_way_get_on(clients: int) -> None:
    """An abort gives the processor to who holds the run up, which catches up with the others."""
    model = KernelCommitModel(crowd(clients, in_step=True, gives_way=True), 1)
    model.run(400 * MS)
    found = model.result()
    assert found.commits > 50_000
    assert sum(found.aborts.values()) < 2 * clients * found.commits
