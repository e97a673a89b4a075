"""Intervals of a cross-validation by the errors of its other runs: what they hold, and judge."""

import math

import numpy as np
import pytest

from numatwin.sim.run.statistics import Interval
from numatwin.validate.crossvalidate.result import coverage_of
from numatwin.validate.crossvalidate.rows import Row, Set


def row(group: int, measured: float, of: Set = "test") -> Row:
    predicted, exact = (Interval(value, value, value) for value in (100.0, measured))
    return Row("s", str(group), "flow", "m", "throughput", "1/s", exact, predicted, of)


def test_nine_of_ten_are_held() -> None:
    """Errors of 5% that all runs share in distribution: 200 rows are enough to tell (± 2.1%)."""
    rng = np.random.default_rng(3)
    (found,) = coverage_of(
        [row(k // 4, 100.0 * float(np.exp(0.05 * rng.normal()))) for k in range(200)]
    )
    assert (found.group, found.rows) == ("throughput", 200)
    assert 0.85 <= found.held <= 0.95
    assert math.log(found.width) == pytest.approx(2 * 1.645 * 0.05, rel=0.15)


def test_a_run_does_not_widen_its_own_interval() -> None:
    """One run of two rows is wholly off: all others are held, and it is not."""
    rows = [row(k, 100.0 + k % 3) for k in range(40)]
    (found,) = coverage_of([*rows, row(99, 300.0), row(99, 310.0)])
    assert found.held == pytest.approx(40 / 42)
    assert found.width < 1.1


@pytest.mark.parametrize(("error", "judgeable"), [(1.0, False), (0.3, True)])
def test_intervals_that_hold_nearly_anything_judge_nothing(error: float, judgeable: bool) -> None:
    (found,) = coverage_of([row(k, 100.0 * math.exp(error * (-1) ** k)) for k in range(20)])
    assert found.held == 1.0
    assert found.judgeable == judgeable


def test_too_few_rows_say_nothing() -> None:
    assert coverage_of([row(k, 101.0) for k in range(9)]) == []
    assert coverage_of([row(k, 101.0, of="calibration") for k in range(50)]) == []
    assert coverage_of([row(k, 0.0) for k in range(50)]) == []
    assert len(coverage_of([row(k, 101.0) for k in range(10)])) == 1
