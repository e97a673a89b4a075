"""Goals of a study: constraints on figures, an objective, prices of machines."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from ...inputs import InputError, Strict
from ...inputs.quantities import DIMENSIONS, parse_quantity
from ..run.record import KINDS, unit_of
from .levels import is_number
from .metrics import COST, check_metric

Floats = npt.NDArray[np.float64]
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
