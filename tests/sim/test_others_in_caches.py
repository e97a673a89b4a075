"""A last cache that others use too: Che's approximation with their lines beside."""

import numpy as np
import pytest

from numatwin.sim.machine.caches import hit_rates


def hits(lines: float, rate: float, capacity: float, others: float) -> float:
    """Of one region."""
    found = hit_rates(
        np.array([[lines]]), np.array([[rate]]), np.array([capacity]), np.array([others])
    )
    return float(found[0, 0])


def test_what_fits_alone_is_lost_to_others() -> None:
    assert hits(100.0, 1.0, 200.0, 0.0) == 1.0
    assert 0.0 < hits(100.0, 1.0, 200.0, 10.0) < 1.0


def test_many_others_leave_a_line_for_the_time_they_take_to_fill_the_cache() -> None:
    # Of capacity C and f lines a second, T = C / f where the region itself takes next to nothing:
    # 1 - exp(-rate T / lines) = 1 - exp(-1000 * 1e-3 / 2) for T = 1 ms.
    assert hits(2.0, 1000.0, 1e6, 1e9) == pytest.approx(1.0 - np.exp(-0.5), rel=1e-3)


def test_the_room_is_shared_out_to_the_last_line() -> None:
    # sum of lines (1 - exp(-rate T / lines)) + others T = C, for the T that the hits tell.
    lines, rate, capacity, others = 500.0, 3.0, 300.0, 2.0
    hit = hits(lines, rate, capacity, others)
    time = -np.log1p(-hit) * lines / rate
    assert lines * hit + others * time == pytest.approx(capacity, rel=1e-8)


def test_who_comes_more_often_finds_more() -> None:
    found = [hits(1000.0, rate, 1500.0, 50.0) for rate in (1.0, 10.0, 100.0, 1e6)]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(1.0, abs=1e-3)


def test_more_others_leave_less() -> None:
    found = [hits(1000.0, 10.0, 700.0, others) for others in (0.0, 1.0, 10.0, 100.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(0.7, rel=1e-6)
