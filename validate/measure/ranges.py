"""Ranges of facts by how they differed from pass to pass.

A figure brings its quartiles; a fact that is worked out of several figures, such as what one more
level of a tree takes, has none of its own. How far it went up and down between passes tells how
sure it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from ...inputs import OpenPart, Quantity
from ...topologies.schema import MachineDescription
from ...topologies.schema_types import Fact, WriteTurnaround
from .samples import DIGITS

NOT_MEASURED = ("catalogue", "guessed")  # so their sources begin
FACTOR = 2.0
# The parts of a description that hold facts of their own.
PARTS = ("node_types", "pair_latency", "pair_bandwidth", "processes", "engines")


def with_ranges(
    description: MachineDescription, passes: Sequence[MachineDescription]
) -> MachineDescription:
    """``description``, its facts with ranges that hold the quartiles of those of the ``passes``.

    What comes from the catalogue keeps its own; a fact whose range spans a factor of two becomes
    doubtful.
    """
    changes = {
        part: _ranged(getattr(description, part), [getattr(one, part) for one in passes])
        for part in PARTS
    }
    return description.model_copy(update=changes)


def _ranged(fact: Any, others: Sequence[Any]) -> Any:
    """The same with ranges; what ``others`` do not have in that place does not count."""
    same_type = [one for one in others if type(one) is type(fact)]
    if isinstance(fact, (Quantity, Fact)) and (fact.source or "").startswith(NOT_MEASURED):
        return fact
    if isinstance(fact, Quantity):
        low, high = _quartiles((fact.low, fact.high), [one.value for one in same_type])
        return replace(fact, low=low, high=high, doubtful=fact.doubtful or low * FACTOR <= high)
    if isinstance(fact, Fact) and (same_type or fact.range):
        low, high = _quartiles(fact.range or (fact.value,) * 2, [one.value for one in same_type])
        # Of what a written line costs, the time of a line that is read and written.
        line = 2.0 if isinstance(fact, WriteTurnaround) else 0.0
        doubtful = fact.doubtful or (line + low) * FACTOR <= line + high
        return fact.model_copy(update={"range": (low, high), "doubtful": doubtful})
    if isinstance(fact, OpenPart):
        known = [one.model for one in same_type]
        return OpenPart(_ranged(fact.model, known)) if fact.model is not None else fact
    if isinstance(fact, BaseModel):
        names = type(fact).model_fields
        parts = {name: getattr(fact, name) for name in names}
        return fact.model_copy(
            update=_each(parts, lambda name: [getattr(f, name) for f in same_type])
        )
    if isinstance(fact, Mapping):
        return _each(fact, lambda name: [one.get(name) for one in same_type])
    if isinstance(fact, tuple):
        long = [one for one in same_type if len(one) == len(fact)]
        return tuple(_ranged(part, [one[k] for one in long]) for k, part in enumerate(fact))
    return fact


def _each(parts: Mapping[str, Any], others: Callable[[str], Sequence[Any]]) -> dict[str, Any]:
    return {name: _ranged(part, others(name)) for name, part in parts.items()}


def _quartiles(known: tuple[float, float], values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return known
    low, high = (float(f"{end:.{DIGITS}g}") for end in np.percentile(values, [25, 75]))
    return min(low, known[0]), max(high, known[1])
