"""Policies that choose the operator of a query: a fixed one, or the cheapest by the cost model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ....inputs import InputError, Quantity
from ....inputs.quantities import Duration
from ...control.family import Family
from ...control.policy import NoPolicy, Policy, PolicySpec
from ...control.user_policy import Origin
from ...planes.outcome import ControlEvent
from .spec import OPERATORS

PERIOD = Quantity(1e-3, 1e-3, 1e-3)
KNOWN = tuple(operator for of_kind in OPERATORS.values() for operator in of_kind)


@dataclass(frozen=True)
class OperatorObservation:
    """What policies of the family ``operator`` see.

    ``operator``: of queries that begin now. ``predicted_s``: by operator that the network is able
    to run, the time of a query as the flow plane has it.
    """

    time_s: float
    operator: str
    predicted_s: Mapping[str, float]


@dataclass(frozen=True)
class ChooseOperator:
    """Queries that begin from now on take ``operator``."""

    operator: str


class OperatorSpec(PolicySpec):
    """A chooser of operators."""

    period: Duration = PERIOD


@dataclass(frozen=True)
class _Chooser:
    """``operator``: always that one; None: the one with the least predicted time."""

    operator: str | None

    def decide(self, observation: OperatorObservation) -> tuple[ChooseOperator, ...]:
        """A command where another one than now is wanted."""
        predicted_s = observation.predicted_s
        wanted = self.operator or min(predicted_s, key=lambda name: predicted_s[name])
        return () if wanted == observation.operator else (ChooseOperator(wanted),)


def _make(name: str, options: Mapping[str, Any]) -> Policy[Any, Any] | None:
    del options
    if name == "none":
        return NoPolicy()
    if name == "cheapest":
        return _Chooser(None)
    return _Chooser(name) if name in KNOWN else None


def _check(
    commands: Any, observation: OperatorObservation, name: str, origin: Origin | None
) -> tuple[ChooseOperator, ...]:
    del origin
    known = tuple(observation.predicted_s)
    found = tuple(commands or ())
    for command in found:
        operator = getattr(command, "operator", None)
        if not isinstance(command, ChooseOperator) or operator not in known:
            raise InputError(
                f"policy {name}: operator cannot run here",
                token=str(operator if operator is not None else command),
                expected=f"ChooseOperator of one of {', '.join(known)}",
            )
    return found


def _event(command: ChooseOperator, policy: str, time_s: float) -> ControlEvent:
    text = f"{policy}: {command.operator}"
    return ControlEvent(time_s, "operator", text, {"policy": policy, "operator": command.operator})


OPERATOR = Family(
    name="operator",
    what="which operator joins or aggregates across the network",
    spec=OperatorSpec,
    titles={
        "none": "the one that the scenario says",
        "cheapest": "the one with the least time by the cost model",
        "ghj": "Grace hash join",
        "ghj-bloom": "the same behind a semi-join by Bloom filters",
        "rdma-ghj": "partitions are written to remote memory",
        "rrj": "radix join that partitions over the network",
        "aggregation": "groups are sent once all tuples have been aggregated",
        "rdma-aggregation": "groups are sent in the background",
    },
    make=_make,
    expected=f"cheapest, {', '.join(KNOWN[:-1])} or {KNOWN[-1]}",
    check=_check,
    event=_event,
    types=(OperatorObservation, ChooseOperator),
)
