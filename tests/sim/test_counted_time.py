"""Times of counted commands, against what is worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from numatwin.sim.run.counted_time import PLACEMENTS, counted_time
from numatwin.topologies import load_machine
from numatwin.topologies.emulator.traffic import MATRICES, Counts, Traffic

AMD = load_machine("amd-8n-ht")
CPUS = tuple(int(node) for node in np.repeat(np.arange(8), 8))


def counts(
    instructions: dict[int, int],
    mispredictions: dict[int, int] | None = None,
    **lines: dict[tuple[int, int], int],
) -> Counts:
    """Of processors, and of pairs of nodes."""
    pairs = {name: np.zeros((8, 8), dtype=np.int64) for name in MATRICES}
    for name, cells in lines.items():
        for pair, count in cells.items():
            pairs[name][pair] = count
    executed, wrong = (np.zeros(64, dtype=np.int64) for _ in range(2))
    for found, numbers in ((executed, instructions), (wrong, mispredictions or {})):
        for cpu, count in numbers.items():
            found[cpu] = count
    hits = np.zeros((8, 4), dtype=np.int64)
    return Counts(pairs, hits, instructions=executed, mispredictions=wrong)


def traffic(*intervals: Counts) -> Traffic:
    return Traffic(AMD, 64, (1, 2, 3), intervals[0], None, (), intervals, CPUS)


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


def test_without_a_known_ipc_the_middle_counts() -> None:
    """Between one a cycle and eight: √8. Interruptions take a hundredth of this host."""
    zen5 = load_machine("zen5-2c")
    (node,) = zen5.nodes
    assert node.ipc is None
    assert node.clock_Hz is not None
    pairs = {name: np.zeros((1, 1), dtype=np.int64) for name in MATRICES}
    executed, none = np.array([10_000_000, 0]), np.zeros(2, dtype=np.int64)
    one = Counts(
        pairs, np.zeros((1, 4), dtype=np.int64), instructions=executed, mispredictions=none
    )
    found = counted_time(Traffic(zen5, 64, (1, 2, 3), one, None, (), (one,), (0, 0)))
    assert found.time_s == pytest.approx(1e7 / node.clock_Hz / 8**0.5, rel=0.015)
    assert found.least_s == pytest.approx(1e7 / node.clock_Hz / 8, rel=0.015)
    assert found.most_s == pytest.approx(1e7 / node.clock_Hz, rel=0.015)


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
