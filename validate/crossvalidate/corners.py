"""A machine whose measured facts are all at the worse, or all at the better end of their ranges.

Facts come with ranges (quartiles of a measurement, intervals of a fit). A prediction's interval
reaches from what the machine with the worse facts would do to what the one with the better would:
as far as it can be off because its facts are, if all are off in the same direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ...inputs.quantities import parse_quantity
from ...topologies.schema import MachineDescription

# The parts of a machine file in which the facts stand that one by one are better or worse.
PARTS = (
    "node_types",
    "pair_latency",
    "pair_bandwidth",
    "distance_classes",
    "links",
    "nics",
    "interruptions",
    "processes",
    "engines",
)
End = Literal["worse", "better"]
_OTHER: Mapping[End, End] = {"worse": "better", "better": "worse"}


def corners(description: MachineDescription) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Both machines as plain values, the worse first; None where no fact has a range."""
    # No plane reads what facts were measured by.
    whole = description.model_dump(mode="json", exclude_none=True, exclude={"measurements"})
    worse, better = (
        {**whole, **{part: _at(whole[part], end) for part in PARTS if part in whole}}
        for end in ("worse", "better")
    )
    return None if worse == better else (worse, better)


def _at(part: Any, end: End) -> Any:
    if isinstance(part, Mapping):
        if "value" in part and isinstance(part.get("range"), list):
            return {**part, "value": _bound(part["range"], end)}
        # What comes seldom is better.
        return {
            name: _at(inner, _OTHER[end] if name == "every" else end)
            for name, inner in part.items()
        }
    return [_at(inner, end) for inner in part] if isinstance(part, list) else part


def _bound(bounds: list[Any], end: End) -> Any:
    """Times are the better the shorter, all else the larger."""
    low, high = bounds
    return low if _is_time(low) == (end == "better") else high


def _is_time(text: Any) -> bool:
    try:
        parse_quantity(str(text), "time")
    except ValueError:
        return False
    return True
