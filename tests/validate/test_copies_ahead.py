"""Scans that a thread copies ahead for: how they are measured, and predicted from both alone."""

import pytest

from numatwin.topologies import build_machine
from numatwin.topologies.measurements import Measurement
from numatwin.validate.crossvalidate.primitives import primitive_rows
from numatwin.validate.measure import measured_description
from numatwin.validate.measure.copying_ahead import METHODS, double_buffered_s
from numatwin.validate.measure.session import measure_pass


@pytest.mark.parametrize(
    ("copies_s", "scan_s", "chunks", "expected_s"),
    [
        # copy   scan              the first copy, what is longer in between, the last scan
        (8.0, 4.0, 4, 2.0 + 3 * 2.0 + 1.0),
        (4.0, 8.0, 4, 1.0 + 3 * 2.0 + 2.0),
        (3.0, 5.0, 1, 8.0),
    ],
)
def test_double_buffering(copies_s: float, scan_s: float, chunks: int, expected_s: float) -> None:
    assert double_buffered_s(copies_s, scan_s, chunks) == pytest.approx(expected_s)


def test_each_measured_scan_is_predicted_from_both_alone() -> None:
    found = measure_pass(quick=True, only=["latency", "bandwidth", "buffering"])
    if len(found.layout.starts[0].cores) < 2:
        pytest.skip("one core: nobody copies while the other scans")
    by_place: dict[str, dict[str, Measurement]] = {}
    for one in found.measurements:
        if one.name in METHODS:
            by_place.setdefault(str(one.parameters.place), {})[one.name] = one
    assert set(by_place) == {"cache", "memory"}
    assert all(set(names) == set(METHODS) for names in by_place.values())
    machine = build_machine(measured_description(found))
    rows = [row for row in primitive_rows(machine) if row.metric == "copied-scan"]
    assert len(rows) == len(by_place)
    for row in rows:
        place = "cache" if "place cache" in row.scenario else "memory"
        alone = [
            by_place[place][name].value.value * 1e9 for name in ("copies-ahead", "cached-scan")
        ]
        # As long as the longer of both at least, and not longer than one after the other.
        assert max(alone) <= row.predicted.value * 1.000001 <= sum(alone) * 1.000001
        assert row.measured.value > 0
