"""What a written line costs more, from a host's own mixes of reads and writes."""

import pytest
from measured_hosts import figure, measured

from numatwin.topologies import build_machine
from numatwin.topologies.measurements import Measurement
from numatwin.topologies.schema import Memory
from numatwin.validate.crossvalidate.primitives import primitive_rows
from numatwin.validate.measure import measured_description


def figures(mixes_Bps: dict[str, float], spread: float = 0.0) -> list[Measurement]:
    """Of a host that reads 40 GB/s, and this of each mix."""
    mixes = [
        figure("mix-bandwidth", rate, "bandwidth", spread=spread, traffic=name)
        for name, rate in mixes_Bps.items()
    ]
    return [figure("memory.bandwidth", 40e9, "bandwidth", spread=spread), *mixes]


def memory_of(mixes_Bps: dict[str, float], spread: float = 0.0) -> Memory:
    """The memory of that host."""
    found = measured_description(measured(figures(mixes_Bps, spread)))
    return found.node_types["node"].memory


def test_by_hand() -> None:
    """t = 0.5: a half of writes leaves 40 / 1.25 = 32 GB/s. Copies are predicted from it."""
    found = memory_of({"update": 32e9, "copy": 20e9}).write_turnaround
    assert found is not None
    assert found.value == pytest.approx(0.5, rel=1e-3)
    assert found.range == (found.value, found.value)


def test_a_range_from_the_quartiles() -> None:
    """Reads 40 GB/s ± 1%, a half of writes 32 GB/s ± 1%."""
    found = memory_of({"update": 32e9}, spread=0.01).write_turnaround
    assert found is not None
    assert found.range is not None
    ends = [2 * (40 * (1 - x) / (32 * (1 + x)) - 1) for x in (0.01, -0.01)]
    assert found.range == pytest.approx(tuple(ends), rel=1e-2)


def test_writes_have_a_path_of_their_own() -> None:
    """A half of writes beside 32 GB/s of reads: 40 / (1 - 0.75 / 2) = 64 GB/s."""
    found = memory_of({"update": 64e9}).write_turnaround
    assert found is not None
    assert found.value == pytest.approx(-0.75, rel=1e-3)


def test_other_mixes_are_predicted_from_it() -> None:
    """Rows of the cross-validation, of copies and triads, a third and a quarter of whose lines are
    written: memory that turns round (t = 0.5), or that reads hold at 40 GB/s (t = -0.75).
    """
    for update_Bps, expected in (
        (32e9, (40e9 / (1 + 0.5 / 3), 40e9 / (1 + 0.5 / 4))),
        (64e9, (40e9 * 3 / 2, 40e9 * 4 / 3)),
    ):
        rates = {"update": update_Bps, "copy": 50e9, "triad": 51e9, "nt-copy": 52e9}
        rows = primitive_rows(build_machine(measured_description(measured(figures(rates)))))
        found = {row.scenario: row for row in rows if row.metric == "mix-bandwidth"}
        assert list(found) == ["mix-bandwidth: traffic copy", "mix-bandwidth: traffic triad"]
        assert [row.measured.value for row in found.values()] == [50e9, 51e9]
        predicted = [row.predicted.value for row in found.values()]
        assert predicted == pytest.approx(expected, rel=1e-3)


def test_a_written_line_takes_a_tenth_of_a_read_one_at_least() -> None:
    """With 45 GB/s of reads beside as many writes, memory reads more than without: t = -1.11."""
    found = measured_description(measured(figures({"update": 90e9})))
    assert found.node_types["node"].memory.write_turnaround is None
    assert found.warnings[0].startswith("not written: write_turnaround: found -1.11, expected -0.9")
    edge = memory_of({"update": 40e9 / 0.6}, spread=0.2).write_turnaround
    assert edge is not None
    assert edge.range is not None
    assert edge.range[0] == -0.9


def test_writes_alone_turn_nothing_round() -> None:
    assert memory_of({"nt-store": 20e9}).write_turnaround is None
    assert memory_of({}).write_turnaround is None
