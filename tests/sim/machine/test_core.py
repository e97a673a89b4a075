"""Cores and threads that move between them, kernel and reference, by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim import _kernel
from numatwin.sim.machine.reference import core as reference
from numatwin.sim.machine.reference import os_thread
from numatwin.sim.machine.reference.core import CoreWork

CORES = pytest.mark.parametrize("make", [_kernel.Core, reference.Core], ids=["kernel", "reference"])
THREADS = pytest.mark.parametrize(
    "make", [_kernel.OsThreads, os_thread.OsThreads], ids=["kernel", "reference"]
)


@CORES
@pytest.mark.parametrize(
    ("work", "takes"),
    [
        (CoreWork(100, 30), 100),  # misses hide behind instructions
        (CoreWork(100, 250), 250),  # or these behind misses
        (CoreWork(100, 250, 40), 290),  # separate instructions overlap with neither
        (CoreWork(separate=40), 40),
    ],
)
def test_a_thread_alone(make: Any, work: CoreWork, takes: int) -> None:
    core = make(1)
    assert core.begin(1000, work) == (1000 + takes, 1000 + takes)
    assert core.held == work.held


@CORES
def test_threads_share_slots_and_take_turns(make: Any) -> None:
    """Two threads: misses of each take twice as long; instructions are served one after the other.

    time  thread  work                   alone                      instructions served
    0     a       100 instructions       100                        0 … 100
    0     b       100 instructions       100                        100 … 200
    150   a       20, misses 90          150 + 2 * 90 = 330         200 … 220
    """
    core = make(2)
    assert core.begin(0, CoreWork(100)) == (100, 100)
    assert core.begin(0, CoreWork(100)) == (100, 200)
    assert core.begin(150, CoreWork(20, 90)) == (330, 330)
    assert core.held == 90


@THREADS
def test_a_moved_thread_goes_on_at_its_new_core(make: Any) -> None:
    """Cores 0 and 1 are of nodes 0 and 1; threads 0 and 1 begin on core 0, thread 2 on core 1.

    time   what                                            ends
    0      thread 0: misses of 100, two threads: 200       200
    50     thread 0 moves: 3/4 left, misses of 75 on a
           core of two threads: 150                        200
    120    thread 2 moves to core 0, doing nothing
    120    thread 0: nobody else on core 1 any more, but
           what is under way ends as it was said           200
    200    thread 0: misses of 100, alone                  300
    """
    threads = make([0, 1], [0, 0, 1])
    assert threads.begin(0, 0, CoreWork(held=100)) == 200
    assert threads.move(50, 0, 1) == 200
    assert (threads.core_of(0), threads.node_of(0)) == (1, 1)
    assert threads.move(120, 2, 0) == 120
    assert threads.begin(200, 0, CoreWork(held=100)) == 300
    # Use is counted where it was made.
    assert (threads.busy(0, 300), threads.busy(1, 300)) == (50, 250)
    assert (threads.busy(0, 60), threads.busy(1, 250)) == (50, 200)
    assert (threads.held(0, 300), threads.held(1, 300)) == (25, 175)
    # Misses come evenly: 75, and half of the 100 of the phase under way.
    assert (threads.held(0, 60), threads.held(1, 250)) == (25, 125)


@THREADS
def test_a_thread_on_a_busy_core_is_held_up(make: Any) -> None:
    """Threads 0 and 1 on core 0: 1's instructions wait for 0's, from 0 to 100; at 150 thread 1
    moves to core 1 with the last quarter of its phase, and is held up no more."""
    threads = make([0, 0], [0, 0])
    assert threads.begin(0, 0, CoreWork(100)) == 100
    assert threads.begin(0, 1, CoreWork(100)) == 200
    assert threads.held_up(1, 150) == 50
    assert threads.move(150, 1, 1) == 175  # the phase took 200: a quarter of it is 25 instructions
    assert threads.held_up(1, 175) == 50
    assert threads.extend(1, 180) == 180  # memory takes longer
    assert threads.extend(1, 160) == 180
    assert threads.held_up(1, 180) == 55
    assert threads.busy(1, 180) == 30


@THREADS
def test_a_pinned_thread_stays(make: Any) -> None:
    threads = make([0, 1], [0])
    threads.pin(0)
    with pytest.raises(RuntimeError, match="thread 0 is pinned to its core"):
        threads.move(0, 0, 1)
    assert threads.core_of(0) == 0


@THREADS
def test_what_is_under_way_counts_from_the_start_of_counting(make: Any) -> None:
    threads = make([0], [0])
    threads.begin(0, 0, CoreWork(100))
    threads.start_counting(40)
    assert [threads.busy(0, now) for now in (40, 70, 100, 200)] == [0, 30, 60, 60]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 300),
            st.integers(0, 3),
            st.one_of(
                st.integers(0, 2),
                st.builds(CoreWork, st.floats(0, 500), st.floats(0, 500), st.floats(0, 50)),
            ),
        ),
        max_size=40,
    )
)
def test_kernel_and_reference_agree(
    steps: list[tuple[int, int, int | CoreWork]],
) -> None:
    """Four threads on three cores: phases and moves at any time; none begins before the end of the
    one before it. Threads never ran longer than time passed."""
    both = [make([0, 0, 1], [0, 0, 1, 2]) for make in (_kernel.OsThreads, os_thread.OsThreads)]
    now, ends = 0, [0] * 4
    for after, thread, what in steps:
        now += after
        if isinstance(what, int):
            found = [threads.move(now, thread, what) for threads in both]
        elif ends[thread] <= now:
            found = [threads.begin(now, thread, what) for threads in both]
        else:
            continue
        assert found[0] == found[1] >= now
        ends[thread] = found[0]
        for core in range(3):
            assert both[0].busy(core, now) == both[1].busy(core, now) >= 0
            assert both[0].held(core, now) == both[1].held(core, now)
        assert sum(both[0].busy(core, now) for core in range(3)) <= 4 * now
        held_up = [threads.held_up(thread, now) for threads in both]
        assert held_up[0] == held_up[1] >= 0
