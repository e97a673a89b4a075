"""Cores and their hardware threads, by hand; whole traces of ERIS hold the kernel to them."""

import pytest

from numatwin.sim.machine.reference.core import Core, CoreWork


@pytest.mark.parametrize(
    ("work", "takes"),
    [
        (CoreWork(100, 30), 100),  # misses hide behind instructions
        (CoreWork(100, 250), 250),  # or these behind misses
        (CoreWork(100, 250, 40), 290),  # separate instructions overlap with neither
        (CoreWork(separate=40), 40),
    ],
)
def test_a_thread_alone(work: CoreWork, takes: int) -> None:
    core = Core(1)
    assert core.begin(1000, work) == (1000 + takes, 1000 + takes)
    assert core.held == work.held


def test_threads_share_slots_and_take_turns() -> None:
    """Two threads: misses of each take twice as long; instructions are served one after the other.

    time  thread  work                   alone                      instructions served
    0     a       100 instructions       100                        0 … 100
    0     b       100 instructions       100                        100 … 200
    150   a       20, misses 90          150 + 2 * 90 = 330         200 … 220
    """
    core = Core(2)
    assert core.begin(0, CoreWork(100)) == (100, 100)
    assert core.begin(0, CoreWork(100)) == (100, 200)
    assert core.begin(150, CoreWork(20, 90)) == (330, 330)
    assert core.held == 90
