"""Nested plain data (model facts, settings) as rows of name and value."""

import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from .words import seconds, shortened, si

ROWS_MAX = 400
LIST_MAX = 8

# The unit at the end of a name tells how its value is written.
_UNITS = {
    "Bps": lambda value: si(value, "B/s", 4),
    "bytes": lambda value: si(value, "B", 4),
    "ns": lambda value: seconds(value * 1e-9, 4),
    "s": lambda value: seconds(value, 4),
    "J": lambda value: si(value, "J", 4),
    "W": lambda value: si(value, "W", 4),
    "Hz": lambda value: si(value, "Hz", 4),
}


def fact_rows(data: Mapping[str, Any], rows_max: float = ROWS_MAX) -> list[tuple[str, str]]:
    """(name, value) of each leaf, names joined by dots; at most ``rows_max``, then a last one.

    A unit at the end of a name (``_ns``, ``_Bps``) goes with the value.
    """
    rows: list[tuple[str, str]] = []
    for name, value in _leaves(data, ()):
        if len(rows) >= rows_max:
            rows.append(("…", "more in record.json"))
            break
        rows.append((name, value))
    return rows


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _leaves(part, (*path, str(key)))
    elif isinstance(value, (list, tuple)) and any(isinstance(v, (Mapping, list)) for v in value):
        for k, part in enumerate(value):
            yield from _leaves(part, (*path, str(k)))
    else:
        yield _named(path, value)


def _named(path: tuple[str, ...], value: Any) -> tuple[str, str]:
    *folders, name = path or ("",)
    stem, _, unit = name.rpartition("_")
    write = _UNITS.get(unit) if stem else None
    if write is not None and not (stem.endswith("per") or stem.endswith("_per")):
        name = stem
    else:
        write = None
    words = [part.replace("_", " ") for part in (*folders, name)]
    return " · ".join(words), _written(value, write or _plain_number)


def _plain_number(value: float) -> str:
    if abs(value) >= 1e5:
        return si(value, "", 4)
    return f"{value:.4g}"


def _written(value: Any, write: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real):
        return str(write(float(value))) if math.isfinite(value) else "–"
    if isinstance(value, (list, tuple)):
        return _list(value, write)
    if isinstance(value, Mapping):  # an empty one: others are leaves of their own
        return "–"
    return shortened(str(value), 500)


def _list(values: Sequence[Any], write: Any) -> str:
    """Short lists whole; of long ones of numbers the range."""
    if not values:
        return "–"
    if len(values) <= LIST_MAX or not all(isinstance(v, Real) for v in values):
        return shortened(", ".join(_written(value, write) for value in values), 500)
    numbers = [float(v) for v in values if math.isfinite(v)]
    if not numbers:
        return f"{len(values)} values, none known"
    mean = math.fsum(numbers) / len(numbers)
    return (
        f"{len(values)} values from {write(min(numbers))} to {write(max(numbers))}, "
        f"mean {write(mean)}"
    )
