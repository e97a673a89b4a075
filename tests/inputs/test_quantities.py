"""Quantities: exact both ways, every unit of the field, everything else refused."""

import math
import time
from itertools import product

import pytest
from fresh_processes import loads_none
from hypothesis import given
from hypothesis import strategies as st

from numatwin.inputs import Quantity, format_quantity, parse_quantity, quantities
from numatwin.inputs.quantities import DIMENSIONS, read_quantity, time_text

UNITS = {
    "time": {"s": 1, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "min": 60},
    "size": {"B": 1, "kB": 1e3, "MB": 1e6, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
    "bandwidth": {"B/s": 1, "MB/s": 1e6, "GB/s": 1e9, "MiB/s": 2**20, "Gb/s": 1e9 / 8, "B/ns": 1e9},
    "frequency": {"Hz": 1, "MHz": 1e6, "GHz": 1e9},
    "rate": {"Hz": 1, "kHz": 1e3, "/s": 1, "k/s": 1e3, "M/s": 1e6, "G/s": 1e9, "M / s": 1e6},
    "power": {"W": 1, "mW": 1e-3},
    "energy_per_bit": {"pJ/bit": 1e-12, "J/B": 0.125, "nJ/b": 1e-9},
}

values = st.floats(1e-15, 1e15, allow_nan=False)
dimensions = st.sampled_from(sorted(DIMENSIONS))


def test_every_dimension_has_units() -> None:
    assert UNITS.keys() == DIMENSIONS.keys()


@given(dimension=dimensions, data=st.data(), number=values)
def test_units(dimension: str, data: st.DataObject, number: float) -> None:
    unit = data.draw(st.sampled_from(sorted(UNITS[dimension])))
    blank = data.draw(st.sampled_from(("", " ", "  ")))
    read = parse_quantity(f"{number!r}{blank}{unit}", dimension)
    assert math.isclose(read, number * UNITS[dimension][unit], rel_tol=1e-14)


@given(dimension=dimensions, value=st.floats(1e-250, 1e250) | st.just(0.0))
def test_round_trip_is_exact(dimension: str, value: float) -> None:
    assert parse_quantity(format_quantity(value, dimension), dimension) == value


@given(dimension=dimensions, other=dimensions, number=values)
def test_another_dimension_is_refused(dimension: str, other: str, number: float) -> None:
    if {dimension, other} <= {"frequency", "rate"} or dimension == other:
        return
    for unit in UNITS[other]:
        with pytest.raises(ValueError, match="is not a unit of"):
            parse_quantity(f"{number!r} {unit}", dimension)


def test_plain_units_are_what_pint_makes_of_them() -> None:
    """Each prefix with each unit, alone and per second, bit and byte, in each dimension."""
    plain = 0
    for prefix, base, per in product(
        quantities._PREFIXES,
        ("s", "B", "b", "bit", "Hz", "W", "J", "min"),
        ("", "/s", "/bit", "/b", "/B"),
    ):
        for unit, _ in DIMENSIONS.values():
            found = quantities._plain_factor(f"{prefix}{base}{per}", unit)
            if found is not None:
                assert found == quantities._factor(f"{prefix}{base}{per}", unit)
                plain += 1
    # s, B, W, Hz (of two dimensions); B/s, b/s, bit/s; J/b, J/bit
    assert plain == len(quantities._PREFIXES) * (5 + 3 + 2)


def test_bundled_files_are_read_without_pint() -> None:
    script = "from numatwin.topologies import load_machine, machine_names;"
    loads_none(f"{script} [load_machine(name) for name in machine_names()]", "pint")


def test_rates_are_read_as_they_are_printed() -> None:
    for text in ("100 M/s", "100M/s", "100e6 /s", "1e8/s", "0.1 G / s", "100 MHz"):
        assert parse_quantity(text, "rate") == 1e8
    assert format_quantity(1e8, "rate") == "100 M/s"
    with pytest.raises(ValueError, match="'G/s' is not a unit of frequency"):
        parse_quantity("2.2 G/s", "frequency")
    for text in ("1 m/s", "1 Mi/s", "1 M/ms", "1 1/s", "1 /s/s", "1 /"):
        with pytest.raises(ValueError, match="expected"):
            parse_quantity(text, "rate")


@given(dimension=dimensions, text=st.text(alphabet="0159.eE+-/ nsGiBbHzWJµ_,\n", max_size=20))
def test_whatever_is_written_is_read_or_refused(dimension: str, text: str) -> None:
    try:
        value = parse_quantity(text, dimension)
    except ValueError as failure:
        told = str(failure)
        assert told.isprintable() or not text.isprintable()
        assert "expected" in told
        return
    assert math.isfinite(value)
    assert parse_quantity(format_quantity(value, dimension), dimension) == value


REFUSED = [
    "1", "1.5", "", "GB/s", "1 B//s", "1 B/s/s", "1 /s", "1 B/", "1 GT/s", "1 Gbps", "1 gb/s",
    "1 GB/S", "1 kiB/s", "nan GB/s", "inf GB/s", "1_000 GB/s", "1,5 GB/s", "0x10 GB/s", "１ GB/s",
    "1 GB/s GB/s", "1 GB*s", "1 GB/s**2", "1 GB/s" + " " * 100, "1 __import__/s",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_quantity(text, "bandwidth")


@pytest.mark.parametrize("exponent", ["400", "-400", "99999999", "-99999999", "999999999999999999"])
def test_huge_exponents_are_refused_at_once(exponent: str) -> None:
    """Written out, such a number would fill the memory; too small ones are no zeros either."""
    started = time.process_time()
    with pytest.raises(ValueError, match="too large or too small for a time"):
        parse_quantity(f"1e{exponent} ns", "time")
    assert parse_quantity(f"0e{exponent} ns", "time") == 0
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (5, "a bare number has no unit"),
        (True, "expected a time with its unit"),
        (None, "expected a time with its unit"),
        ([1], "expected a time with its unit"),
        ("0 ns", "above 0"),
        ("-1 ns", "above 0"),
        ({}, "missing field 'value'"),
        ({"value": "1 ns", "unit": "s"}, "unknown field 'unit'"),
        ({"value": "1 ns", "range": "1 ns"}, "expected two quantities"),
        ({"value": "1 ns", "range": ["2 ns", "3 ns"]}, "lower bound ≤ value ≤ upper bound"),
        ({"value": "1 ns", "source": 5}, "source: expected text"),
        ({"value": "1 ns", "doubtful": "yes"}, "doubtful: expected true or false"),
    ],
)
def test_refused_values(raw: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_quantity(raw, "time")


def test_a_value_with_its_source_and_range() -> None:
    raw = {"value": "2 ns", "range": ["1 ns", "3 ns"], "source": "a book", "doubtful": True}
    assert read_quantity(raw, "time") == Quantity(2e-9, 1e-9, 3e-9, "a book", doubtful=True)
    assert read_quantity("0 ns", "time", zero_allowed=True).value == 0


@pytest.mark.parametrize(
    ("value_s", "text"),
    [
        (0.0, "0 ns"),
        (1e-12, "0.001 ns"),
        (1e-9, "1 ns"),
        (200e-6, "200 µs"),
        (0.02, "20 ms"),
        (0.99999, "1 s"),
        (60.0, "60 s"),
    ],
)
def test_times_as_people_read_them(value_s: float, text: str) -> None:
    assert time_text(value_s) == text


def test_units_load_no_dask() -> None:
    """It is there for clusters, and takes longer to load than all else that units need."""
    read = "assert parse_quantity('2 GB/s', 'bandwidth') == 2e9"
    loads_none(f"from numatwin.inputs import parse_quantity; {read}", "dask")


@pytest.mark.parametrize(
    ("text", "dimension", "told"),
    [
        ("1 KB", "size", "unknown unit 'KB': expected kB or KiB"),
        ("1 KB/s", "bandwidth", "unknown unit 'KB/s': expected kB/s or KiB/s"),
        ("1 KHz", "frequency", "unknown unit 'KHz': expected kHz"),
        ("1 KX", "size", "unknown unit 'KX': expected a size such as '24 MiB'"),
        ("1 K", "size", "unknown unit 'K': expected a size such as '24 MiB'"),
    ],
)
def test_a_large_k_may_mean_two_things(text: str, dimension: str, told: str) -> None:
    with pytest.raises(ValueError, match="unit") as failure:
        parse_quantity(text, dimension)
    assert str(failure.value) == told
