"""The statistics settings of a scenario: replications, confidence, warm-up."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from ...inputs import DescriptionError, Quantity, Strict, format_quantity
from ...inputs.quantities import DurationOrZero, read_quantity

AUTO = "auto"
REPLICATIONS_LIMIT = 100_000


def _warm_up(raw: Any) -> Any:
    if raw == AUTO or isinstance(raw, Quantity):
        return raw
    try:
        return read_quantity(raw, "time", zero_allowed=True)
    except ValueError as failure:
        raise ValueError(f"{failure}, or auto") from None


def _written(warm_up: str | Quantity) -> str:
    return format_quantity(warm_up.value, "time") if isinstance(warm_up, Quantity) else warm_up


Replications = Annotated[int, Field(strict=True, ge=1, le=REPLICATIONS_LIMIT)]
Part = Annotated[float, Field(strict=True, gt=0, lt=1)]
WarmUp = Annotated[
    Literal["auto"] | Quantity,
    BeforeValidator(_warm_up, json_schema_input_type=Literal["auto"] | DurationOrZero),
    PlainSerializer(_written),
]


class Statistics(Strict):
    """How planes that draw at random are run; a plane that draws nothing runs once, from time 0.

    ``replications``: runs with independent draws, at least. ``confidence``: of each interval.
    ``half_width``: where given, replications are added until the intervals of all throughputs reach
    no farther than this part of their mean to either side, or until there are
    ``replications_max``. ``warm_up``: what is left out at the beginning of each run; ``auto``:
    until MSER-5 sees a pilot run settled.
    """

    replications: Replications = 5
    confidence: Part = 0.95
    half_width: Part | None = None
    replications_max: Replications = 100
    warm_up: WarmUp = "auto"

    @property
    def warm_up_s(self) -> float | None:
        """The warm-up in seconds; None where a pilot run shall tell it."""
        return self.warm_up.value if isinstance(self.warm_up, Quantity) else None

    @model_validator(mode="after")
    def _can_be_reached(self) -> Statistics:
        if self.half_width is None:
            return self
        if self.replications < 2:
            raise DescriptionError(
                ("replications",), "one replication has no half_width: expected at least 2"
            )
        if self.replications_max < self.replications:
            raise DescriptionError(
                ("replications_max",), f"expected at least {self.replications}, as replications"
            )
        return self
