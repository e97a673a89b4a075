"""Numbers with a unit: ``26.7 GB/s``, ``129 ns``, ``24 MiB``; a bare number is refused.

pint does the arithmetic of units, in a registry of just the units of this field, so that a slip
(``GT/s``, ``Gbps``) is refused rather than guessed. Decimal prefixes are powers of 1,000, binary
ones (``Ki``, ``Mi``, ``Gi``, ``Ti``) of 1,024; ``B`` is a byte, ``b`` or ``bit`` a bit. A rate is
written as results are printed, ``100 M/s``, or in ``Hz``.
"""

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

if TYPE_CHECKING:
    import pint

_UNITS = """\
pico- = 1e-12 = p-
nano- = 1e-9 = n-
micro- = 1e-6 = µ- = μ- = u-
milli- = 1e-3 = m-
kilo- = 1e3 = k-
mega- = 1e6 = M-
giga- = 1e9 = G-
tera- = 1e12 = T-
peta- = 1e15 = P-
kibi- = 2**10 = Ki-
mebi- = 2**20 = Mi-
gibi- = 2**30 = Gi-
tebi- = 2**40 = Ti-
pebi- = 2**50 = Pi-
second = [time] = s
minute = 60 * second = min
hertz = 1 / second = Hz
byte = [information] = B
bit = byte / 8 = b
joule = [energy] = J
watt = joule / second = W
""".splitlines()

# Dimension -> (unit of the SI value that the code holds, an example for error messages).
DIMENSIONS = {
    "time": ("second", "129 ns"),
    "size": ("byte", "24 MiB"),
    "bandwidth": ("byte / second", "26.7 GB/s"),
    "frequency": ("hertz", "2.2 GHz"),
    "rate": ("hertz", "100 M/s"),
    "power": ("watt", "95 W"),
    "energy_per_bit": ("joule / bit", "15 pJ/bit"),
}

# From (SI value) back to text: the unit to write, and its power of ten.
_WRITTEN = {
    "time": ("ns", -9),
    "size": ("B", 0),
    "bandwidth": ("GB/s", 9),
    "frequency": ("GHz", 9),
    "rate": ("M/s", 6),
    "power": ("W", 0),
    "energy_per_bit": ("pJ/bit", -12),
}

_TEXT_MAX = 64  # longer is no quantity
_FORM = re.compile(
    r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
    r"([A-Za-zµμ]+(?:\s*/\s*[A-Za-zµμ]+)?|/\s*[A-Za-z]+)\s*",
    re.ASCII,
)
_PER_SECOND = re.compile(r"([kMGTP]?)\s*/\s*s")  # what each unit counts goes without saying


@dataclass(frozen=True)
class Quantity:
    """A value in SI units, with where it comes from and how far it can be trusted.

    ``low`` and ``high`` are the bounds of its range (both equal to ``value`` where none is given);
    ``doubtful`` marks a value that its source itself leaves in doubt.
    """

    value: float
    low: float
    high: float
    source: str | None = None
    doubtful: bool = False

    def __float__(self) -> float:
        return self.value

    @classmethod
    def exact(cls, value: float) -> "Quantity":
        """A value without a range."""
        number = float(value)
        return cls(number, number, number)


@cache
def _pint() -> Any:
    """pint, which loads all of dask where that is installed, to know its arrays: more than pint
    itself. While it is imported there is no dask, unless that is loaded already.
    """
    if "dask" in sys.modules:
        return import_module("pint")
    sys.modules["dask"] = None  # type: ignore[assignment]
    try:
        return import_module("pint")
    finally:
        del sys.modules["dask"]


@cache
def _registry() -> "pint.UnitRegistry[Any]":
    registry: pint.UnitRegistry[Any] = _pint().UnitRegistry(
        None, cache_folder=None, non_int_type=Fraction
    )
    registry.load_definitions(_UNITS)
    return registry


# Symbols that files are written in, without pint, which takes long to load: (SI unit, what one of
# them is in the unit of each dimension). Prefixes are those of ``_UNITS``.
_PLAIN_UNITS: Mapping[str, Mapping[tuple[str, str], Fraction]] = {
    "second": {("s", ""): Fraction(1)},
    "byte": {("B", ""): Fraction(1)},
    "byte / second": {("B", "s"): Fraction(1), ("b", "s"): Fraction(1, 8)},
    "hertz": {("Hz", ""): Fraction(1)},
    "watt": {("W", ""): Fraction(1)},
    "joule / bit": {("J", "b"): Fraction(1)},
}
_PREFIXES = {
    symbol.strip(" -"): Fraction(2) ** int(power) if power else Fraction(value)
    for line in _UNITS
    if "- =" in line
    for _, value, *symbols in [line.split(" = ")]
    for _, _, power in [value.partition("2**")]
    for symbol in symbols
} | {"": Fraction(1)}
_PLAIN = re.compile(rf"({'|'.join(_PREFIXES)})(s|B|b|Hz|W|J)(?:/(s|b))?")


def _plain_factor(written: str, unit: str) -> Fraction | None:
    """What one of the unit ``written`` is in ``unit``, where both are plain; else None."""
    found = _PLAIN.fullmatch(written.replace("bit", "b"))
    if found is None:
        return None
    factor = _PLAIN_UNITS[unit].get((found[2], found[3] or ""))
    return None if factor is None else factor * _PREFIXES[found[1]]


@lru_cache(maxsize=4_096)
def _factor(written: str, unit: str) -> Fraction:
    """What one of the unit ``written`` is in ``unit``, exactly; raises pint's errors."""
    return Fraction(_registry().Quantity(Fraction(1), written).to(unit).magnitude)


def _factor_of(written: str, dimension: str) -> Fraction:
    """What one of the unit ``written`` is in that of ``dimension``; raises ValueError."""
    unit, example = DIMENSIONS[dimension]
    per_second = _PER_SECOND.fullmatch(written)
    if per_second and dimension == "rate":
        written = f"{per_second[1]}Hz"
    plain = _plain_factor(written, unit)
    if plain is not None:
        return plain
    other = f"'{written}' is not a unit of {_noun(dimension)}: expected something like '{example}'"
    if any(_plain_factor(written, unit) for unit, _ in DIMENSIONS.values()):
        raise ValueError(other)
    if written.startswith("K") and _plain_factor(f"k{written[1:]}", unit):
        meant = f"k{written[1:]}" + f" or Ki{written[1:]}" * (written[1] in "Bb")
        raise ValueError(f"unknown unit '{written}': expected {meant}")
    units = _pint()
    try:
        if per_second and dimension != "rate":
            raise units.DimensionalityError(written, unit)
        return _factor(written, unit)
    except units.UndefinedUnitError:
        raise ValueError(
            f"unknown unit '{written}': expected a {_noun(dimension)} such as '{example}'"
        ) from None
    except units.DimensionalityError:
        raise ValueError(other) from None
    except Exception:  # pint's parser, on a unit such as 'B//s'
        raise ValueError(f"expected a {_noun(dimension)} such as '{example}'") from None


@lru_cache(maxsize=65_536)
def parse_quantity(text: str, dimension: str) -> float:
    """The SI value of ``text``, whose unit must be of ``dimension`` (a key of ``DIMENSIONS``).

    Raises ValueError with one clear sentence: no number, no unit, unknown unit, wrong dimension.
    """
    example = DIMENSIONS[dimension][1]
    form = _FORM.fullmatch(text) if len(text) <= _TEXT_MAX else None
    if form is None:
        raise ValueError(f"expected a {_noun(dimension)} with its unit, such as '{example}'")
    number, factor = form[1], _factor_of(form[2].strip(), dimension)
    if not re.search("[1-9]", re.split("[eE]", number)[0]):
        return 0.0
    if not 1e-300 < abs(float(number)) < 1e300:  # before Fraction writes out a huge power of ten
        raise ValueError(
            f"too large or too small for a {_noun(dimension)}: expected something like '{example}'"
        )
    # The nearest float to the decimal number, so that '129 ns' is 129e-9 and writes back as such.
    return float(Fraction(number) * factor)


def si_of(text: str) -> tuple[float, str] | None:
    """The SI value of a number with its unit, and its dimension; None of anything else."""
    for dimension in DIMENSIONS:
        try:
            return parse_quantity(text, dimension), dimension
        except ValueError:
            continue
    return None


def in_unit(number: float, unit: str, to: str) -> float | None:
    """The number in another unit; None where both are of different dimensions."""
    if unit == to:
        return number
    one, other = si_of(f"1 {unit}"), si_of(f"1 {to}")
    if one is None or other is None or one[1] != other[1]:
        return None
    return float(f"{number * one[0] / other[0]:.12g}")


def size_text(size_bytes: float) -> str:
    """``8 GiB``, ``24 MiB``: memory and caches count in powers of 1,024; ``–`` if unknown."""
    if not math.isfinite(size_bytes):
        return "–"
    for scale, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.4g} {unit}"
    return f"{size_bytes:.4g} B"


def rounded(value: float) -> float:
    """To as many digits as a machine file has of what was measured, fitted or worked out."""
    return float(f"{value:.4g}")


def counted(number: int, noun: str) -> str:
    """``1 node``, ``1,024 nodes``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def format_quantity(value: float, dimension: str) -> str:
    """``value`` (SI) as text that ``parse_quantity`` reads back to the same float."""
    unit, exponent = _WRITTEN[dimension]
    if dimension == "size":
        for binary, scale in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if value >= scale and value % scale == 0:
                return f"{_plain(Decimal(value / scale))} {binary}"
    # repr gives the shortest digits that read back; shifting the point keeps them exact.
    return f"{_plain(Decimal(repr(float(value))).scaleb(-exponent))} {unit}"


def _plain(number: Decimal) -> str:
    """``10.7``, ``1024``; ``1.5e-7`` where plain digits would be long."""
    number = number.normalize()
    places = number.as_tuple()
    exponent = int(places.exponent)
    long = len(places.digits) + max(exponent, 0) > 24 or exponent < -24
    return f"{number:e}" if long else f"{number:f}"


def time_text(value_s: float) -> str:
    """A time as people read it, in four digits: ``200 µs``, ``1.5 s``."""
    rounded = float(f"{value_s:.4g}")
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if rounded >= scale:
            return f"{rounded / scale:.4g} {unit}"
    return f"{rounded / 1e-9:.4g} ns"


def read_quantity(raw: Any, dimension: str, *, zero_allowed: bool = False) -> Quantity:
    """A quantity from YAML: text with a unit, or a mapping of value, range, source, doubtful.

    Raises ValueError where the number is bare, of another dimension, negative, or (unless
    ``zero_allowed``) zero, or where the range does not hold the value.
    """
    if isinstance(raw, Quantity):
        return raw
    example = DIMENSIONS[dimension][1]
    if isinstance(raw, dict):
        unknown = sorted(set(map(str, raw)) - {"value", "range", "source", "doubtful"})
        if unknown:
            raise ValueError(
                f"unknown field '{unknown[0]}': expected value, range, source, doubtful"
            )
        if "value" not in raw:
            raise ValueError(f"missing field 'value': expected for example 'value: {example}'")
        value = _one(raw["value"], dimension, zero_allowed)
        bounds = raw.get("range")
        low = high = value
        if bounds is not None:
            if not isinstance(bounds, list) or len(bounds) != 2:
                raise ValueError(
                    f"range: expected two quantities, such as '[{example}, {example}]'"
                )
            low, high = (_one(bound, dimension, zero_allowed) for bound in bounds)
            if not low <= value <= high:
                raise ValueError("range: expected lower bound ≤ value ≤ upper bound")
        source = raw.get("source")
        if source is not None and not isinstance(source, str):
            raise ValueError("source: expected text")
        doubtful = raw.get("doubtful", False)
        if not isinstance(doubtful, bool):
            raise ValueError("doubtful: expected true or false")
        return Quantity(value, low, high, source, doubtful)
    value = _one(raw, dimension, zero_allowed)
    return Quantity.exact(value)


def _one(raw: Any, dimension: str, zero_allowed: bool) -> float:
    """One number with its unit, positive."""
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        raise ValueError(
            f"a bare number has no unit: expected a {_noun(dimension)} such as "
            f"'{DIMENSIONS[dimension][1]}'"
        )
    if not isinstance(raw, str):
        raise ValueError(
            f"expected a {_noun(dimension)} with its unit, such as '{DIMENSIONS[dimension][1]}'"
        )
    value = parse_quantity(raw, dimension)
    if value < 0 or (value == 0 and not zero_allowed):
        raise ValueError(
            f"expected a {_noun(dimension)} {'of at least' if zero_allowed else 'above'} 0"
        )
    return value


def _noun(dimension: str) -> str:
    return dimension.replace("_", " ")


def _written(quantity: Quantity, dimension: str) -> str | dict[str, Any]:
    """The YAML form of a quantity: plain text where it has neither range nor source."""
    text = format_quantity(quantity.value, dimension)
    if quantity.source is None and not quantity.doubtful and quantity.low == quantity.high:
        return text
    form: dict[str, Any] = {"value": text}
    if quantity.low != quantity.high:
        form["range"] = [
            format_quantity(bound, dimension) for bound in (quantity.low, quantity.high)
        ]
    if quantity.source is not None:
        form["source"] = quantity.source
    if quantity.doubtful:
        form["doubtful"] = True
    return form


def _field(dimension: str, *, zero_allowed: bool = False) -> tuple[Any, ...]:
    return (
        BeforeValidator(lambda raw: read_quantity(raw, dimension, zero_allowed=zero_allowed)),
        PlainSerializer(lambda quantity: _written(quantity, dimension)),
        WithJsonSchema(quantity_schema(dimension), mode="validation"),
    )


def quantity_schema(dimension: str) -> dict[str, Any]:
    """JSON Schema of what ``read_quantity`` takes."""
    example = DIMENSIONS[dimension][1]
    text = {
        "type": "string",
        "description": f"A {_noun(dimension)} with its unit",
        "examples": [example],
        "pattern": r"^\s*[+-]?[0-9.].*[A-Za-zµμ]\s*$",
    }
    fields = {
        "value": text,
        "range": {"type": "array", "items": text, "minItems": 2, "maxItems": 2},
        "source": {"type": ["string", "null"]},
        "doubtful": {"type": "boolean"},
    }
    mapping = {
        "type": "object",
        "properties": fields,
        "required": ["value"],
        "additionalProperties": False,
    }
    return {"anyOf": [text, mapping]}


Duration = Annotated[Quantity, *_field("time")]
DurationOrZero = Annotated[Quantity, *_field("time", zero_allowed=True)]
Size = Annotated[Quantity, *_field("size")]
SizeOrZero = Annotated[Quantity, *_field("size", zero_allowed=True)]
Bandwidth = Annotated[Quantity, *_field("bandwidth")]
Frequency = Annotated[Quantity, *_field("frequency")]
Rate = Annotated[Quantity, *_field("rate")]
Power = Annotated[Quantity, *_field("power", zero_allowed=True)]
EnergyPerBit = Annotated[Quantity, *_field("energy_per_bit", zero_allowed=True)]
