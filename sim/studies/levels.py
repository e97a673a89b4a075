"""The values of a factor as text: ``16,64,256``, or a range ``1 us:1 ms:7log``.

A number with a unit is kept as a number of that unit, so that it can be drawn and sorted.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...inputs import InputError, parse_yaml
from ...inputs.quantities import in_unit

LEVELS_MAX = 1_000_000
CHECKED_MAX = 100
_NUMBER = r"[+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_UNIT = r"[A-Za-zµμ%]*(?:/[A-Za-z]+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*({_UNIT})\s*")
_COUNT = re.compile(r"\s*(\d+)\s*(log)?\s*")
EXPECTED = "from:to:n or from:to:nlog, such as 1:8:4 or 1 us:1 ms:7log"


@dataclass(frozen=True)
class Levels:
    """The values of a factor, each once; numbers are in ``unit``, empty where they have none."""

    values: tuple[Any, ...]
    unit: str = ""

    @property
    def numeric(self) -> bool:
        """Whether all are numbers."""
        return all(is_number(value) for value in self.values)

    @property
    def checked(self) -> tuple[Any, ...]:
        """Those that tell whether a field takes them all: of many numbers the least and largest."""
        if len(self.values) <= CHECKED_MAX:
            return self.values
        numbers = [value for value in self.values if is_number(value)]
        others = [value for value in self.values if not is_number(value)]
        return (*others[:CHECKED_MAX], *([min(numbers), max(numbers)] if numbers else ()))


def is_number(value: Any) -> bool:
    """Whether it is a number; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read_levels(text: str, source: str, whole: bool = False) -> Levels:
    """The levels that ``text`` lists; raises InputError. ``whole``: ranges are rounded."""
    parts = [part for part in _split(text, ":") if part]
    if len(_split(text, ":")) > 1 and parts and split_number(parts[0]) is not None:
        return _range(text, source, whole)
    texts = _split(text, ",")
    if not text.strip() or not all(part.strip() for part in texts):
        raise InputError("an empty value", source, expected="path=v1,v2,v3 or path=from:to:n")
    return listed([_plain(text, source) for text in texts])


def is_single(text: str) -> bool:
    """Whether ``text`` is one value, neither a list nor a range."""
    return len(_split(text, ",")) == 1 == len(_split(text, ":"))


def listed(values: Iterable[Any]) -> Levels:
    """Levels of plain values, each once; see ``in_common_unit``."""
    found, unit = in_common_unit(list(values))
    return Levels(tuple({repr(value): value for value in found}.values()), unit)


def in_common_unit(values: Sequence[Any]) -> tuple[list[Any], str]:
    """Texts that are all numbers with units as numbers of the first one's unit, and that unit;
    other values as they are.
    """
    found = [split_number(value) if isinstance(value, str) else None for value in values]
    if found and found[0] is not None and found[0][1]:
        unit = found[0][1]
        numbers = [
            None if parsed is None or not parsed[1] else in_unit(*parsed, unit) for parsed in found
        ]
        if None not in numbers:
            return numbers, unit
    return list(values), ""


def spread(low: float, high: float, count: int, log: bool, whole: bool) -> tuple[Any, ...]:
    """``count`` values from ``low`` to ``high``, evenly or by equal ratios, each once."""
    space = np.geomspace if log else np.linspace
    return tuple(dict.fromkeys(tidy(value, whole) for value in space(low, high, count).tolist()))


def tidy(value: float, whole: bool) -> float | int:
    """The number to twelve digits, or as a whole number."""
    if whole:
        return math.floor(value + 0.5)
    return float(f"{value:.12g}")


def split_number(text: str) -> tuple[float, str] | None:
    """The number and the unit in ``text``; None where it is something else."""
    found = _QUANTITY.fullmatch(text)
    return None if found is None else (float(found[1]), found[2])


def written(value: Any, unit: str) -> str:
    """The value as a setting says it."""
    if is_number(value):
        number = repr(int(value)) if isinstance(value, int) else repr(float(value))
        return f"{number} {unit}".rstrip()
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(written(part, '') for part in value)}]"
    return str(value)


def _range(text: str, source: str, whole: bool) -> Levels:
    parts = _split(text, ":")
    ends = [split_number(part) for part in parts[:2]]
    count = _COUNT.fullmatch(parts[2]) if len(parts) == 3 else None
    if None in ends or count is None:
        raise InputError("not a range", source, token=text, expected=EXPECTED)
    (low, unit), (high, of_high) = ends  # type: ignore[misc]
    unit = unit or of_high
    if (scaled := in_unit(high, of_high or unit, unit)) is None:
        raise InputError("units that do not fit each other", source, token=text, expected=EXPECTED)
    return Levels(checked_range(low, scaled, int(count[1]), bool(count[2]), whole, source), unit)


def checked_range(
    low: float, high: float, count: int, log: bool, whole: bool, source: str
) -> tuple[Any, ...]:
    """``spread``; raises InputError where the range is empty, too fine or has no logarithm."""
    if count < 1:
        raise InputError("an empty range", source, token=f"{count} values", expected="at least 1")
    if count > LEVELS_MAX:
        raise InputError(
            "too many values", source, token=str(count), expected=f"at most {LEVELS_MAX:,}"
        )
    if log and not (low > 0 and high > 0):
        raise InputError(
            "a log range", source, token=f"{low:g} to {high:g}", expected="both ends above 0"
        )
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError("a range", source, expected="finite ends")
    return spread(low, high, count, log, whole)


def _plain(text: str, source: str) -> Any:
    """The value as YAML has it; a text with a colon stays one."""
    value = parse_yaml(text.strip(), source).value
    if isinstance(value, (dict, list)) and text.strip()[0] not in "{[":
        return text.strip()
    return value


def _split(text: str, mark: str) -> list[str]:
    """The parts between marks that stand in no brackets and no quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        elif letter == mark and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]
