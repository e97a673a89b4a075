"""Measured figures in machine files: units, order of quartiles, there and back."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from known import known
from pydantic import ValidationError

from numatwin import InputError, load_machine
from numatwin.topologies.export import machine_yaml
from numatwin.topologies.measurements import HostState, Kind, Measurement, Reading

MACHINE = """\
name: measured
node_types: {plain: {cores: 2, memory: {size: 1 GiB}}}
nodes: [{id: 0, type: plain}]
warnings: ["noisy host: other programs used 40% of the CPUs' time"]
host: {date: "2026-01-01T00:00:00+00:00", version: 1.0.0, load_average: 0.5, duration: 4 s}
measurements:
  - name: latency
    value: 92.3 ns
    quartiles: [91 ns, 0.0953 µs]
    repetitions: 25
    disturbed: 3
    method: dependent loads
    parameters: {size: 256 MiB, page: 2 MiB, node: 0, home: 0}
  - {name: read-bandwidth, value: 20 GB/s, repetitions: 25, method: loads, parameters: {threads: 2}}
  - {name: random_reads, value: 130 M/s, repetitions: 25, method: loads}
  - {name: outstanding_misses, value: 21.5, quartiles: [20, 22], repetitions: 25, method: Little}
"""


def figure(**fields: Any) -> Measurement:
    return Measurement.model_validate(
        {"name": "latency", "value": "90 ns", "repetitions": 9, "method": "loads", **fields}
    )


def test_figures_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "measured.yaml"
    path.write_text(MACHINE)
    description = load_machine(path).description
    latency, bandwidth, rate, count = description.measurements
    assert (latency.value.value, latency.value.unit) == (92.3e-9, "s")
    assert known(latency.parameters.size).value == 2**28
    assert latency.spread == pytest.approx(4.3 / 92.3)
    assert (bandwidth.value.value, bandwidth.value.unit, bandwidth.spread) == (20e9, "B/s", 0.0)
    assert (rate.value.value, rate.value.unit) == (130e6, "/s")
    assert (count.value.value, count.value.unit) == (21.5, "1")
    assert known(description.host).load_average == 0.5

    again = tmp_path / "again.yaml"
    again.write_text(machine_yaml(description))
    assert load_machine(again).description == description


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("value: 92.3 ns", "value: 92.3 GT", "expected a value with its unit, such as '129 ns'"),
        ("value: 92.3 ns", "value: -92.3 ns", "at least 0"),
        ("value: 21.5", "value: .inf", "expected a count of at least 0"),
        ("[91 ns, 0.0953 µs]", "[93 ns, 95 ns]", "expected lower quartile ≤ value ≤ upper"),
        ("[91 ns, 0.0953 µs]", "[91, 95]", "units of the same kind"),
        ("repetitions: 25\n    dist", "repetitions: 0\n    dist", "repetitions"),
        ("size: 256 MiB, page", "sizes: 256 MiB, page", "unknown field 'sizes'"),
        ("load_average: 0.5", "load_average: -1", "load_average"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "measured.yaml"
    assert old in MACHINE
    path.write_text(MACHINE.replace(old, new))
    with pytest.raises(InputError, match=r"measured\.yaml:\d+:\d+: ") as refused:
        load_machine(path)
    assert message in str(refused.value)


@given(
    value=(st.just(0.0) | st.floats(1e-6, 1e15)).map(lambda x: float(f"{x:.4g}")),
    kind=st.sampled_from(["time", "bandwidth", "rate", "size", "count"]),
)
def test_readings_read_back(value: float, kind: Kind) -> None:
    reading = Reading(value * 1e-9 if kind == "time" else value, kind)
    assert figure(value=reading.text()).value == reading


def test_a_measurement_needs_a_method() -> None:
    with pytest.raises(ValidationError, match="method"):
        Measurement.model_validate({"name": "latency", "value": "90 ns", "repetitions": 9})


def test_host_state_needs_a_date() -> None:
    with pytest.raises(ValidationError, match="date"):
        HostState.model_validate({"version": "1"})
