"""How a core's instructions overlap with the lines of a stream."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.machine.reference.overlap import overlapped
from numatwin.sim.planes.rates import overlapped as of_arrays

times = st.floats(0.0, 1e9)
parts = st.floats(0.0, 1.0)


def cycle_of(stations: tuple[float, ...], customers: int) -> float:
    """Time from one customer to the next of a closed network, by exact mean-value analysis."""
    queues = [0.0] * len(stations)
    passed = 0.0
    for number in range(1, customers + 1):
        waits = [s * (1.0 + queue) for s, queue in zip(stations, queues, strict=True)]
        passed = sum(waits) / number
        queues = [wait / passed for wait in waits]
    return passed


@pytest.mark.parametrize(("work", "lines"), [(1.0, 1.0), (2.0, 5.0), (7.0, 3.0), (1.0, 100.0)])
def test_a_third_is_a_network_of_three_pieces_of_work(work: float, lines: float) -> None:
    assert overlapped(work, lines, 1.0 / 3.0) == pytest.approx(cycle_of((work, lines), 3))


@given(times, times, parts)
def test_it_takes_as_long_as_the_longer_and_no_longer_than_both(
    work: float, lines: float, stall: float
) -> None:
    found = overlapped(work, lines, stall)
    assert max(work, lines) <= found <= (work + lines) * (1.0 + 1e-12)
    assert found == overlapped(lines, work, stall)
    one = np.array([work]), np.array([lines])
    assert of_arrays(*one, np.ones(1), stall)[0] == pytest.approx(found)


@given(times, times, times, parts, parts)
def test_more_of_anything_takes_no_less(
    work: float, lines: float, more: float, stall: float, less: float
) -> None:
    found = overlapped(work, lines, stall)
    assert overlapped(work + more, lines, stall) >= found * (1.0 - 1e-12)
    assert overlapped(work, lines, stall * less) <= found


def test_without_a_stall_all_is_hidden() -> None:
    assert overlapped(3.0, 5.0, 0.0) == 5.0
    assert overlapped(0.0, 5.0, 0.5) == 5.0
    assert overlapped(3.0, np.inf, 0.5) == np.inf
