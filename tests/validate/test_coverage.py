"""Calibrated intervals of a cross-validation: they hold as many measurements as they say."""

import math

import numpy as np
import pytest

from numatwin.sim.run.statistics import Interval
from numatwin.validate.crossvalidate.coverage import coverage_of
from numatwin.validate.crossvalidate.rows import Row, Set


def row(group: int, measured: float, half: float = 0.0, of: Set = "test") -> Row:
    predicted = Interval(100.0, 100.0 - half, 100.0 + half)
    exact = Interval(measured, measured, measured)
    return Row("s", str(group), "flow", "m", "throughput", "1/s", exact, predicted, of)


def test_nine_of_ten_are_held() -> None:
    """Errors of 5% that all runs share in distribution: 200 rows are enough to tell (± 2.1%)."""
    rng = np.random.default_rng(3)
    rows = [row(k // 4, 100.0 * float(np.exp(0.05 * rng.normal()))) for k in range(200)]
    (found,) = coverage_of(rows)
    assert found.rows == 200
    assert 0.85 <= found.held <= 0.95
    assert found.holds
    assert found.half == pytest.approx(1.645 * 0.05, rel=0.15)
    # Intervals that are too wide are narrowed: it is the measurements that count.
    (wide,) = coverage_of([row(k // 4, r.measured.value, 30.0) for k, r in enumerate(rows)])
    assert 0.85 <= wide.held <= 0.95
    assert wide.half < 0.2


def test_a_run_does_not_widen_its_own_interval() -> None:
    """One run of two rows is wholly off: all others are held, and it is not."""
    rows = [row(k, 100.0 + k % 3) for k in range(40)]
    (found,) = coverage_of([*rows, row(99, 300.0), row(99, 310.0)])
    assert found.held == pytest.approx(40 / 42)
    assert found.half < 0.05


def test_intervals_that_hold_nearly_anything_judge_nothing() -> None:
    """Errors of e^±1 need intervals of ± sinh(1), 118%; of e^±0.8, ± 89%."""
    for error, judgeable in ((1.0, False), (0.8, True)):
        rows = [row(k, 100.0 * math.exp(error * (-1) ** k)) for k in range(20)]
        (found,) = coverage_of(rows)
        assert found.half == pytest.approx(math.sinh(error))
        assert (found.judgeable, found.as_json()["judgeable"]) == (judgeable, judgeable)
        assert not found.holds  # all are held: too many


def test_too_few_rows_say_nothing() -> None:
    assert coverage_of([row(k, 101.0) for k in range(9)]) == []
    assert coverage_of([row(k, 101.0, of="calibration") for k in range(50)]) == []
    assert len(coverage_of([row(k, 101.0) for k in range(10)])) == 1
