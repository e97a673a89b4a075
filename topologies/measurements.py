"""Measurements of a host: flat records in addition to its description, and its state."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from ..inputs.names import Name
from ..inputs.quantities import Duration, Quantity, Size, format_quantity, parse_quantity
from ..inputs.yaml_file import Strict

Kind = Literal["time", "bandwidth", "rate", "size", "count"]
_KINDS: tuple[Kind, ...] = ("time", "bandwidth", "rate", "size")
_UNITS: dict[Kind, str] = {"time": "s", "bandwidth": "B/s", "rate": "/s", "size": "B", "count": "1"}


@dataclass(frozen=True)
class Reading:
    """A measured value in SI units, of whatever kind its written unit says; a count has no unit."""

    value: float
    kind: Kind

    @property
    def unit(self) -> str:
        """The SI unit of ``value``."""
        return _UNITS[self.kind]

    def text(self) -> str | float:
        """As it stands in a machine file."""
        if self.kind == "count":
            return int(self.value) if self.value.is_integer() else self.value
        return format_quantity(self.value, self.kind)


def _reading(raw: Any) -> Reading:
    if isinstance(raw, Reading):
        return raw
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        if not (math.isfinite(raw) and raw >= 0):
            raise ValueError("expected a count of at least 0")
        return Reading(float(raw), "count")
    if isinstance(raw, str):
        for kind in _KINDS:
            try:
                value = parse_quantity(raw, kind)
            except ValueError:
                continue
            if value < 0:
                raise ValueError("expected a measured value of at least 0")
            return Reading(value, kind)
    raise ValueError("expected a value with its unit, such as '129 ns', '26.7 GB/s' or '100 M/s'")


Measured = Annotated[
    Reading,
    BeforeValidator(_reading, json_schema_input_type=float | str),
    PlainSerializer(Reading.text, return_type=Any),
]
Whole = Annotated[int, Field(strict=True, ge=0, le=2**48)]
Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Line = Annotated[str, Field(max_length=400)]


class Parameters(Strict):
    """What a figure holds for; a field that does not matter to it is left out.

    ``size``: of the working set, the message, the copy; ``node``: whose CPUs work; ``home``: whose
    memory they use; ``cpu`` and ``peer``: the CPUs of a pair; ``traffic``: what streams do;
    ``delay``: additions between two pieces of 4 KiB, instructions from one load to the next;
    ``batch``: operations at a time; ``buffer``:
    bytes of an outgoing buffer; ``keys``: of the index; ``place``: where the data are; ``region``:
    bytes of the memory that they lie in at random; ``operation`` and ``step``: what the engine did,
    and the step of its loop that took so long; ``share``: of the time.
    """

    size: Size | None = None
    page: Size | None = None
    level: Whole | None = None
    threads: Whole | None = None
    node: Whole | None = None
    home: Whole | None = None
    cpu: Whole | None = None
    peer: Whole | None = None
    traffic: Name | None = None
    place: Name | None = None
    delay: Whole | None = None
    batch: Whole | None = None
    buffer: Size | None = None
    region: Size | None = None
    targets: Whole | None = None
    keys: Whole | None = None
    transport: Name | None = None
    operation: Name | None = None
    step: Name | None = None
    share: Share | None = None


class Measurement(Strict):
    """One figure: the median of its repetitions, and the quartiles around it.

    ``disturbed``: further repetitions that were left out, since the scheduler gave the CPU to
    others in the middle of them. ``noisy``: there were hardly others, so that such are in.
    """

    name: Name
    value: Measured
    quartiles: tuple[Measured, Measured] | None = None
    repetitions: Annotated[int, Field(strict=True, ge=1)]
    disturbed: Whole = 0
    noisy: bool = False
    method: Line
    parameters: Parameters = Field(default_factory=Parameters)

    def _fits(self) -> None:
        if self.quartiles is not None:
            low, high = self.quartiles
            if {low.kind, high.kind} != {self.value.kind}:
                raise ValueError("quartiles: expected units of the same kind as the value's")
            if not low.value <= self.value.value <= high.value:
                raise ValueError("quartiles: expected lower quartile ≤ value ≤ upper quartile")

    @property
    def spread(self) -> float:
        """Interquartile range over the median; 0 where it is not known."""
        low, high = self.ends
        return (high.value - low.value) / self.value.value if self.value.value else 0.0

    @property
    def ends(self) -> tuple[Reading, Reading]:
        """The quartiles; the value itself where they are not known."""
        return self.quartiles or (self.value, self.value)

    def quantity(self, day: str | None = None) -> Quantity:
        """The value between its quartiles; where a ``day`` is told, with its source."""
        low, high = self.ends
        source = f"measured {day}: {self.method}" if day else None
        return Quantity(self.value.value, low.value, high.value, source, doubtful=self.noisy)


def figures(
    measurements: Iterable[Measurement], name: str, **parameters: object
) -> list[Measurement]:
    """Those of that name and with these parameters."""
    return [
        one
        for one in measurements
        if one.name == name
        and all(getattr(one.parameters, key) == value for key, value in parameters.items())
    ]


class HostState(Strict):
    """The state of the host while it was measured; what the kernel does not tell is left out.

    Shares are of the time of all CPUs (``steal``: taken by the hypervisor, ``others``: used by
    other programs), ``clock_drift`` how far the median of a loop of known cycles was
    above its minimum. ``passes``: how often all was measured, minutes after each other.
    """

    date: Line
    version: Line
    parts: tuple[Name, ...] = ()
    quick: bool = False
    passes: Whole | None = None
    duration: Duration | None = None
    cpu_model: Line | None = None
    cpus: Line | None = None
    kernel: Line | None = None
    virtualisation: Line | None = None
    governor: Line | None = None
    turbo: Line | None = None
    smt: Line | None = None
    transparent_huge_pages: Line | None = None
    load_average: Share | None = None
    steal: Share | None = None
    others: Share | None = None
    clock_drift: Share | None = None
