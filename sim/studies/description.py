"""The schema of study files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from ...inputs import DescriptionError, Strict
from ...inputs.names import Name
from .goals import Prices
from .metrics import DEFAULTS

POINTS_MAX = 10_000_000
Number = float | int | str
"""With its unit where the field has one."""


class FactorDescription(Strict):
    """What a factor may be: ``values``, or a range ``from``, ``to`` with a number of ``steps`` (of
    a grid) on a ``scale``, or a ``distribution`` that samples draw from.

    A list alone stands for ``values``, a text for what ``numatwin sweep --set`` takes.
    """

    values: tuple[Any, ...] | None = None
    text: str | None = None
    low: Annotated[Number | None, Field(alias="from")] = None
    high: Annotated[Number | None, Field(alias="to")] = None
    steps: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] | None = None
    scale: Literal["linear", "log"] = "linear"
    distribution: Literal["uniform", "loguniform", "triangular", "normal", "lognormal"] | None = (
        None
    )
    mode: Number | None = None
    mean: Number | None = None
    deviation: Number | None = None

    @model_validator(mode="after")
    def _is_one_of_them(self) -> FactorDescription:
        if self.values is not None:
            if not self.values:
                raise DescriptionError(("values",), "an empty list: expected at least one value")
        elif self.text is None and self.distribution in (None, "uniform", "loguniform"):
            if self.low is None or self.high is None:
                raise DescriptionError((), "expected values, or a range 'from' and 'to'")
        elif self.distribution == "triangular":
            if None in (self.low, self.high, self.mode):
                raise DescriptionError((), "triangular: expected from, to and mode")
        elif self.distribution is not None and None in (self.mean, self.deviation):
            raise DescriptionError((), f"{self.distribution}: expected mean and deviation")
        return self


class DesignDescription(Strict):
    """Which points are run. ``points``: of a sample; ``file``: of a table (CSV), whose head names
    the factors.
    """

    kind: Literal["grid", "latin_hypercube", "sobol", "one_at_a_time", "table"] = "grid"
    points: Annotated[int, Field(strict=True, ge=1, le=POINTS_MAX)] | None = None
    seed: Annotated[int, Field(strict=True, ge=0)] = 0
    file: str | None = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> DesignDescription:
        sample = self.kind in ("latin_hypercube", "sobol")
        if sample != (self.points is not None):
            wanted = "expected 'points'" if sample else f"a {self.kind} has none"
            raise DescriptionError(("points",), wanted)
        if (self.kind == "table") != (self.file is not None):
            wanted = "expected 'file'" if self.kind == "table" else f"a {self.kind} has none"
            raise DescriptionError(("file",), wanted)
        return self


def _factor(raw: Any) -> Any:
    if isinstance(raw, (list, tuple)):
        return {"values": raw}
    if isinstance(raw, str):
        return {"text": raw}
    return raw


def _design(raw: Any) -> Any:
    return {"kind": raw} if isinstance(raw, str) else raw


def _listed(raw: Any) -> Any:
    return [raw] if isinstance(raw, str) else raw


Texts = Annotated[
    tuple[str, ...], BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])
]


class StudyDescription(Strict):
    """A study file. ``scenario``: a bundled name, a path (relative to this file), or a scenario in
    full; ``set``: other values of its fields, for all runs.

    ``factors``: by field, as ``--set`` names it, or ``policy``. ``common_random_numbers``: whether
    all runs draw the same numbers, so that what differs comes from the factors.
    """

    name: Name
    title: str = ""
    notes: Texts = ()
    scenario: str | dict[str, Any]
    settings: Annotated[dict[str, Any], Field(alias="set", default_factory=dict)]
    factors: Annotated[
        dict[
            str,
            Annotated[
                FactorDescription,
                BeforeValidator(
                    _factor, json_schema_input_type=FactorDescription | list[Any] | str
                ),
            ],
        ],
        Field(min_length=1),
    ]
    design: Annotated[
        DesignDescription,
        BeforeValidator(_design, json_schema_input_type=DesignDescription | str),
    ] = DesignDescription()
    replications: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = None
    common_random_numbers: bool = True
    metrics: Texts = DEFAULTS
    constraints: Texts = ()
    objective: str | None = None
    prices: Prices | None = None
