"""Rows of tasks that are published in words: what their figures are of, on made-up records."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from numatwin.validate.results import Runs
from numatwin.validate.systems.tasks import VALIDATION


def runs_of(**records: SimpleNamespace) -> Runs:
    """A record for each mode of cores."""

    def run(scenario: str, *settings: str, policy: str) -> Any:
        assert scenario == "elastic-modes"
        return records[policy.removeprefix("cores=")]

    return cast(Runs, run)


def test_energy_is_of_the_time_that_is_counted() -> None:
    """100 J in the 10 s that are left of 30 s, 2 queries a second: 5 J each; 90 J in 30 s: 1.5."""
    warm = SimpleNamespace(energy_J=100.0, throughput={"q": 2.0}, horizon_s=30.0, warm_up_s=20.0)
    cold = SimpleNamespace(energy_J=90.0, throughput={"q": 2.0}, horizon_s=30.0, warm_up_s=0.0)
    found = VALIDATION.published["elastic-energy"].predict(runs_of(adaptive=warm, none=cold))
    assert found.value == "J a query: 5.00 adaptive, 1.50 none"
    assert found.holds is False


def test_throughput_at_the_end_is_that_of_seconds_not_of_a_short_row() -> None:
    """40 queries a second for 3 s, of which the last 5 s hold 2 s; 20 for 2.9 s; 100 for 0.1 s."""
    series = {
        "time_s": np.array([0.0, 3.0, 5.9]),
        "duration_s": np.array([3.0, 2.9, 0.1]),
        "throughput/q": np.array([40.0, 20.0, 100.0]),
    }
    record = SimpleNamespace(series=series, model={}, control_events=[])
    modes = dict.fromkeys(("adaptive", "dense", "sparse", "none"), record)
    found = VALIDATION.published["elastic-modes"].predict(runs_of(**modes))
    ends = "29.6 adaptive, 29.6 dense, 29.6 sparse, 29.6 none"
    assert found.value == f"queries/s at the end: {ends}"
