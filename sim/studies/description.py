"""The schema of study files.

Goals of a study: constraints on figures, an objective, prices of machines.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from ...inputs import DescriptionError, InputError, Strict
from ...inputs.names import Name
from ...inputs.quantities import DIMENSIONS, parse_quantity
from ..kernel.arrays import Floats
from ..run.record import KINDS, unit_of
from .evaluate import COST, DEFAULTS, check_metric
from .levels import is_number

Amount = Annotated[float, Field(ge=0)]

_CONSTRAINT = re.compile(r"\s*(\S+)\s*(<=|>=|<|>|≤|≥)\s*(.+?)\s*")
_OBJECTIVE = re.compile(r"\s*(minimi[sz]e|maximi[sz]e)\s+(\S+)(?:\s+(?:per|/)\s+(\S+))?\s*")
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%|J|[A-Z]{3})?")
PER = {"euro": COST, "dollar": COST, "watt": "power_W"}


class Price(Strict):
    """What a machine costs: a ``fixed`` part, and parts by what it has."""

    fixed: Amount = 0.0
    per_node: Amount = 0.0
    per_core: Amount = 0.0
    per_GB: Amount = 0.0
    per_port: Amount = 0.0

    def of(self, row: Mapping[str, Any]) -> float:
        """The price of the machine whose figures (``machine.nodes`` …) a row has; NaN where one of
        them is no number.
        """
        priced = {"nodes": self.per_node, "cores": self.per_core}
        priced |= {"memory_GB": self.per_GB, "ports": self.per_port}
        figures = [row.get(f"machine.{name}") for name in priced]
        if not all(map(is_number, figures)):
            return math.nan
        return float(sum(map(mul, priced.values(), figures), self.fixed))


class Prices(Strict):
    """The user's own prices, by machine: its name, or what the factor ``machine`` says.

    ``default``: of machines that are not named; without it their cost is unknown.
    """

    currency: str = "EUR"
    default: Price | None = None
    machines: dict[str, Price] = Field(default_factory=dict)

    def cost(self, row: Mapping[str, Any]) -> float:
        """What the machine of a row costs; NaN where that is unknown."""
        for name in (row.get("machine"), row.get("machine.name")):
            if name in self.machines:
                return self.machines[name].of(row)
        return math.nan if self.default is None else self.default.of(row)


@dataclass(frozen=True)
class Constraint:
    """A bound on a ``metric``, in the metric's own unit."""

    text: str
    metric: str
    below: bool
    bound: float

    def slack(self, values: Floats) -> Floats:
        """How far ``values`` are from breaking it, relative to the bound; negative where broken,
        NaN where unknown.
        """
        away = self.bound - values if self.below else values - self.bound
        return np.asarray(away / (abs(self.bound) or 1.0))

    def margin(self, slack: float) -> str:
        """A ``slack`` in words: on which side of its bound the figure is, and how far."""
        side = "below" if self.below == (slack >= 0) else "above"
        broken = "" if slack >= 0 else ", which breaks it"
        return f"{self.metric} is {100 * abs(slack):.1f}% {side} its bound ({self.text}){broken}"


@dataclass(frozen=True)
class Objective:
    """What shall be least or most: a ``metric``, or that per another one."""

    text: str
    least: bool
    metric: str
    per: str | None = None

    def values(self, columns: Mapping[str, Floats]) -> Floats:
        """The figure of each row."""
        if self.per is None:
            return columns[self.metric]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(columns[self.metric] / columns[self.per])

    @property
    def metrics(self) -> list[str]:
        """The metrics that it is made of."""
        return [self.metric] if self.per is None else [self.metric, self.per]

    @property
    def figure(self) -> str:
        """Its name: the metric's, or ``throughput.lookup per cost``."""
        return " per ".join(self.metrics)

    @property
    def unit(self) -> str:
        """Its unit, where it is a metric's own."""
        return unit_of(self.metric) if self.per is None else ""


def read_constraint(text: str, operations: Sequence[str] | None) -> Constraint:
    """The constraint ``METRIC < VALUE``; raises InputError."""
    found = _CONSTRAINT.fullmatch(text)
    if found is None:
        expected = "METRIC < VALUE, such as 'latency_ns.commit.p99 < 100 us'"
        raise InputError("not a constraint", token=text, expected=expected)
    metric, sign, written = found.groups()
    if metric != COST:
        check_metric(metric, operations)
    return Constraint(text, metric, sign in ("<", "<=", "≤"), _bound(metric, written))


def _bound(metric: str, written: str) -> float:
    kind = KINDS.get(metric.partition(".")[0])
    if kind is not None and (dimension := kind.dimension) is not None:
        try:
            return parse_quantity(written, dimension) * kind.per_si
        except ValueError:
            expected = f"a {dimension} such as '{DIMENSIONS[dimension][1]}'"
            raise InputError(f"a bound of {metric}", token=written, expected=expected) from None
    found = _NUMBER.fullmatch(written)
    unit = unit_of(metric)
    allowed = {"1": ("%", None), "J": ("J",)}.get(unit, (None,))
    if found is not None and metric == COST and found[2] not in ("%", "J"):
        return float(found[1])
    if found is None or found[2] not in allowed:
        forms = {"1": "a share such as '80%'", "J": "an energy such as '10 J'"}
        raise InputError(
            f"a bound of {metric}", token=written, expected=forms.get(unit, "a number")
        )
    value = float(found[1]) / (100.0 if found[2] == "%" else 1.0)
    if unit == "1" and found[2] is None and value > 1.0:
        raise InputError(
            f"a bound of {metric}", token=written, expected=f"a share, such as '{written}%'"
        )
    return value


def read_objective(text: str, operations: Sequence[str] | None) -> Objective:
    """The objective ``minimise METRIC`` or ``maximise METRIC per METRIC``; raises InputError."""
    found = _OBJECTIVE.fullmatch(text)
    if found is None:
        expected = "'minimise cost' or 'maximise throughput.lookup per cost'"
        raise InputError("not an objective", token=text, expected=expected)
    metric, per = found[2], found[3] and PER.get(found[3], found[3])
    for path in (metric, per):
        if path is not None and path != COST:
            check_metric(path, operations)
    return Objective(text, found[1].startswith("min"), metric, per)


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

    def _fits(self) -> None:
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


class DesignDescription(Strict):
    """Which points are run. ``points``: of a sample; ``file``: of a table (CSV), whose head names
    the factors.
    """

    kind: Literal["grid", "latin_hypercube", "sobol", "one_at_a_time", "table"] = "grid"
    points: Annotated[int, Field(strict=True, ge=1, le=POINTS_MAX)] | None = None
    seed: Annotated[int, Field(strict=True, ge=0)] = 0
    file: str | None = None

    def _fits(self) -> None:
        sample = self.kind in ("latin_hypercube", "sobol")
        if sample != (self.points is not None):
            wanted = "expected 'points'" if sample else f"a {self.kind} has none"
            raise DescriptionError(("points",), wanted)
        if (self.kind == "table") != (self.file is not None):
            wanted = "expected 'file'" if self.kind == "table" else f"a {self.kind} has none"
            raise DescriptionError(("file",), wanted)


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
        DesignDescription, BeforeValidator(_design, json_schema_input_type=DesignDescription | str)
    ] = DesignDescription()
    replications: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = None
    common_random_numbers: bool = True
    metrics: Texts = DEFAULTS
    constraints: Texts = ()
    objective: str | None = None
    prices: Prices | None = None
