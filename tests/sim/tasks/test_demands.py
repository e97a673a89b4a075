"""What entries of operators demand, worked by hand."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.machine.costs import CostModel
from numatwin.sim.systems.tasks.cache_sharing import AtRandom
from numatwin.sim.systems.tasks.entry_costs import (
    Demands,
    EntryCosts,
    InOrder,
    found_of,
    lines_per_entry,
)
from numatwin.sim.systems.tasks.program import MemoryUse
from numatwin.topologies import load_machine

MIB = 2.0**20

# Of the machine: 15 cores a node, one last-level cache of 37.5 MiB, 20 ns; 256 KiB a core.
MACHINE = load_machine("xeon-4s-ivb")


@pytest.fixture(scope="module")
def costs() -> EntryCosts:
    return EntryCosts(CostModel(MACHINE), np.full(4, 15))


def test_bytes_in_order_are_lines_and_what_is_written_is_fetched_first(costs: EntryCosts) -> None:
    cost = costs.of(0.0, [InOrder("part", read_bytes=16.0), InOrder("local", written_bytes=8.0)])
    assert cost.memory == (MemoryUse("part", 0.25), MemoryUse("local", 0.125, 0.125))
    assert cost.separate_s.tolist() == [0.0] * 4


UNCOVERED = CostModel(
    replace(MACHINE, nodes=tuple(replace(n, stream_uncovered=0.1) for n in MACHINE.nodes))
)


def waited_s(work_cycles: float, *tables_MiB: float, read_twice: bool = False) -> list[float]:
    """Of a line with so much work, beside scans of tables of so much on each of the four nodes."""
    costs = EntryCosts(UNCOVERED, np.full(4, 15))
    for k, size in enumerate(tables_MiB):
        for _ in range(1 + read_twice):
            costs.survey.in_order(str(k), np.full(4, size * MIB), size * MIB)
    line = costs.of(work_cycles * UNCOVERED.ipc[0], [InOrder("part", read_bytes=64.0)])
    return list(line.separate_s)


def test_a_stream_waits_where_prefetchers_start_anew() -> None:
    """A tenth of the latency for each line where the core sees no other; 168 instructions, four a
    cycle, hold 2 lines of 21 cycles each, of the 10 that the core can wait for.
    """
    memory_s = 0.1 * UNCOVERED.idle_s[0, 0] * (1.0 - 2 / 10)
    cache_s = 0.1 * UNCOVERED.last_cache.latency_s[0] * (1.0 - 2 / 10)
    assert waited_s(21.0) == pytest.approx([memory_s] * 4)
    # All others that it can wait for are in sight.
    assert waited_s(1.0) == [0.0] * 4
    # Of 37.5 MiB the last-level cache keeps all, of twice as much half; what two scans read is
    # there once.
    assert waited_s(21.0, 20.0, 17.0, read_twice=True) == pytest.approx([cache_s] * 4)
    assert waited_s(21.0, 75.0) == pytest.approx([(memory_s + cache_s) / 2] * 4)
    # All that a core's own cache holds comes from there.
    assert waited_s(21.0, 0.15, 0.1) == [0.0] * 4
    assert waited_s(21.0, 0.15, 0.11) == pytest.approx([cache_s] * 4)


@pytest.mark.parametrize(
    ("size", "missed", "waited_ns"),
    [
        (0.1 * MIB, 0.0, 0.0),  # in each core's own cache
        (25 * MIB, 0.0, (1 - 0.25 / 25) * 20.0),  # in the last-level cache, but for the own one's
        (375 * MIB, 0.9, (0.1 - 0.25 / 375) * 20.0),  # a tenth of it is there
    ],
)
def test_accesses_to_a_structure_of_all_hit_by_its_size(
    costs: EntryCosts, size: float, missed: float, waited_ns: float
) -> None:
    # An instruction each: as many misses under way as the core has line-fill buffers, 10.
    cost = costs.of(1.0, [], [AtRandom("interleaved", 1.0, size)])
    if missed:
        (use,) = cost.memory
        assert use.place == "interleaved"
        assert use.read == pytest.approx(missed, rel=1e-2)
    else:
        assert cost.memory == ()
    assert cost.separate_s * 1e9 == pytest.approx([waited_ns / 10] * 4, rel=0.02)


def test_a_group_table_of_each_task_shares_the_cache_with_those_of_all_others(
    costs: EntryCosts,
) -> None:
    # 2.5 MiB for each of 15 threads fill the cache; 5 MiB find half of it.
    fits = costs.of(1.0, [], [AtRandom("local", 1.0, 2.4 * MIB, own=True, written=True)])
    assert fits.memory == ()
    half = costs.of(1.0, [], [AtRandom("local", 1.0, 5 * MIB, own=True, written=True)])
    (use,) = half.memory
    assert (use.read, use.written) == pytest.approx((0.5, 0.5), rel=1e-2)


def test_lines_in_order_and_at_random_are_under_way_for_as_long_as_each_takes(
    costs: EntryCosts,
) -> None:
    # A line in order, 16 under way; a line at random, all miss, 10 under way.
    size = 1e6 * MIB
    cost = costs.of(1.0, [InOrder("part", read_bytes=64.0)], [AtRandom("part", 1.0, size)])
    assert cost.misses_at_once == pytest.approx([2 / (1 / 16 + 1 / 10)] * 4, rel=1e-3)


def test_a_reorder_window_of_instructions_limits_random_misses(costs: EntryCosts) -> None:
    # 168 instructions hold two accesses of 84 each.
    cost = costs.of(84.0, [], [AtRandom("part", 1.0, 1e6 * MIB)])
    assert cost.misses_at_once == pytest.approx([2.0] * 4)


def test_loops_follow_each_other_and_one_hides_its_own_misses_alone(costs: EntryCosts) -> None:
    """The first has 84 instructions at 0.85 a cycle, half of the machine's 1.7; the second is an
    access at a time to what no cache holds."""
    size = 1e6 * MIB
    works = Demands(84.0, [InOrder("part", read_bytes=64.0)], ipc=0.85)
    waits = Demands(21.0, [], [AtRandom("part", 1.0, size)], at_once=1.0)
    cost = costs.of_loops([works, waits])
    one, other = cost.loops
    assert one.instructions_s == pytest.approx(costs.of(2 * 84.0).instructions_s)
    assert other.misses_at_once == pytest.approx([1.0] * 4)
    assert cost.instructions_s == pytest.approx(one.instructions_s + other.instructions_s)
    (use,) = cost.memory
    assert use.read == pytest.approx(2.0, rel=1e-3)
    assert cost.misses_at_once == pytest.approx([2 / (1 / 16 + 1)] * 4, rel=1e-3)


def test_few_entries_take_a_line_each_and_all_entries_share_lines() -> None:
    # 16 bits: 32 rows a line.
    in_order, alone = lines_per_entry(16, 1e-7)
    assert (in_order, alone) == pytest.approx((0.0, 1.0), abs=1e-5)
    assert lines_per_entry(16, 1.0) == (1 / 32, 0.0)
    # Every 32nd row: a line is read with probability 1 - (31/32)^32, one entry a line on average.
    p = 1 - (31 / 32) ** 32
    assert lines_per_entry(16, 1 / 32) == pytest.approx((p * p, p * (1 - p)))


@given(st.integers(1, 64), st.floats(0.0, 1.0))
def test_an_entry_takes_at_most_a_line_and_at_least_its_bits(bits: int, density: float) -> None:
    lines = sum(lines_per_entry(bits, density))
    assert bits / 512 * (1 - 1e-9) <= lines <= 1.0


@given(st.floats(1, 1e9), st.floats(1e-3, 1e9))
def test_no_more_groups_are_found_than_there_are_nor_than_entries(groups: float, n: float) -> None:
    found = found_of(groups, n)
    assert 0 < found <= min(groups, n) * (1 + 1e-9)


def test_groups_found_are_those_of_a_poisson_number_each() -> None:
    assert found_of(100.0, 100.0) == pytest.approx(100 * (1 - exp(-1)))


@given(st.floats(0.0, 1.0), st.integers(1, 4))
def test_loops_that_access_one_structure_share_it(part: float, loops: int) -> None:
    """As one loop with all accesses does; of the lines that they fetch, a part is written back."""
    costs = EntryCosts(CostModel(MACHINE), np.full(4, 15))

    def memory(count: float, times: int) -> MemoryUse:
        one = AtRandom("local", count, 100 * MIB, written=part, name="reused")
        (use,) = costs.of_loops([Demands(1.0, [], [one])] * times).memory
        return use

    several, one = memory(1.0, loops), memory(float(loops), 1)
    # The last-level cache holds 37.5 MiB of the 100, and the core's own ones none besides.
    assert several.read == pytest.approx(one.read) == pytest.approx(loops * (1 - 0.375), rel=0.01)
    assert several.written == pytest.approx(part * several.read)
