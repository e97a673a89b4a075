"""Paces of this host's cores: by hand, and as they are measured."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_hosts import figure

from numatwin.topologies.measurements import Measurement, Parameters
from numatwin.topologies.schema import PACE_SHARES
from numatwin.validate.crossvalidate.corners import corners
from numatwin.validate.measure import measured_description
from numatwin.validate.measure.pacing import KINDS, measured_paces, slow_times
from numatwin.validate.measure.session import measure_pass


def test_slow_times_are_told_one_from_another() -> None:
    pace = np.array([0.8, 0.7, 1.0, 1.0, 0.89, 0.91, 0.5])
    assert slow_times(pace).tolist() == [2.0, 1.0, 1.0]
    assert slow_times(np.ones(5)).tolist() == []
    assert slow_times(np.full(5, 0.1)).tolist() == [5.0]


@given(st.lists(st.booleans(), min_size=1))
def test_slow_times_are_all_slow_moments(slow: list[bool]) -> None:
    pace = np.where(slow, 0.5, 1.0)
    times = slow_times(pace)
    assert times.sum() == sum(slow)
    edges = sum(b and not a for a, b in pairwise([False, *slow]))
    assert len(times) == edges


def pace(kind: str, share: float, value: float, *, spread: float = 0.0) -> Measurement:
    made = figure("pace", value, "count", spread=spread)
    return made.model_copy(update={"parameters": Parameters(place=kind, share=share)})


def test_figures_become_facts() -> None:
    values = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 1.0, 1.05)
    figures = [
        pace(kind, share, value if kind == "cached" else value - 0.1, spread=0.02)
        for share, value in zip(PACE_SHARES, values, strict=True)
        for kind in KINDS
    ]
    assert measured_paces(figures) is None  # without how long they last
    found = measured_paces([*figures, figure("pace-lasts", 3e-3, "time")])
    assert found is not None
    assert found.lasts.value == 3e-3
    assert tuple(one.value for one in found.cached) == values
    assert [one.value for one in found.memory] == pytest.approx([v - 0.1 for v in values])
    assert all(one.range and one.range[0] < one.value < one.range[1] for one in found.cached)


def test_this_hosts_paces() -> None:
    pytest.importorskip("numatwin.engine_native._engine", reason="the native engine is not built")
    result = measure_pass(quick=True, only=["paces"])
    description = measured_description(result)
    found = description.paces
    assert found is not None
    for facts in (found.cached, found.memory):
        values = [one.value for one in facts]
        assert values == sorted(values)
        assert 0 < values[0] <= values[-1] < 20
        # In the middle of the time it goes as it mostly does.
        assert values[PACE_SHARES.index(0.5)] == pytest.approx(1.0, abs=0.05)
    assert 1e-4 <= found.lasts.value <= 0.2
    ends = corners(description)
    if ends is None:  # every round found the same
        return
    worse, better = (end["paces"]["cached"] for end in ends)
    assert all(a["value"] <= b["value"] for a, b in zip(worse, better, strict=True))
