"""``numatwin machine measure``: this host's latencies, bandwidths and costs, as a machine file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..inputs import write_text_atomically
from .failures import after_interrupt
from .files import check_file
from .options import Json, flag, option
from .output import Part, binary_size, facts, latency, number, present, progress_bar, table

if TYPE_CHECKING:
    from ..topologies.measurements import Measurement, Reading
    from ..topologies.schema import MachineDescription
    from ..validate.measure import Result


def measure(
    out: Annotated[Path | None, option("FILE", "Write a machine file (.yaml) here.")] = None,
    quick: Annotated[
        bool, flag("--quick", "Fewer repetitions and sizes: seconds, not minutes.")
    ] = False,
    only: Annotated[
        list[str] | None,
        option(
            "PART",
            "Measure only this: latency, bandwidth, loaded, atomics, messages, copies, buffering, "
            "routing, index, loop, walk, interruptions, mapping, paces, distance, fabric, "
            "processes, operators or queries; may be repeated.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Measure this host's latencies, bandwidths and costs."""
    from ..topologies.export import machine_yaml
    from ..validate.measure import measure_host, measured_description

    check_file(out, ".yaml", ".yml")
    with progress_bar("measuring") as progress:
        result = measure_host(quick=quick, only=only or [], progress=progress)
    description = measured_description(result)
    if out is not None:
        write_text_atomically(out, machine_yaml(description))
    partial = " (partial: interrupted)" if result.interrupted else ""
    files = [] if out is None else [f"\nMachine file: {out}{partial}"]
    present(json, lambda: as_json(description, result), chain(_parts(description), files))
    if result.interrupted:
        raise after_interrupt("printed" if out is None else "kept")


def as_json(description: MachineDescription, result: Result) -> dict[str, Any]:
    """The stable form of ``--json``: the machine, the host's state, the figures, flat."""
    from ..topologies import build_machine

    return {
        **build_machine(description).as_json(),
        "host": _host(description),
        "warnings": list(description.warnings),
        "interrupted": result.interrupted,
        "missing": list(result.missing),
        "measurements": [_flat(m) for m in description.measurements],
    }


def _host(description: MachineDescription) -> dict[str, Any]:
    assert description.host is not None
    stated = description.host.model_dump(mode="json", exclude_none=True)
    duration = description.host.duration
    stated.pop("duration", None)
    return {**stated, "duration_s": duration.value if duration else None}


def _flat(measurement: Measurement) -> dict[str, Any]:
    scale, unit = (1e9, "ns") if measurement.value.kind == "time" else (1, measurement.value.unit)
    parameters: dict[str, Any] = {}
    for name in type(measurement.parameters).model_fields:
        found = getattr(measurement.parameters, name)
        if found is not None:
            is_size = name in ("size", "page", "buffer")
            key, value = (f"{name}_bytes", int(found.value)) if is_size else (name, found)
            parameters[key] = value
    return {
        "name": measurement.name,
        "unit": unit,
        "value": _digits(measurement.value.value * scale),
        "quartiles": [_digits(bound.value * scale) for bound in measurement.ends],
        "repetitions": measurement.repetitions,
        "disturbed": measurement.disturbed,
        "noisy": measurement.noisy,
        "method": measurement.method,
        "parameters": parameters,
    }


def _digits(value: float) -> float:
    """Without the dust of the change of units."""
    return float(f"{value:.12g}")


def _parts(description: MachineDescription) -> Iterator[Part]:
    host = description.host
    assert host is not None
    yield facts(
        (
            ("machine", description.title),
            ("CPUs", host.cpus),
            ("kernel", host.kernel),
            ("host", host.virtualisation),
            ("huge pages", host.transparent_huge_pages),
            ("governor", host.governor),
        )
    )
    several = len(description.nodes) > 1
    if description.measurements:
        yield ""
        yield table(
            ("figure", "of", "median", "quartiles", "repeated"),
            (_row(m, several) for m in description.measurements if m.name not in _NOT_SHOWN),
            left=2,
        )
    yield from (f"\nwarning: {text}" for text in description.warnings)


# Other views of figures that are shown.
_NOT_SHOWN = ("mix-bandwidth",)


def _row(measurement: Measurement, several_nodes: bool) -> tuple[str, ...]:
    low, high = measurement.ends
    return (
        measurement.name,
        ", ".join(_parameter_texts(measurement, several_nodes)),
        _text(measurement.value),
        f"{_text(low)} – {_text(high)}",
        f"{measurement.repetitions}{' noisy' if measurement.noisy else ''}",
    )


def _parameter_texts(measurement: Measurement, several_nodes: bool) -> Iterator[str]:
    plain = () if several_nodes else ("node", "home")
    for name in type(measurement.parameters).model_fields:
        found = getattr(measurement.parameters, name)
        if found is not None and name not in plain:
            yield f"{name} {binary_size(found.value) if hasattr(found, 'value') else found}"


def _text(reading: Reading) -> str:
    if reading.kind == "time":
        return latency(reading.value * 1e9)
    return number(reading.value, "" if reading.kind == "count" else reading.unit)
