"""What turning a memory's bus round for writes costs, in every plane: a written line takes a
controller as long as 1 + t lines that are read.
"""

from pathlib import Path

import numpy as np
import pytest
from small_scenarios import LOOKUP, NODE, SCAN, UPSERT, ran, rate, small, small_file

from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.defaults import ASSUMED_WRITE_TURNAROUND
from numatwin.sim.machine.demands import TransferDemand
from numatwin.sim.planes.rate_solver import RateSolver
from numatwin.sim.planes.transfer_flows import TransferFlows
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario

TURNAROUND = f"{NODE}memory.write_turnaround"


def costs_of(folder: Path, *settings: str) -> CostModel:
    return CostModel(small(small_file(folder, UPSERT, nodes=2), *settings).machine)


def test_lines_by_hand(tmp_path: Path) -> None:
    """Three lines read, two written, t = 0.5: 3 + 2 · 1.5 lines' time. Of 40 GB/s five lines in the
    time of six make 33.3 GB/s.
    """
    costs = costs_of(tmp_path, f"{TURNAROUND}=0.5")
    assert costs.line_times(3.0, 2.0).tolist() == [6.0, 6.0]
    assert costs.mixed_memory_Bps(2 / 5) == pytest.approx([40e9 * 5 / 6] * 2)
    assert costs.mixed_memory_Bps(0.0) == pytest.approx([40e9] * 2)


def test_reads_have_a_path_of_their_own_by_hand(tmp_path: Path) -> None:
    """t = -0.8: memory delivers 40 / 0.6 GB/s, of reads 40. Two lines read and two written take it
    4 · 0.6; of three and two, 3, either way; of three and one, the reads take 3. A copy reads two
    lines for each that it writes: 40 GB/s of reads, 60 in all.
    """
    costs = costs_of(tmp_path, f"{TURNAROUND}=-0.8")
    for read, written, expected in ((2, 2, 2.4), (3, 2, 3.0), (3, 1, 3.0), (1, 0, 1.0)):
        assert costs.line_times(read, written) == pytest.approx([expected] * 2)
    assert costs.mixed_memory_Bps(1 / 3) == pytest.approx([60e9] * 2)
    # What the event plane adds for a written line: the same where as many are written as read.
    assert costs.line_times(1.0, 0.0) + costs.written_line_times == pytest.approx([1.2] * 2)
    assert costs.line_times(1.0, 1.0) == pytest.approx([1.2] * 2)


def test_it_is_assumed_where_a_machine_file_has_none(tmp_path: Path) -> None:
    expected = 1.0 + ASSUMED_WRITE_TURNAROUND
    assert costs_of(tmp_path).written_line_times == pytest.approx([expected] * 2)


@pytest.mark.parametrize(
    ("placement", "turnaround", "lines"),
    [
        ("partitioned", 1.0, 7.0),
        ("interleaved", 1.0, 7.0),
        ("partitioned", -0.5, 5.5),
        ("interleaved", -0.5, 5.0),
    ],
)
def test_the_event_plane_by_hand(
    tmp_path: Path, placement: str, turnaround: float, lines: float
) -> None:
    """Upserts held by 4 GB/s of memory: five lines are read, one is written for 1 + t, so 7 or 5.5
    lines of 64 B each; six of them are traffic. All lines of an operation on a shared index go to
    a controller at once: where reads have a path of their own, these five hold it.
    """
    settings = (
        f"{NODE}memory.bandwidth=4 GB/s",
        f"{NODE}outstanding_misses=100",
        f"{TURNAROUND}={turnaround}",
        "horizon=2 ms",
        "plane=event",
        "statistics.replications=1",
    )
    path = small_file(tmp_path, UPSERT, placement)
    record = run_scenario(load_scenario(path, settings=settings))
    (found,) = record.throughput.values()
    assert found == pytest.approx(4e9 / (lines * 64), rel=0.01)
    assert record.bandwidth_Bps["memory"] == pytest.approx(4e9 * 6 / lines, rel=0.01)


def test_a_copy_writes_what_it_fetches(tmp_path: Path) -> None:
    """A copied unit: the source reads 2 lines; the target fetches 3 lines for ownership and writes
    them back, at t = 0.5 for the time of 3 + 3 · 1.5 lines, but moves six.
    """
    costs = costs_of(tmp_path, f"{TURNAROUND}=0.5")
    solver = RateSolver(costs, np.array([0, 1]), np.ones(2))
    one, none = np.ones(1), np.zeros(1)
    zero = np.zeros(1, dtype=np.int64)
    copies = TransferFlows(
        solver.wires,
        solver.core_node,
        solver.threads,
        TransferDemand(zero, zero + 1, zero, zero + 1, none, none, 2 * one, one, 3 * one),
    )
    memory = solver.resources.memory
    used = copies.use_of(one, solver.resources.count)[memory]
    assert used == pytest.approx([2 * 64, 7.5 * 64])
    assert copies.memory_Bps(one) == pytest.approx([2 * 64, 6 * 64])


@pytest.mark.parametrize("placement", ["partitioned", "interleaved"])
def test_a_longer_turn_is_never_faster(tmp_path: Path, placement: str) -> None:
    path = small_file(tmp_path, UPSERT, placement)
    slow = (f"{NODE}memory.bandwidth=8 GB/s", f"{NODE}outstanding_misses=10")
    turns = [-0.9, -0.5, 0.0, *np.geomspace(0.01, 5.0, 6)]
    rates = [rate(path, *slow, f"{TURNAROUND}={turn}") for turn in turns]
    assert (np.diff(rates) <= 1e-9 * rates[0]).all()
    assert rates[-1] < rates[0]


def test_reads_alone_do_not_turn_the_bus(tmp_path: Path) -> None:
    for operations in (LOOKUP, SCAN):
        path = small_file(tmp_path, operations)
        assert rate(path, f"{TURNAROUND}=3") == rate(path, f"{TURNAROUND}=0.1")


def test_more_writes_move_less(tmp_path: Path) -> None:
    """Traffic of lookups with upserts among them falls as these become more."""
    moved = []
    for share in (1, 50, 99):
        mix = (
            f"{{lookup: {{kind: lookup, object: index, share: {(100 - share) / 100}}}, "
            f"upsert: {{kind: upsert, object: index, share: {share / 100}}}}}"
        )
        text = small_file(tmp_path, LOOKUP, "interleaved").read_text()
        (tmp_path / "mix.yaml").write_text(text.replace(f"\n    {LOOKUP}", f" {mix}"))
        record = ran(
            tmp_path / "mix.yaml",
            f"{NODE}memory.bandwidth=4 GB/s",
            f"{NODE}outstanding_misses=100",
            f"{TURNAROUND}=1",
        )
        moved.append(record.bandwidth_Bps["memory"] or 0.0)
    assert moved[0] > moved[1] > moved[2]
    # Five lines are read and one is written for two.
    assert moved[2] == pytest.approx(4e9 * 5.99 / 6.98, rel=1e-3)
