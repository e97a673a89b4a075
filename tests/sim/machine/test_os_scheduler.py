"""Threads on processors by Linux's rules: kernel and reference, by hand and by laws.

Machines of the cases by hand: ``TWO``: two processors that share a cache. ``SQUARE``: four nodes of
two processors in a ring, at distances 10, 20 and 30.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.sim import _kernel
from numatwin.sim._kernel import OsSetup
from numatwin.sim.machine.os_scheduler import Level, base_slice_ps, processors_of, scheduler_of
from numatwin.sim.machine.reference.os_balancing import weight
from numatwin.sim.machine.reference.os_scheduler import OsScheduler
from numatwin.topologies import load_machine

MS = 1_000_000_000
TICK = 4 * MS
RING = np.array([[10, 20, 30, 20], [20, 10, 20, 30], [30, 20, 10, 20], [20, 30, 20, 10.0]])


def processors(
    node: list[int], distance: Any = None, threads_per_core: int = 1, cores_per_cache: int = 0
) -> OsSetup:
    """Processors on these nodes, of which all cores share a cache unless fewer do."""
    core = [k // threads_per_core for k in range(len(node))]
    cache = [100 * n for n in node]
    if cores_per_cache:
        cache = [100 * n + core[k] // cores_per_cache for k, n in enumerate(node)]
    numbers = {one: k for k, one in enumerate(dict.fromkeys(cache))}
    cache = [numbers[one] for one in cache]
    nodes = sorted(set(node))
    table = np.full((len(nodes), len(nodes)), 20.0) if distance is None else distance
    np.fill_diagonal(table, 10.0)
    return processors_of(core, cache, node, nodes, table)


TWO = processors([0, 0])
SQUARE = processors([0, 0, 1, 1, 2, 2, 3, 3], RING)


def threads_on(setup: OsSetup, begin: Any, own: Any) -> OsSetup:
    return setup.replaced(begin=begin, own=[list(mask) for mask in own])


def reference(setup: OsSetup, begin: Any, own: Any) -> Any:
    """The twin in Python."""
    return OsScheduler(threads_on(setup, begin, own))


def kernel(setup: OsSetup, begin: Any, own: Any) -> Any:
    """The compiled one."""
    return _kernel.OsScheduler(threads_on(setup, begin, own))


BOTH = pytest.mark.parametrize("make", [kernel, reference])


def scheduler(make: Any, setup: OsSetup, threads: int) -> Any:
    """Threads that may run anywhere and begin on processor 0."""
    return make(setup, [0] * threads, [range(len(setup.core))] * threads)


def started(make: Any, setup: OsSetup, threads: int) -> Any:
    """All of them run, or wait, from the beginning."""
    made = scheduler(make, setup, threads)
    for thread in range(threads):
        made.wake(0, thread)
    return made


def where(made: Any, threads: int) -> list[int]:
    """The processor of each thread, -1 where it does not run."""
    return [made.on(thread) for thread in range(threads)]


def test_domains_of_a_ring() -> None:
    """A level for caches (which are nodes), for the neighbours, and for all, of overlapping spans
    of three nodes; the distance of 30 is not above that up to which new threads are placed."""
    of = [SQUARE.domains[d] for d in SQUARE.domains_of[0]]
    weights = [(one.level, weight(one)) for one in of]
    assert weights == [(Level.CACHE, 2), (Level.BEYOND, 6), (Level.BEYOND, 8)]
    assert of[1].groups == [[0, 1], [2, 3], [6, 7]]
    assert of[2].groups == [[0, 1, 2, 3, 6, 7], [2, 3, 4, 5, 6, 7]]
    assert all(one.places_new_threads for one in of)
    assert [one.spreads for one in of] == [False, True, False]


def test_domains_of_machines_that_are_bundled() -> None:
    opteron = scheduler_of(load_machine("opteron-4n"), range(4))
    assert [weight(opteron.domains[d]) for d in opteron.domains_of[0]] == [4, 12, 16]
    epyc = scheduler_of(load_machine("epyc-2s-nps4"), range(8))
    levels = [epyc.domains[d].level for d in epyc.domains_of[0]]
    assert levels[:3] == [Level.CORE, Level.CACHE, Level.NODE]
    assert weight(epyc.domains[epyc.domains_of[0][-1]]) == len(epyc.core)


@pytest.mark.parametrize(("cpus", "ms"), [(1, 0.7), (2, 1.4), (4, 2.1), (8, 2.8), (64, 2.8)])
def test_the_slice_grows_with_processors_up_to_eight(cpus: int, ms: float) -> None:
    assert base_slice_ps(cpus) == pytest.approx(ms * MS)


@BOTH
def test_new_threads_go_where_there_is_most_room(make: Any) -> None:
    """The first one leaves node 0, which is as empty as the others, to no other: it stays. The
    second may stay with it (one spare), the next ones go to the nodes with most idle processors."""
    made = started(make, SQUARE, 8)
    assert sorted(where(made, 8)) == list(range(8))
    assert where(made, 8)[0] == 0


@BOTH
def test_a_woken_thread_goes_back_or_near(make: Any) -> None:
    """
    | at | what | thread 0 | thread 1 |
    | --- | --- | --- | --- |
    | 0 | both start | 0 | 1 |
    | 1 ms | 0 sleeps, is woken: its processor is idle | 0 | 1 |
    | 2 ms | 0 sleeps, 1 moves there by affinity, and may go back; 0 is woken | 1 | 0 |
    """
    made = started(make, TWO, 2)
    assert where(made, 2) == [0, 1]
    made.sleep(MS, 0)
    made.wake(MS, 0)
    assert where(made, 2) == [0, 1]
    made.sleep(2 * MS, 0)
    made.use(2 * MS, [0])
    assert where(made, 2) == [-1, 0]
    made.use(2 * MS, [0, 1])
    made.wake(2 * MS, 0)
    assert where(made, 2) == [1, 0]
    assert list(made.migrations) == [0, 2, 0, 0]


@BOTH
def test_a_woken_thread_stays_within_its_cache(make: Any) -> None:
    """Both processors of node 0 are busy, those of the other nodes idle: it waits."""
    made = scheduler(make, SQUARE, 3)
    made.use(0, [0, 1])
    for thread in range(3):
        made.wake(0, thread)
    made.sleep(MS, 0)
    made.use(MS, range(8))
    made.wake(MS, 0)
    assert made.on(0) in (0, 1, -1)
    assert sorted(where(made, 3))[0] == -1


@BOTH
def test_a_thread_is_woken_near_the_waker_that_has_less_load(make: Any) -> None:
    """Threads 0 to 2 share processor 0, thread 3 has processor 2 (node 1) to itself. With all of
    node 0 busy, thread 0 is woken from there: 2 threads against 3 of its previous processor."""
    made = make(processors([0, 1]), [0, 0, 0, 0, 1], [[0, 1]] * 4 + [[1]])
    made.use(0, [0])
    for thread in range(4):
        made.wake(0, thread)
    made.sleep(MS, 0)
    made.use(MS, [0, 1])
    made.wake(MS, 4)
    made.wake(MS, 0, 1)
    made.sleep(2 * MS, 4)
    assert made.on(0) == 1


@BOTH
def test_threads_take_turns_by_slices_at_ticks(make: Any) -> None:
    """Two on one processor: a slice of 0.7 ms is over at each tick of 4 ms."""
    made = scheduler(make, processors([0]), 2)
    made.wake(0, 0)
    made.wake(MS, 1)
    assert where(made, 2) == [0, -1]
    found = []
    at = 0
    for _ in range(4):
        at = made.next_tick(at)
        made.tick(at)
        found.append(where(made, 2))
    assert at == 4 * TICK
    assert found == [[-1, 0], [0, -1], [-1, 0], [0, -1]]
    made.sleep(at, 0)
    assert where(made, 2) == [-1, 0]
    made.sleep(at, 1)
    assert made.next_tick(at) is None


@BOTH
def test_a_processor_that_becomes_idle_takes_who_waits(make: Any) -> None:
    """Thread 1 sleeps on processor 1: it takes thread 2, which waits on 0 and has not just run."""
    made = started(make, TWO, 3)
    assert where(made, 3) == [0, 1, -1]
    made.sleep(MS, 1)
    assert where(made, 3) == [0, -1, 1]


@BOTH
def test_one_that_ran_just_now_is_not_taken(make: Any) -> None:
    """At 4 ms thread 0 gives way to thread 2. 0.4 ms later thread 1 sleeps: thread 0 stays. So does
    who gives way at each tick, as processor 0 switches before 1 looks, until 1 has failed twice."""
    made = started(make, TWO, 3)
    made.tick(TICK)
    assert where(made, 3) == [-1, 1, 0]
    made.sleep(TICK + 4 * MS // 10, 1)
    assert where(made, 3) == [-1, -1, 0]
    made.tick(2 * TICK)  # an idle processor looks at each tick
    assert where(made, 3) == [0, -1, -1]
    made.tick(3 * TICK)
    assert where(made, 3) == [-1, -1, 0]
    made.tick(4 * TICK)
    assert where(made, 3) == [0, -1, 1]


@BOTH
def test_a_processor_that_was_half_used_has_room_for_a_while(make: Any) -> None:
    """Three threads compute on two processors: 8 moves a second, as a quiet Linux was seen to make.

    A processor that has lost one of two threads was used for the other one half of the time. It has
    room until that is 100 / 117, 57 ms later, and takes none for a difference of one; the first two
    attempts after that fail, each 28 ms after the other. By numbers of threads there were 17."""
    made = started(make, TWO, 3)
    for tick in range(1, 5001):
        made.tick(tick * TICK)
    assert 20 * 7.5 < sum(made.migrations) < 20 * 8.5


@BOTH
def test_three_threads_share_two_processors_fairly(make: Any) -> None:
    """Each has about two thirds of a processor, as one moves over now and then; regular times
    favour one of them (0.62, 0.62, 0.76)."""
    made = started(make, TWO, 3)
    ran, at = [0, 0, 0], 0
    while at < 4000 * MS:
        on = where(made, 3)
        after = made.next_tick(at)
        for thread, cpu in enumerate(on):
            ran[thread] += (after - at) * (cpu >= 0)
        at = after
        made.tick(at)
    assert sum(ran) == 2 * at
    assert [each / at for each in ran] == pytest.approx([2 / 3] * 3, abs=0.1)
    assert 4 * 5 < sum(made.migrations) < 4 * 60


@BOTH
def test_running_threads_are_spread_after_some_attempts(make: Any) -> None:
    """Two threads on the two siblings of a core, another core idle: one moves over."""
    made = make(processors([0] * 4, threads_per_core=2), [0, 0], [range(4)] * 2)
    made.use(0, [0, 1])
    made.wake(0, 0)
    made.wake(0, 1)
    assert where(made, 2) == [0, 1]
    made.use(0, range(4))
    at = 0
    while made.on(0) < 2 and made.on(1) < 2:
        at = made.next_tick(at)
        made.tick(at)
        assert at < 200 * MS
    assert list(made.migrations)[Level.CACHE] == 1


@BOTH
def test_threads_leave_processors_that_are_taken_away(make: Any) -> None:
    """All go to processor 3, then back where there is room; each is counted."""
    made = started(make, SQUARE, 4)
    made.use(MS, [3])
    assert sorted(where(made, 4)) == [-1, -1, -1, 3]
    made.use(2 * MS, range(8))
    at = 2 * MS
    for _ in range(100):
        at = made.next_tick(at)
        made.tick(at)
    assert -1 not in where(made, 4)


@BOTH
def test_own_processors_come_before_others(make: Any) -> None:
    """Thread 0 may run on node 0 alone; where node 0 is taken away, anywhere that is allowed."""
    made = make(SQUARE, [0, 0], [[0, 1], range(8)])
    made.wake(0, 0)
    made.use(0, [1, 2])
    assert made.on(0) == 1
    made.use(0, [2, 3])
    assert made.on(0) in (2, 3)
    made.use(0, range(8))
    made.wake(0, 1)
    at = 0
    for _ in range(50):
        at = made.next_tick(at)
        made.tick(at)
    made.sleep(at, 0)
    made.wake(at, 0)
    assert made.on(0) in (0, 1)


MACHINES = [
    TWO,
    SQUARE,
    processors([0] * 8, threads_per_core=2, cores_per_cache=2),
    processors([0, 0, 0, 0, 1, 1, 1, 1], threads_per_core=2),
]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["wake", "wake", "sleep", "tick", "tick", "use"]),
        st.integers(0, 11),
        st.integers(-1, 7),
        st.integers(0, 3 * MS),
    ),
    max_size=120,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MACHINES), st.integers(1, 12), STEPS, st.booleans())
def test_kernel_and_reference_leave_threads_on_the_same_processors(
    setup: OsSetup, threads: int, steps: list[tuple[str, int, int, int]], bound: bool
) -> None:
    """And each processor runs one thread at most, each awake one is somewhere, and no allowed
    processor is idle while a thread waits on it."""
    own = [
        [cpu for cpu in range(len(setup.core)) if not bound or cpu % 2 == thread % 2]
        for thread in range(threads)
    ]
    begin = [thread % len(setup.core) for thread in range(threads)]
    pair = [make(setup, begin, own) for make in (kernel, reference)]
    awake: set[int] = set()
    allowed, now = set(range(len(setup.core))), 0
    for what, number, other, passed in steps:
        thread, cpu = number % threads, other % len(setup.core) if other >= 0 else -1
        on = pair[1].on(thread)
        if what == "tick":
            at = [one.next_tick(now) for one in pair]
            assert at[0] == at[1]
            now = at[0] or now
        else:
            ticks = pair[1].next_tick(now)
            now = min(now + passed, ticks - 1) if ticks else now + passed
        for one in pair:
            if what == "tick" and awake:
                one.tick(now)
            elif what == "wake" and thread not in awake:
                one.wake(now, thread, cpu)
            elif what == "sleep" and on >= 0:
                one.sleep(now, thread)
            elif what == "use":
                allowed = {(number + k) % len(setup.core) for k in range(abs(other) + 1)}
                one.use(now, sorted(allowed))
        if what == "wake":
            awake.add(thread)
        if what == "sleep" and on >= 0:
            awake.discard(thread)
        places = [where(one, threads) for one in pair]
        assert places[0] == places[1]
        assert pair[0].changed() == pair[1].changed()
        assert list(pair[0].migrations) == list(pair[1].migrations)
        running = [at for at in places[0] if at >= 0]
        assert len(running) == len(set(running))
        assert set(running) <= allowed
        assert len(running) <= len(awake)
        if awake:
            assert running
