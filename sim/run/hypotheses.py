"""Conditions of a run that nobody told: ``unknown`` of a scenario, and how they are written.

``unknown: {system.batch: [1, 8, 128], system.page_size: {from: 4 KiB, to: 2 MiB}}`` names any
fields of its machine, workload, system or policies: one of a few values, each as likely unless
``{choices: [4 KiB, 2 MiB], weights: [3, 1]}`` says else, or any between two ends, by ratio where
both are positive. They are doubts of the scenario's predictions, drawn with the others, and what
``numatwin infer`` weighs by evidence. A run has the most likely of them, or the middle; what a
setting states is known.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_serializer

from ...inputs import DescriptionError, Strict
from ...inputs.fields import is_inside
from ..machine.assumptions import Place, in_one_unit

CHOICES_MAX = 100


class Unknown(Strict):
    """One of ``choices``, as likely as ``weights`` say, or between two ends; a list is choices."""

    choices: Annotated[tuple[Any, ...], Field(max_length=CHOICES_MAX)] = ()
    weights: tuple[Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)], ...] = ()
    low: Annotated[Any, Field(alias="from")] = None
    high: Annotated[Any, Field(alias="to")] = None

    def _fits(self) -> None:
        given = [end for end in (self.low, self.high) if end is not None]
        if len(self.weights) not in (0, len(self.choices)):
            raise DescriptionError(("weights",), "expected a weight of each of the choices")
        if self.choices:
            different = {repr(value) for value in self.choices}
            if len(different) < len(self.choices) or given:
                raise DescriptionError((), "expected different values, or 'from' and 'to'")
            return
        if len(given) < 2:
            raise DescriptionError((), "expected at least one value, or both 'from' and 'to'")
        ends, said = in_one_unit(self.low, self.high), f"from {self.low} to {self.high}"
        if ends is None:
            raise DescriptionError((), f"{said}: expected two numbers of one unit")
        if ends[0] >= ends[1]:
            raise DescriptionError(("to",), f"{said}: expected the lower end first")

    @model_serializer
    def _as_written(self) -> Any:
        if not self.choices:
            return {"from": self.low, "to": self.high}
        choices = list(self.choices)
        return {"choices": choices, "weights": list(self.weights)} if self.weights else choices

    @property
    def values(self) -> tuple[Any, ...]:
        """The choices, or both ends."""
        return self.choices or (self.low, self.high)

    @property
    def middle(self) -> Any:
        """What a run has."""
        if self.weights:
            return self.choices[self.weights.index(max(self.weights))]
        return (self.choices or (between(self.low, self.high, 0.5),))[len(self.choices) // 2]


def between(low: Any, high: Any, at: float) -> Any:
    """The setting ``at`` 0 to 1 of the way: by ratio, or by difference where an end is not
    positive. Whole numbers stay whole."""
    common = in_one_unit(low, high)
    assert common is not None
    first, last, unit = common
    if first > 0.0 and last > 0.0:
        value = first * (last / first) ** at
    else:
        value = first + at * (last - first)
    if isinstance(low, int) and isinstance(high, int):
        return round(value)
    return f"{value:.9g} {unit}" if unit else value


def listed(raw: Any) -> Any:
    """Choices as a mapping says them."""
    return {"choices": raw} if isinstance(raw, (list, tuple)) else raw


Unknowns = dict[
    str, Annotated[Unknown, BeforeValidator(listed, json_schema_input_type=Unknown | list[Any])]
]


def place_in(settings: Any, path: str) -> Place:
    """The place that a dotted path means: names that are there may have dots themselves."""
    parts, place, value = path.split("."), list[str | int](), settings
    while parts:
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            key: Any = int(name) if isinstance(value, list) and name.isdigit() else name
            if is_inside(value, key):
                break
        value = value[key] if is_inside(value, key) else None
        place.append(key)
        parts = parts[count:]
    return tuple(place)
