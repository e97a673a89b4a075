"""Values that a model assumes where neither the machine file nor the scenario has one.

A number that stands in for a missing fact is an ``Assumed`` where the model has it; whoever uses it
notes so, and ``assumptions_of`` makes a list of what was noted. Each entry has the settings that
would state it (as ``--set`` takes them), so that its effect can be predicted by stating another
value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ...inputs.quantities import format_quantity, in_unit

Place = tuple[str | int, ...]

LESS, MORE = 0.9, 1.1
# Quantities by the unit in which an assumption is given: dimension, and SI units in one of it.
_UNITS = {
    "Hz": ("frequency", 1.0),
    "ns": ("time", 1e-9),
    "B": ("size", 1.0),
    "B/s": ("bandwidth", 1.0),
    "pJ/bit": ("energy_per_bit", 1e-12),
}


@dataclass(frozen=True)
class Variant:
    """Another value of an assumption: the value, and the settings that state it, by place."""

    value: float | str
    settings: Mapping[Place, Any]

    def __post_init__(self) -> None:
        if isinstance(self.value, float):  # a tenth of a rounded number has no more digits
            object.__setattr__(self, "value", float(f"{self.value:.6g}"))


@dataclass(frozen=True)
class Assumption:
    """A value that a run counts with though nobody stated it.

    ``value``: a number in ``unit``, or words. ``low`` and ``high``: the ends of its range where the
    machine file states one (``ranged``), else a tenth less and more, or what else it may well be;
    None where no setting says so.
    """

    name: str
    value: float | str
    unit: str
    source: str
    low: Variant | None = None
    high: Variant | None = None
    ranged: bool = False

    @property
    def settings(self) -> tuple[str, ...]:
        """Paths of the settings that would state it."""
        variant = self.low or self.high
        return tuple(".".join(map(str, place)) for place in variant.settings) if variant else ()


class Assumed(float):
    """A number that the cost model counts with where a machine file has none.

    ``place``: where a machine file would state it, in each of its ``part`` (``node_types``,
    ``link_types``). ``between``: what else it may well be, by default a tenth less and more.
    """

    name: str
    unit: str
    source: str
    place: Place
    part: str
    between: tuple[float, float]

    def __new__(
        cls,
        value: float,
        name: str,
        unit: str,
        source: str,
        *,
        place: Place,
        part: str = "node_types",
        between: tuple[float, float] | None = None,
    ) -> Self:
        """The number with all that is said of it."""
        self = super().__new__(cls, value)
        self.name, self.unit, self.source, self.place, self.part = name, unit, source, place, part
        self.between = between or (LESS * value, MORE * value)
        return self

    def __reduce__(self) -> Any:
        # Its plain value, where a result that was computed with it is sent to another process.
        return float, (float(self),)


Notes = dict[str, tuple[Assumed, dict[str, float]]]
"""By name: what was assumed, and the values in use by the name of the node or link type."""


def note(notes: Notes, assumed: Assumed, kind: str, value: float | None = None) -> float:
    """Notes that ``assumed`` stands in for a fact of the type ``kind``; ``value``: what it came to
    there. Returns this value.
    """
    used = float(assumed if value is None else value)
    notes.setdefault(assumed.name, (assumed, {}))[1][kind] = used
    return used


def assumptions_of(notes: Notes) -> Iterator[Assumption]:
    """An assumption for each number that was noted."""
    for assumed, values in notes.values():
        used = sorted(set(values.values()))

        def variant(end: int, assumed: Assumed = assumed, values: Any = values) -> Variant:
            other = assumed.between[end]
            # What was derived from the assumed number, such as its maximum with another, moves too.
            times = other / assumed if assumed else None
            made = {kind: other if times is None else times * v for kind, v in values.items()}
            return Variant(
                other if len(set(made.values())) > 1 else next(iter(made.values())),
                {
                    ("machine", assumed.part, kind, *assumed.place): written(value, assumed.unit)
                    for kind, value in made.items()
                },
            )

        yield Assumption(
            assumed.name,
            used[0] if len(used) == 1 else f"{used[0]:g} to {used[-1]:g}",
            assumed.unit,
            assumed.source,
            variant(0),
            variant(1),
        )


def written(value: float, unit: str) -> Any:
    """The value as a machine file has it."""
    if unit not in _UNITS:
        return value
    dimension, si = _UNITS[unit]
    return format_quantity(value * si, dimension)


def split_quantity(value: Any) -> tuple[float | str, str]:
    """``2.4 GHz`` as a number and its unit; a plain number has none, other words are a value."""
    if isinstance(value, Mapping) and "value" in value:
        value = value["value"]
    if isinstance(value, (int, float)):
        return float(value), ""
    number, _, unit = str(value).partition(" ")
    try:
        return float(number), unit
    except ValueError:
        return str(value), ""


def in_one_unit(low: Any, high: Any) -> tuple[float, float, str] | None:
    """Both ends in the unit of the first; None where they are no numbers of one dimension."""
    (first, unit), (last, other) = split_quantity(low), split_quantity(high)
    if not isinstance(first, float) or not isinstance(last, float):
        return None
    scaled = last if unit == other else in_unit(last, other, unit)
    return None if scaled is None else (first, scaled, unit)


def stated(place: Place, value: Any, unit: str) -> Variant:
    """The variant in which ``value`` stands at ``place``: as a number where it is in that unit,
    else as the whole text.
    """
    number, own = split_quantity(value)
    return Variant(number if own == unit else str(value), {place: value})


def times_value(value: Any, times: float) -> Any:
    """The value, such as ``2.4 GHz``, ``times`` as large; whole numbers stay whole."""
    number, unit = split_quantity(value)
    assert isinstance(number, float), value
    if isinstance(value, int):
        return max(1, round(times * value))
    return f"{times * number:.12g} {unit}" if unit else times * number
