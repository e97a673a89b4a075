"""What a written line costs more, from a host's own mixes of reads and writes."""

import pytest
from measured_hosts import figure, measured

from numatwin.topologies.schema import Memory
from numatwin.validate.measure import measured_description


def memory_of(mixes_Bps: dict[str, float], spread: float = 0.0) -> Memory:
    """The memory of a host that reads 40 GB/s, and this of each mix."""
    figures = [figure("memory.bandwidth", 40e9, "bandwidth", spread=spread)]
    figures += [
        figure("mix-bandwidth", rate, "bandwidth", spread=spread, traffic=name)
        for name, rate in mixes_Bps.items()
    ]
    return measured_description(measured(figures)).node_types["node"].memory


def test_by_hand() -> None:
    """t = 0.5: a half of writes leaves 40 / 1.25 = 32 GB/s, a third 40 / (1 + 1/6) = 34.3."""
    found = memory_of({"update": 32e9, "copy": 40e9 / (1 + 1 / 6)}).write_turnaround
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
    """A half of writes, which cost a quarter of reads: 40 / (1 - 0.75 / 2) = 64 GB/s."""
    found = memory_of({"update": 64e9}).write_turnaround
    assert found is not None
    assert found.value == pytest.approx(-0.75, rel=1e-3)


def test_a_written_line_takes_a_tenth_of_a_read_one_at_least() -> None:
    found = memory_of({"update": 90e9}).write_turnaround
    assert found is not None
    assert found.value == -0.9


def test_writes_alone_turn_nothing_round() -> None:
    assert memory_of({"nt-store": 20e9}).write_turnaround is None
    assert memory_of({}).write_turnaround is None
