"""Times of counted commands, against what is worked out by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from numatwin.sim.run.counted_time import PLACEMENTS, counted_time
from numatwin.topologies import Machine, MachineDescription, build_machine, load_machine
from numatwin.topologies.emulator.traffic import BY_PROCESSOR, MATRICES, Counts, Traffic


def as_known(name: str) -> Machine:
    """A machine whose facts have no ranges."""

    def known(part: Any) -> Any:
        if isinstance(part, dict):
            return {
                key: known(value) for key, value in part.items() if key not in ("range", "source")
            }
        return [known(value) for value in part] if isinstance(part, list) else part

    plain = load_machine(name).description.model_dump(mode="json", exclude_none=True)
    return build_machine(MachineDescription.model_validate(known(plain)))


AMD = as_known("amd-8n-ht")
NO_WAITS = np.zeros((2, 3), dtype=np.int64)
CPUS = tuple(int(node) for node in np.repeat(np.arange(8), 8))


def counts(
    instructions: dict[int, int],
    mispredictions: dict[int, int] | None = None,
    *,
    waits: tuple[int, int, int] = (0, 0, 0),
    tried_call: int = 0,
    of_first: dict[str, int] | None = None,
    **lines: dict[tuple[int, int], int],
) -> Counts:
    """Of processors, of the first one alone, and of pairs of nodes. Misses are as far from each
    other as they can be, unless ``looked_ahead`` is given."""
    pairs = {name: np.zeros((8, 8), dtype=np.int64) for name in MATRICES}
    for name, cells in lines.items():
        for pair, count in cells.items():
            pairs[name][pair] = count
    executed = {name: np.zeros(64, dtype=np.int64) for name in BY_PROCESSOR}
    for name, numbers in (
        ("instructions", instructions),
        ("looked_ahead", instructions),
        ("mispredictions", mispredictions or {}),
        *((name, {0: count}) for name, count in (of_first or {}).items()),
    ):
        for cpu, count in numbers.items():
            executed[name][cpu] = count
    hits, waited = np.zeros((8, 4), dtype=np.int64), np.zeros((64, 3), dtype=np.int64)
    waited[0] = waits
    return Counts(pairs, hits, executed=executed, waits=waited, tried_call=tried_call)


def traffic(*intervals: Counts, machine: Machine = AMD) -> Traffic:
    return Traffic(machine, 64, (1, 2, 3), intervals[0], None, (), intervals, CPUS)


def test_instructions_alone_take_their_time() -> None:
    found = counted_time(traffic(counts({0: 22_000_000})))
    assert found.time_s == pytest.approx(0.01, rel=1e-3)  # 2.2 GHz, one a cycle
    assert found.least_s == pytest.approx(0.01 / 8, rel=1e-3)  # as many as a core dispatches
    assert found.most_s == pytest.approx(found.time_s)
    assert list(found.binding) == ["instructions on node 0"]


def test_a_mispredicted_branch_costs_its_cycles() -> None:
    """1 s / 2.2 GHz for each instruction; 15 times that for a branch, 11 to 20."""
    found = counted_time(traffic(counts({0: 22_000_000}, {0: 2_200_000})))
    assert found.time_s == pytest.approx(0.01 + 15 * 0.001, rel=1e-3)
    assert found.least_s == pytest.approx(0.01 / 8 + 11 * 0.001, rel=1e-3)
    assert found.most_s == pytest.approx(0.01 + 20 * 0.001, rel=1e-3)


def test_what_is_executed_as_one_counts_once() -> None:
    """22 million instructions, 2 million of them branches that go with their comparisons."""
    found = counted_time(traffic(counts({0: 22_000_000}, of_first={"fused": 2_000_000})))
    assert found.time_s == pytest.approx(20e6 / 2.2e9, rel=1e-3)


def test_a_mispredicted_branch_waits_for_the_cache_that_its_block_read() -> None:
    """1, 2 and 3 million branches, 3, 15 and 40 cycles or so each: as the machine file states."""
    found = counted_time(
        traffic(counts({0: 22_000_000}, {0: 6_000_000}, waits=(1_000_000, 2_000_000, 3_000_000)))
    )
    first, second, last = (cache.latency_ns or 0.0 for cache in AMD.nodes[0].caches)
    assert last > second > first > 0
    waits_s = 1e-3 * first + 2e-3 * second + 3e-3 * last
    assert found.time_s == pytest.approx(0.01 + 15 * 6e6 / 2.2e9 + waits_s, rel=1e-3)
    assert found.least_s == pytest.approx(0.01 / 8 + 11 * 6e6 / 2.2e9, rel=1e-3)  # nothing waits
    assert found.most_s == pytest.approx(0.01 + 20 * 6e6 / 2.2e9 + waits_s, rel=1e-3)


def test_system_calls_take_as_long_as_one_that_does_nothing() -> None:
    """A machine whose call that does nothing takes 200 ns. The guest's kernel needs 300
    instructions for that one.

    | instructions, of the program and of 1,000 calls | time | at least |
    | 2.2 M + 300,000 | 1 ms + 0.2 ms | 1/8 ms + 0.2 ms |
    | 2.2 M + 900,000 | 1 ms + 0.6 ms | 1/8 ms + 0.2 ms + 600,000 at 8 a cycle |
    """
    stated = tuple(replace(node, system_call_ns=200.0) for node in AMD.nodes)
    machine = replace(AMD, nodes=stated)
    for in_calls, time_s, beyond in ((300_000, 1.2e-3, 0), (900_000, 1.6e-3, 600_000)):
        of_calls = {"calls": 1000, "call_instructions": in_calls}
        one = counts({0: 2_200_000 + in_calls}, of_first=of_calls, tried_call=300)
        found = counted_time(traffic(one, machine=machine))
        assert found.time_s == pytest.approx(time_s, rel=1e-3)
        least_s = 1e-3 / 8 + 0.2e-3 + beyond / 8 / 2.2e9
        assert found.least_s == pytest.approx(least_s, rel=1e-3)
        # Not stated, it takes 141 ns, 40 to 500.
        guessed = counted_time(traffic(one))
        assert guessed.time_s == pytest.approx(1e-3 + (time_s - 1e-3) * 141.4 / 200, rel=1e-3)
        assert guessed.most_s == pytest.approx(1e-3 + (time_s - 1e-3) * 500 / 200, rel=1e-3)


def test_the_reorder_window_limits_what_is_under_way() -> None:
    """128 instructions of look-ahead, a miss each 32: 4 misses at a time instead of 11.5. A
    controller with a sixth of its load adds some per cent."""
    lines = {(0, 0): 1_000_000}
    near, far = (
        counted_time(
            traffic(counts({0: 1_000_000}, of_first={"looked_ahead": ahead}, memory_reads=lines))
        )
        for ahead in (4_000_000, 32_000_000)
    )
    assert AMD.nodes[0].reorder_window == 128
    assert 0.085 / 4 < far.time_s < 1.1 * 0.085 / 4
    assert far.time_s > 2.5 * near.time_s
    assert far.least_s == pytest.approx(near.least_s, rel=1e-3)  # as many as slots hold


def test_without_a_known_ipc_the_middle_counts() -> None:
    """Between one a cycle and eight: √8. Interruptions take a hundredth of this host."""
    zen5 = as_known("zen5-2c")
    (node,) = zen5.nodes
    assert node.ipc is None
    assert node.clock_Hz is not None
    pairs = {name: np.zeros((1, 1), dtype=np.int64) for name in MATRICES}
    executed = {name: np.zeros(2, dtype=np.int64) for name in BY_PROCESSOR}
    executed["instructions"][0] = 10_000_000
    one = Counts(pairs, np.zeros((1, 4), dtype=np.int64), executed=executed, waits=NO_WAITS)
    found = counted_time(Traffic(zen5, 64, (1, 2, 3), one, None, (), (one,), (0, 0)))
    assert found.time_s == pytest.approx(1e7 / node.clock_Hz / 8**0.5, rel=0.015)
    assert found.least_s == pytest.approx(1e7 / node.clock_Hz / 8, rel=0.015)
    assert found.most_s == pytest.approx(1e7 / node.clock_Hz, rel=0.015)


def test_the_interval_reaches_to_the_ends_of_facts() -> None:
    """Controllers of 10 to 16.4 GB/s: 64e7 bytes, which a core's prefetchers ask for."""
    plain = AMD.description.model_dump(mode="json", exclude_none=True)
    (node,) = plain["node_types"].values()
    node["memory"]["bandwidth"] = {"value": "16.4 GB/s", "range": ["10 GB/s", "16.4 GB/s"]}
    ranged = build_machine(MachineDescription.model_validate(plain))
    lines = {(0, 0): 10_000_000}
    executed = dict.fromkeys(range(8), 1_000_000)
    one = counts(executed, memory_reads=lines, streamed_misses=lines)
    known, found = counted_time(traffic(one)), counted_time(traffic(one, machine=ranged))
    assert (found.time_s, found.least_s) == (known.time_s, known.least_s)
    assert known.most_s == pytest.approx(64e7 / 16.4e9, rel=0.02)
    # Half of the draws are at its value, the best: a tenth of the range's logarithm holds 5%.
    assert found.most_s == pytest.approx(64e7 / (10e9 * 1.64**0.1), rel=0.02)


def test_instructions_and_streamed_lines_overlap_or_do_not() -> None:
    """10 ms of instructions, of which a line is streamed from time to time: the longer of both, or
    one after the other.
    """
    lines = {(0, 0): 1_000_000}
    alone = counted_time(traffic(counts({0: 22}, memory_reads=lines, streamed_misses=lines)))
    assert 0.003 < alone.time_s < 0.009
    one = counts({0: 22_000_000}, memory_reads=lines, streamed_misses=lines)
    found = counted_time(traffic(one))
    assert found.time_s == pytest.approx(0.01, rel=1e-3)
    # With fewer lines a second the controller takes a little less for each.
    assert found.most_s == pytest.approx(0.01 + alone.time_s, rel=0.05)
    assert found.least_s == pytest.approx(max(0.01 / 8, alone.least_s), rel=1e-3)


def test_a_chain_waits_for_each_line() -> None:
    lines = {(0, 1): 1_000_000}
    one = counts({0: 3_000_000}, memory_reads=lines, serial_misses=lines)
    found = counted_time(traffic(one))
    # 136 ns to the neighbour; few lines on links, whose wait is short.
    assert found.time_s == pytest.approx(0.136, rel=0.03)
    # Each after a walk of the page table, to the last-level cache.
    walk_s = 1e-9 * (AMD.nodes[0].caches[-1].latency_ns or 0.0)
    assert walk_s > 0
    assert found.most_s == pytest.approx(found.time_s + 1_000_000 * walk_s, rel=0.03)
    # 11.5 at a time, which wait for each other at the link.
    assert 0.136 / 11.5 < found.least_s < 1.25 * 0.136 / 11.5
    assert list(found.binding) == ["waiting for lines on node 0"]
    # 85 ns, and 3 ns more as the controller has something to do.
    assert found.placements["all local"] == pytest.approx(0.088, rel=0.01)
    assert found.placements["where used most"] == pytest.approx(0.088, rel=0.01)
    assert found.placements["all local"] < found.placements["interleaved"] < 0.2


def test_the_wrong_path_fetches_nothing_or_all_of_what_comes_next() -> None:
    """A million misses, one after the other: 85 ns each; or 11.5 at a time. The mean of both."""
    lines = {(0, 0): 1_000_000}
    chained = counted_time(traffic(counts({0: 3_000_000}, memory_reads=lines, serial_misses=lines)))
    free = counted_time(traffic(counts({0: 3_000_000}, memory_reads=lines)))
    waiting = counts({0: 3_000_000}, memory_reads=lines, serial_misses=lines, branch_misses=lines)
    branched = counted_time(traffic(waiting))
    assert branched.time_s == pytest.approx((chained.time_s * free.time_s) ** 0.5, rel=1e-3)
    assert chained.time_s > 5 * free.time_s
    assert (branched.least_s, branched.most_s) == (chained.least_s, chained.most_s)


def test_what_does_not_wait_goes_along_with_what_does() -> None:
    """Of a core's 11.5 misses under way, one is of the chain: two others need no time of theirs
    (else a sixth more), but for what a controller with more to do takes longer."""
    chain, all_ = {(0, 0): 1_000_000}, {(0, 0): 3_000_000}
    alone = counted_time(traffic(counts({0: 3_000_000}, memory_reads=chain, serial_misses=chain)))
    both = counted_time(traffic(counts({0: 3_000_000}, memory_reads=all_, serial_misses=chain)))
    assert both.time_s == pytest.approx(alone.time_s, rel=0.05)
    assert both.time_s >= alone.time_s


def test_all_cores_of_a_node_meet_at_a_link() -> None:
    lines = {(0, 1): 10_000_000}
    executed = dict.fromkeys(range(8), 1_000_000)
    one = counts(executed, memory_reads=lines, streamed_misses=lines)
    found = counted_time(traffic(one))
    assert found.time_s == pytest.approx(64e7 / 5.8e9, rel=0.02)  # what that pair was seen to draw
    assert found.placements["all local"] == pytest.approx(64e7 / 16.4e9, rel=0.02)


def test_nodes_end_one_after_the_other() -> None:
    at_once = counts({0: 22_000_000, 8: 44_000_000})
    assert counted_time(traffic(at_once)).time_s == pytest.approx(0.02, rel=1e-3)
    in_turn = counts({0: 22_000_000}), counts({8: 44_000_000})
    assert counted_time(traffic(*in_turn)).time_s == pytest.approx(0.03, rel=1e-3)


def test_many_intervals_are_played_together() -> None:
    parts = [counts({0: 2_200_000}) for _ in range(120)]
    assert counted_time(traffic(*parts)).time_s == pytest.approx(0.12, rel=1e-3)


def test_placements_have_their_names() -> None:
    found = counted_time(traffic(counts({0: 1000}, memory_reads={(0, 1): 10})))
    assert set(found.placements) == set(PLACEMENTS)
    assert set(found.as_json()) == {"time_s", "interval_s", "binding", "placements_s"}
