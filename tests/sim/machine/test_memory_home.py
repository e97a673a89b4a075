"""How long lines of a node's memory wait, window by window, by hand; whole runs of the service hold
the kernel to it (test_shared_service.py).

A window is 100 µs. The controller reads a line in 1 ns and writes one in 2 ns, 100 ns after the
request; full load is 100,000 lines read.
"""

import pytest

from numatwin.sim._kernel import ServiceMachine
from numatwin.sim.machine.reference.memory_home import MemoryHome
from numatwin.sim.machine.reference.service_machine import MemoryUse

NS = 1_000
FULL = 100_000
MACHINE = ServiceMachine(
    read_ps=(1.0 * NS,),
    write_ps=(2.0 * NS,),
    latency_ps=(100.0 * NS,),
    load=(0.0, 1.0),
    load_ratio=(1.0, 3.0),
    core_node=(0,),
    core_threads=(1,),
)
FLAT = MACHINE.replaced(load_ratio=(1.0, 1.0))
READ = MemoryUse(0, 1.0)


def test_latency_settles_where_it_agrees_with_the_load() -> None:
    """At load x, a line takes 1 + 2 x of its time without load. As many lines are under way all the
    time: those of load 1/2 if they did not wait, so x (1 + 2 x) = 1/2.

    window   lines read   load    load * latency    latency from then on
    1        50,000       0.5     0.5 * 1           1.618, that of load 0.309
    2        30,902       0.309   0.309 * 1.618     the same
    """
    home = MemoryHome(MACHINE, 0)
    home.use(READ, FULL / 2, True)
    assert home.settle_waits()
    golden = (1 + 5**0.5) / 2
    assert home.controller_wait_ps == pytest.approx((golden - 1) * 100 * NS)
    home.use(READ, FULL / 2 / golden, True)
    assert not home.settle_waits()
    assert home.settle_waits()  # a window without load
    assert home.controller_wait_ps == 0


def test_writes_are_work_at_their_own_time() -> None:
    """25,000 lines written take as long as 50,000 read."""
    reading, writing = MemoryHome(MACHINE, 0), MemoryHome(MACHINE, 0)
    reading.use(READ, FULL / 2, True)
    writing.use(MemoryUse(0, 0.0, 1.0), FULL / 4, True)
    assert reading.settle_waits()
    assert writing.settle_waits()
    assert reading.controller_wait_ps == writing.controller_wait_ps > 0


def test_a_queue_for_entries() -> None:
    """10 entries have 1 ms in a window. Without links a line holds one for 10 ns: so long they
    suffice for all that the controller can read.

    Each of 5,000 lines holds an entry for 490 ns more, while it waits for a link: 2.5 ms in all. So
    lines wait for an entry until as much as is missing has passed: (2.5 - 1) ms / 5,000 = 300 ns.
    """
    home = MemoryHome(FLAT.replaced(entries=(10.0,)), 0)
    home.use(READ, 5_000, False)
    home.wait_for_link(5_000, 490 * NS)
    assert home.settle_waits()
    assert home.entry_wait_ps == pytest.approx(300 * NS)
    assert home.controller_wait_ps == 0
    home.use(READ, 5_000, False)
    home.wait_for_link(5_000, 190 * NS)  # entries are just enough
    assert not home.settle_waits()
    assert home.settle_waits()
    assert home.entry_wait_ps == 0


def test_without_a_limit_of_entries_nobody_waits_for_one() -> None:
    home = MemoryHome(FLAT, 0)
    home.use(READ, 5_000, False)
    home.wait_for_link(5_000, 490 * NS)
    assert not home.settle_waits()
    assert home.entry_wait_ps == 0


def test_updates_of_the_directory_leave_the_rest_to_pieces() -> None:
    """Of 30,000 near and 10,000 far lines 2 * 3 * 1 / 4 = 15,000 are updated, in 30 µs of 40 + 30:
    pieces have 4/7."""
    home = MemoryHome(FLAT.replaced(directory_in_memory=True), 0)
    home.use(READ, 30_000, True)
    home.use(READ, 10_000, False)
    assert home.settle_directory()
    assert (home.room, home.updating) == (4 / 7, 30_000 * NS)
    home.use(READ, 40_000, True)  # near ones alone: no updates
    assert home.settle_directory()
    assert (home.room, home.updating) == (1.0, 30_000 * NS)
    assert not home.settle_directory()


def test_updates_take_no_more_than_the_window() -> None:
    home = MemoryHome(FLAT.replaced(directory_in_memory=True), 0)
    home.use(READ, 45_000, True)
    home.use(READ, 45_000, False)  # as many updates: 90 µs of writes
    assert home.settle_directory()
    assert home.room == 1 / 2
    assert home.updating == 10_000 * NS
