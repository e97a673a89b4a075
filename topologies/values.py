"""Values of a description as plain numbers; what it leaves out is None or NaN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..inputs.quantities import Quantity
from ..inputs.yaml_file import Place
from .schema import DescriptionError
from .schema_types import Fact


def si(quantity: Quantity | None) -> float | None:
    """In SI units."""
    return None if quantity is None else quantity.value


def in_ns(quantity: Quantity | None) -> float | None:
    """A duration in nanoseconds."""
    return None if quantity is None else quantity.value * 1e9


def plain(fact: Fact | None) -> float | None:
    """A number without a unit."""
    return None if fact is None else fact.value


def or_nan(value: float | None) -> float:
    """NaN for what is unknown."""
    return float("nan") if value is None else value


def check_unique(ids: Iterable[int | str], place: Place, noun: str) -> None:
    """Raises DescriptionError where one of ``ids`` is listed twice."""
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise DescriptionError(place, f"{noun} {twice[0]} is listed twice")
