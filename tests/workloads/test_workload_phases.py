"""A workload over time: its phases, the mix in each, and when keys move."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from known import known

from numatwin.inputs import parse_yaml
from numatwin.workloads import Workload, load_workload, workload_from_document

HEAD = """
name: test
objects:
  index: {kind: index, keys: 1000}
  other: {kind: index, keys: 500}
  column: {kind: column, entries: 10}
operations:
  lookup: {kind: lookup, object: index, share: 3}
  upsert:
    kind: upsert
    object: index
    keys: {distribution: moving_hot_range, from: 0, to: 100, step: 100, every: 10 s, moves: 9}
  scan: {kind: scan, object: column, share: 4, selectivity: 0.5, result: positions}
"""


def workload(phases: str = "") -> Workload:
    return workload_from_document(parse_yaml(HEAD + phases, "test.yaml"), Path())


def test_without_phases_there_is_one() -> None:
    steady = workload()
    assert steady.phase_starts == (0.0,)
    for time_s in (0.0, 5.0, 1e9):
        assert steady.at(time_s) is steady.phases[0]
    state = steady.at(0)
    assert (state.name, state.start_s) == ("start", 0.0)
    shares = {name: op.share for name, op in state.operations.items()}
    assert shares == {"lookup": 0.375, "upsert": 0.125, "scan": 0.5}
    scan = state.operations["scan"]
    assert (scan.kind, scan.object, scan.keys) == ("scan", "column", None)
    assert (scan.selectivity, scan.result) == (0.5, "positions")


PHASES = """
phases:
  - {start: 15 s, name: more-upserts, operations: {upsert: {share: 5}}}
  - start: 40 s
    name: hot
    operations:
      lookup: {keys: {distribution: hot_range, from: 200, to: 300}}
      upsert: {share: 1, keys: {distribution: uniform}}
"""


def test_phases_change_what_they_name_and_keep_the_rest() -> None:
    phased = workload(PHASES)
    assert phased.phase_starts == (0.0, 15.0, 40.0)
    assert [phased.at(t).name for t in (14.9, 15, 39.9, 40)] == [
        "start", "more-upserts", "more-upserts", "hot",
    ]  # fmt: skip
    second, third = phased.at(20).operations, phased.at(40).operations
    assert [op.share for op in second.values()] == [3 / 12, 5 / 12, 4 / 12]
    assert [op.share for op in third.values()] == [3 / 8, 1 / 8, 4 / 8]
    assert known(third["lookup"].keys).shares([0, 200, 300, 1000]).tolist() == [0, 1, 0]
    assert phased.operations["upsert"].share == 1.0


# The range moves at 10, 20, 30, …: at 15 a phase starts that leaves it alone; at 40 it is gone.
def test_keys_that_a_phase_leaves_alone_go_on_moving() -> None:
    phased = workload(PHASES)
    assert phased.change_times(100.0) == [10, 15, 20, 30, 40]
    for time_s, first in ((0, 0), (10, 100), (15, 100), (20, 200), (30, 300), (39.9, 300)):
        state = phased.at(time_s)
        keys = known(state.operations["upsert"].keys)
        inside = keys.shares([first, first + 100], time_s - state.start_s)
        assert inside.tolist() == [1.0]


def test_change_times_end_at_the_horizon() -> None:
    assert workload().change_times(30.0) == [10, 20]
    assert workload(PHASES).change_times(12.0) == [10]
    assert workload(PHASES).change_times(0.0) == []


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=20, unique=True))
def test_each_change_time_finds_its_phase(starts_ns: list[int]) -> None:
    rows = [
        f"  - {{start: {2 * start} ns, name: p{k}, operations: {{lookup: {{share: {k + 1}}}}}}}"
        for k, start in enumerate(sorted(starts_ns))
    ]
    phased = workload("phases:\n" + "\n".join(rows))
    until_s = phased.phase_starts[-1] + 1.0
    times = phased.change_times(until_s)
    assert set(phased.phase_starts[1:]) <= set(times)
    assert times == sorted(times)
    for state in phased.phases:
        assert phased.at(state.start_s) is state
        assert sum(op.share for op in state.operations.values()) == pytest.approx(1.0)


# Figure 13 of ERIS: 10 s uniform, then keys 128M-384M, four shifts of 8M keys to the left, 20 s
# apart.
def test_eris_moving_range_is_the_published_experiment() -> None:
    eris = load_workload("eris-moving-range")
    assert eris.change_times(110.0) == [10, 30, 50, 70, 90]
    for time_s, first in ((10, 128), (30, 120), (50, 112), (70, 104), (90, 96), (109, 96)):
        state = eris.at(time_s)
        keys = known(state.operations["lookup"].keys)
        bounds = [first * 1_000_000, (first + 256) * 1_000_000]
        assert keys.shares(bounds, time_s - state.start_s).tolist() == [1.0]
    uniform = known(eris.at(9.99).operations["lookup"].keys)
    assert uniform.shares([0, 256_000_000]).tolist() == [0.5]
