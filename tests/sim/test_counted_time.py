"""Times of counted commands, against what is worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from numatwin.sim.run.counted_time import PLACEMENTS, counted_time
from numatwin.topologies import load_machine
from numatwin.topologies.emulator.traffic import MATRICES, Counts, Traffic

AMD = load_machine("amd-8n-ht")
CPUS = tuple(int(node) for node in np.repeat(np.arange(8), 8))


def counts(instructions: dict[int, int], **lines: dict[tuple[int, int], int]) -> Counts:
    """Of processors, and of pairs of nodes."""
    pairs = {name: np.zeros((8, 8), dtype=np.int64) for name in MATRICES}
    for name, cells in lines.items():
        for pair, count in cells.items():
            pairs[name][pair] = count
    executed = np.zeros(64, dtype=np.int64)
    for cpu, count in instructions.items():
        executed[cpu] = count
    return Counts(pairs, np.zeros((8, 4), dtype=np.int64), instructions=executed)


def traffic(*intervals: Counts) -> Traffic:
    return Traffic(AMD, 64, (1, 2, 3), intervals[0], None, (), intervals, CPUS)


def test_instructions_alone_take_their_time() -> None:
    found = counted_time(traffic(counts({0: 22_000_000})))
    assert found.time_s == pytest.approx(0.01, rel=1e-3)  # 2.2 GHz, one a cycle
    assert found.least_s == pytest.approx(found.most_s)
    assert list(found.binding) == ["instructions on node 0"]


def test_a_chain_waits_for_each_line() -> None:
    lines = {(0, 1): 1_000_000}
    one = counts({0: 3_000_000}, memory_reads=lines, serial_misses=lines)
    found = counted_time(traffic(one))
    # 136 ns to the neighbour; few lines on links, whose wait is short.
    assert found.time_s == pytest.approx(0.136, rel=0.03)
    assert found.most_s == pytest.approx(found.time_s, rel=0.03)
    # 11.5 at a time, which wait for each other at the link.
    assert 0.136 / 11.5 < found.least_s < 1.25 * 0.136 / 11.5
    assert list(found.binding) == ["waiting for lines on node 0"]
    # 85 ns, and 3 ns more as the controller has something to do.
    assert found.placements["all local"] == pytest.approx(0.088, rel=0.01)
    assert found.placements["where used most"] == pytest.approx(0.088, rel=0.01)
    assert found.placements["all local"] < found.placements["interleaved"] < 0.2


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
