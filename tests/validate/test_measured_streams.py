"""Lines under way of reads, at the latency under their own load: what is measured comes back.

A host of eight cores and 40 GB/s, whose latency rises evenly with the load of its memory, from 100
to 200 ns.
"""

import numpy as np
import pytest
from measured_hosts import figure, measured

from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.demands import Demand, Reads, Step
from numatwin.sim.machine.streams import lines_under_way, streamed_Bps
from numatwin.sim.planes.rate_solver import RateSolver
from numatwin.sim.run.counted_time import counted_time
from numatwin.topologies import Machine, build_machine
from numatwin.topologies.emulator.traffic import BY_PROCESSOR, MATRICES, Counts, Traffic
from numatwin.topologies.measurements import Measurement
from numatwin.topologies.schema_types import Fact
from numatwin.validate.calibrate.observation import RANDOM, READ, Observation, Origin
from numatwin.validate.calibrate.predictions import Candidate, predict
from numatwin.validate.crossvalidate.primitives import primitive_rows
from numatwin.validate.measure import measured_description

CORES = 8
MEMORY_BPS = 40e9
# Figures have four digits.
ROUNDING = 1e-3


def latency_s(load: float) -> float:
    return 100e-9 * (1.0 + load)


def host(read_Bps: float, *more: Measurement, latency: bool = True, spread: float = 0.0) -> Machine:
    """Which a single thread reads at this rate."""
    figures = [
        figure("memory.bandwidth", MEMORY_BPS, "bandwidth", threads=CORES),
        figure("read-bandwidth", read_Bps, "bandwidth", threads=1, spread=spread),
        # t = 1: half of writes leave 40 ÷ 1.5.
        figure("mix-bandwidth", MEMORY_BPS / 1.5, "bandwidth", traffic="update"),
        *more,
    ]
    if latency:
        figures.append(figure("memory.latency", latency_s(0.0), "time"))
    for load in (1e-6, 0.25, 0.5, 0.75, 1.0):
        figures.append(figure("loaded.bandwidth", load * MEMORY_BPS, "bandwidth"))
        figures.append(figure("loaded.latency", latency_s(load), "time"))
    return build_machine(measured_description(measured(figures, cores=CORES)))


def fact(machine: Machine, name: str = "streaming_misses") -> Fact | None:
    found: Fact | None = getattr(machine.description.node_types["node"], name)
    return found


# Rates of random lines: of one core, with 40 and 70 instructions to each, and of all cores.
SPACED = (
    figure("spaced_reads", 10e9 / 64, "rate", delay=40),
    figure("spaced_reads", 8e9 / 64, "rate", delay=70),
)
TOGETHER = figure("random_reads_together", 30e9 / 64, "rate", threads=CORES)


def random_host(read_Bps: float, *more: Measurement) -> Machine:
    """On which one core reads random lines at this rate."""
    return host(20e9, figure("random_reads", read_Bps / 64, "rate"), *more)


def test_by_hand() -> None:
    """20 GB/s is half of what the memory has: 150 ns, and 20 · 150 ÷ 64 lines. Without load, a
    third less.
    """
    found = fact(host(20e9))
    assert found is not None
    assert found.value == pytest.approx(20 * 150 / 64, rel=ROUNDING)
    assert found.source is not None
    assert "latency under that load" in found.source


def test_its_range_is_that_of_the_bandwidth() -> None:
    """20 GB/s ± 10%, each at its own load."""
    found = fact(host(20e9, spread=0.1))
    assert found is not None
    assert found.range is not None
    assert found.range == pytest.approx((18 * 145 / 64, 22 * 155 / 64), rel=ROUNDING)


def test_not_known_without_the_latency() -> None:
    assert fact(host(20e9, latency=False)) is None


def test_random_reads_by_hand() -> None:
    """One core: 20 GB/s is half of what the memory has, 150 ns. All of them: 30 GB/s, 175 ns, an
    eighth each. Of the window, 70 instructions to each of 8 · 120 ÷ 64 lines are the most.
    """
    machine = random_host(20e9, *SPACED, TOGETHER)
    for name, expected in (
        ("outstanding_misses", 20 * 150 / 64),
        ("outstanding_misses_together", 30 * 175 / 64 / CORES),
        ("reorder_window", 70 * 8 * 120 / 64),
    ):
        found = fact(machine, name)
        assert found is not None
        assert found.value == pytest.approx(expected, rel=ROUNDING)
        assert "latency under that load" in (found.source or "")


def test_a_core_alone_has_at_least_as_many_lines_under_way_as_beside_others() -> None:
    """All at once: 30 GB/s, 175 ns, an eighth each. One alone was disturbed: 2 GB/s, 105 ns."""
    machine = random_host(2e9, TOGETHER)
    for name in ("outstanding_misses", "outstanding_misses_together"):
        found = fact(machine, name)
        assert found is not None
        assert found.value == pytest.approx(30 * 175 / 64 / CORES, rel=ROUNDING)


def test_what_prefetchers_leave_uncovered_by_hand() -> None:
    """A line takes 3.2 ns alone, its additions 10 ns: 10.3 ns as they overlap, where 16 ns were
    measured. The window of 1,050 instructions holds a part of the 46.9 lines that may be under way.
    """
    both, work = (figure("spaced_stream", 1e9 / ns, "rate", delay=70) for ns in (16.0, 10.0))
    machine = random_host(20e9, *SPACED, both, work)
    found = fact(machine, "stream_uncovered")
    assert found is not None
    part = 3.2 / 10.0
    alone_ns = 10.0 * (1.0 + 3.0 * 0.33 * part**3 / (1.0 + part + part**2))
    costs = CostModel(machine)
    clock_GHz = costs.instructions_per_s[0] / costs.ipc[0] * 1e-9
    unseen = 1.0 - 1050 / (4.0 * 10.0 * clock_GHz) / (20 * 150 / 64)
    assert found.value == pytest.approx((16.0 - alone_ns) / unseen / 100.0, rel=ROUNDING)
    # Of a loop with as much work for a line, the model makes what was measured.
    waited_ns = costs.uncovered_s(np.array([10e-9]), np.array([100e-9])) * 1e9
    assert waited_ns == pytest.approx([16.0 - alone_ns], rel=ROUNDING)


def test_what_prefetchers_cover_costs_nothing_more() -> None:
    """Where lines and additions overlap better than they are taken to."""
    both, work = (figure("spaced_stream", 1e9 / ns, "rate", delay=70) for ns in (4.5, 4.0))
    found = fact(random_host(20e9, *SPACED, both, work), "stream_uncovered")
    assert found is not None
    assert found.value == 0.0


def flow_Bps(
    machine: Machine, cores: int, *, stream: bool = True, instructions: float = 1.0
) -> float:
    """What so many cores draw on the flow plane that do nothing else; at random, a line every so
    many ``instructions``.
    """
    nodes = np.zeros(cores, dtype=np.int64)
    none, one = np.zeros(len(nodes)), np.ones(len(nodes))
    line = Reads(one, np.ones((1, 1)), stream=stream)
    demand = Demand(
        flow_of=np.zeros(1, dtype=np.int64),
        steps=(Step("reading", none, none, (line,)),),
        writes=(),
        batch=1e9,
        miss_instructions=instructions,
    )
    rates = RateSolver(CostModel(machine), nodes, one).solve(demand, tolerance=1e-9)
    return float(rates.memory_Bps.sum())


def counted_s(machine: Machine, lines: int, *, streamed: bool = True) -> float:
    """The predicted time of a command that streams so many lines, or reads them at random."""
    pairs = {name: np.zeros((1, 1), dtype=np.int64) for name in MATRICES}
    for name in ("memory_reads", *(["streamed_misses"] if streamed else [])):
        pairs[name][0, 0] = lines
    executed = {name: np.zeros(CORES, dtype=np.int64) for name in BY_PROCESSOR}
    executed["instructions"][0] = 1
    found, waits = np.zeros((1, 2), dtype=np.int64), np.zeros((CORES, 1), dtype=np.int64)
    counts = Counts(pairs, found, executed=executed, waits=waits)
    traffic = Traffic(machine, 64, (1,), counts, None, (), (counts,), (0,) * CORES)
    return counted_time(traffic).time_s


@pytest.mark.parametrize("read_Bps", [11e9, 20e9, 31.3e9, 39.9e9])
def test_what_was_measured_is_predicted(read_Bps: float) -> None:
    """By the flow plane, from counts, and by the calibration."""
    machine = host(read_Bps)
    assert flow_Bps(machine, 1) == pytest.approx(read_Bps, rel=ROUNDING)
    assert 64e6 / counted_s(machine, 1_000_000) == pytest.approx(read_Bps, rel=ROUNDING)
    at = {"node": 0, "home": 0, "threads": 1}
    observation = Observation(READ, "", read_Bps, "B/s", Origin("", "", ""), at=at)
    assert predict(Candidate(machine, (), {}), observation) == pytest.approx(read_Bps, rel=ROUNDING)


@pytest.mark.parametrize("read_Bps", [3e9, 20e9])
def test_random_reads_that_were_measured_are_predicted(read_Bps: float) -> None:
    """By all of these."""
    machine = random_host(read_Bps)
    assert flow_Bps(machine, 1, stream=False) == pytest.approx(read_Bps, rel=ROUNDING)
    counted = counted_s(machine, 1_000_000, streamed=False)
    assert 64e6 / counted == pytest.approx(read_Bps, rel=ROUNDING)
    at = {"node": 0, "home": 0}
    observation = Observation(RANDOM, "", read_Bps / 64, "/s", Origin("", "", ""), at=at)
    predicted = predict(Candidate(machine, (), {}), observation)
    assert predicted == pytest.approx(read_Bps / 64, rel=ROUNDING)


def test_random_reads_of_all_cores_and_with_instructions_in_between() -> None:
    together, spaced = random_host(20e9, TOGETHER), random_host(20e9, *SPACED)
    assert flow_Bps(together, CORES, stream=False) == pytest.approx(30e9, rel=ROUNDING)
    found = flow_Bps(spaced, 1, stream=False, instructions=70)
    assert found == pytest.approx(8e9, rel=ROUNDING)


def test_two_threads_by_hand() -> None:
    """The cross-validation's row. One thread reads 10 GB/s at a load of a quarter: 125 ns. Two have
    twice as many lines under way: r (1 + r / 40) = 20 · 1.25, r = 20 (√3.5 - 1) GB/s. That of one
    thread would say nothing.
    """
    machine = host(10e9, figure("read-bandwidth", 17e9, "bandwidth", threads=2))
    (row,) = (row for row in primitive_rows(machine) if row.metric == "read-bandwidth")
    assert row.measured.value == 17e9
    assert row.predicted.value == pytest.approx(20e9 * (3.5**0.5 - 1), rel=ROUNDING)


def test_rate_and_lines_are_each_other_s_inverse() -> None:
    costs = CostModel(host(20e9))
    for threads in (1.0, 1.3):
        for written in (0.0, 0.25, 0.5):
            rate = streamed_Bps(costs, 0, 0, threads, written)
            lines = lines_under_way(costs, 0, 0, rate, written)
            assert lines == pytest.approx(threads * costs.streaming_misses[0], rel=1e-9)


def test_a_copy_by_hand() -> None:
    """A controller needs two lines' time for a written line (t = 1), of which there is one for two
    that are read: at rate r the load is 2 r ÷ 40. With the lines of a stream of 20 GB/s under way,
    r (1 + r / 20) = 20 · 1.5, r = 10 (√7 - 1) GB/s. Two lines are read for each that is copied.
    """
    copy = figure("copy", 1e-3, "time", size="1 MiB", place="memory")
    (row,) = (row for row in primitive_rows(host(20e9, copy)) if row.metric == "copy")
    rate = 10e9 * (7**0.5 - 1)
    assert row.predicted.value == pytest.approx(2 * 2**20 / rate * 1e9, rel=ROUNDING)


def test_memory_holds_cores_that_could_draw_more() -> None:
    machine = host(30e9)
    costs = CostModel(machine)
    assert streamed_Bps(costs, 0, 0, 2) == pytest.approx(MEMORY_BPS)
    assert streamed_Bps(costs, 0, 0, 2, 0.5) == pytest.approx(MEMORY_BPS / 2)
    assert flow_Bps(machine, 2) == pytest.approx(MEMORY_BPS, rel=ROUNDING)
