"""Values of factors as text: lists, ranges, units, whole numbers; what is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by

from numatwin.inputs import parse_quantity
from numatwin.inputs.quantities import si_of
from numatwin.sim.studies.levels import read_levels, spread, written


@pytest.mark.parametrize(
    ("text", "whole", "values", "unit"),
    [
        ("16,64,256", True, (16, 64, 256), ""),
        ("1:8:4", True, (1, 3, 6, 8), ""),  # 1, 3.33, 5.67, 8
        ("1:3:9", True, (1, 2, 3), ""),  # equal values once
        ("1:8:4", False, (1.0, 3.33333333333, 5.66666666667, 8.0), ""),
        ("1:1000:4log", False, (1.0, 10.0, 100.0, 1000.0), ""),
        ("1 us:1 ms:4log", False, (1.0, 10.0, 100.0, 1000.0), "us"),
        ("500 ns,1 us,2 us,1000 ns", False, (500.0, 1000.0, 2000.0), "ns"),
        ("5:10 GB/s:2", False, (5.0, 10.0), "GB/s"),
        ("1 M/s:3 M/s:3", False, (1.0, 2.0, 3.0), "M/s"),
        ("8:1:2", True, (8, 1), ""),
        ("true,false", False, (True, False), ""),
        ("ma-1,ma-8", False, ("ma-1", "ma-8"), ""),
        ("[0, 1],[2, 3]", False, ([0, 1], [2, 3]), ""),
        ("mine.py:Balancer,none", False, ("mine.py:Balancer", "none"), ""),
        ("1 GB/s,fast", False, ("1 GB/s", "fast"), ""),
        ("1:2:1", False, (1.0,), ""),
    ],
)
def test_values(text: str, whole: bool, values: tuple[object, ...], unit: str) -> None:
    found = read_levels(text, "--set x", whole)
    assert (found.values, found.unit) == (values, unit)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1:8", "not a range: found '1:8', expected from:to:n"),
        ("1:8:x", "not a range"),
        ("1:8:0", "an empty range: found '0 values', expected at least 1"),
        ("1:8:99999999", "too many values"),
        ("0:8:3log", "a log range: found '0 to 8', expected both ends above 0"),
        ("1 us:1 GB/s:3", "units that do not fit each other"),
        ("1,,2", "an empty value"),
        ("", "an empty value"),
        ("1e400:2e400:2", "a range: expected finite ends"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert told_by(read_levels, text, "--set x").startswith(f"--set x: {message}")


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.integers(2, 50), st.booleans())
def test_ranges_begin_and_end_where_they_say(
    low: float, high: float, count: int, log: bool
) -> None:
    values = spread(low, high, count, log, whole=False)
    assert len(values) <= count
    assert math.isclose(values[0], low, rel_tol=1e-11)
    assert math.isclose(values[-1], high, rel_tol=1e-11)
    rising = sorted(values)
    assert list(values) in (rising, rising[::-1])


@given(st.floats(1e-3, 1e6), st.sampled_from(["ns", "us", "GB/s", "M/s", "GiB", "W"]))
def test_what_is_written_reads_back(number: float, unit: str) -> None:
    text = written(number, unit)
    found = si_of(text)
    assert found is not None
    assert found[0] == parse_quantity(text, found[1])
    assert read_levels(text, "--set x").values == (number,)
