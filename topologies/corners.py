"""A machine whose facts are at the worse or at the better end of their ranges.

Facts come with ranges (quartiles of a measurement, intervals of a fit, what a catalogue knows). A
prediction's interval reaches from what the machine with the worse facts would do to what the one
with the better would: as far as it can be off because its facts are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from ..inputs.quantities import parse_quantity
from .schema import MachineDescription

# The parts of a machine file in which the facts stand that one by one are better or worse.
PARTS = (
    "node_types",
    "pair_latency",
    "pair_bandwidth",
    "distance_classes",
    "links",
    "nics",
    "copy_engines",
    "interruptions",
    "processes",
    "engines",
)
# Of uncertain facts: those of nodes and of engines on them, and those of the ways between them.
OF_NODES = ("node_types", "engines")
OF_WAYS = (
    "link_types",
    "hubs",
    "distance_classes",
    "pair_latency",
    "pair_bandwidth",
    "nics",
    "copy_engines",
    "coherence",
)
# What is better though it is longer, or worse though it is larger.
TURNED = (
    "every",
    "data_header",
    "request",
    "header",
    "cycles_per_message",
    "interrupt_share",
    "level_lines",
    "write_turnaround",
)
End = Literal["worse", "better"]
# How caches agree, where firmware chooses it: snoops take room on links.
PROTOCOLS: Mapping[End, str] = {"worse": "snoop", "better": "directory"}
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


def doubtful_corners(description: MachineDescription) -> dict[str, MachineDescription]:
    """Machines whose uncertain facts are at the ends of their ranges, by what they are called.

    Facts of nodes and of the ways between them are off together, and against each other: what is
    near and what is far then change places, on which the placement of data depends. Each machine
    comes once; {} where no uncertain fact has a range.
    """
    whole = description.model_dump(mode="json", exclude_none=True, exclude={"measurements"})
    found: dict[str, dict[str, Any]] = {}
    for nodes, ways in (
        ("worse", "worse"),
        ("better", "better"),
        ("better", "worse"),
        ("worse", "better"),
    ):
        ends: dict[str, End] = {
            **dict.fromkeys(OF_NODES, cast("End", nodes)),
            **dict.fromkeys(OF_WAYS, cast("End", ways)),
        }
        made = {
            **whole,
            **{part: _at(whole[part], end, True) for part, end in ends.items() if part in whole},
        }
        if made not in (whole, *found.values()):
            found[f"nodes {nodes}, ways {ways}"] = made
    return {name: MachineDescription.model_validate(made) for name, made in found.items()}


def ranged_doubts(
    description: MachineDescription, reads: Callable[[str], bool] = lambda path: True
) -> int:
    """How many uncertain facts have a range that ``doubtful_corners`` goes through; of those at
    the paths that ``reads`` tells.
    """

    def count(part: Any, path: str) -> int:
        if isinstance(part, Mapping):
            chosen = "protocol" in part or isinstance(part.get("range"), list)
            if part.get("doubtful") is True and chosen:
                return reads(path)
            return sum(count(inner, f"{path}.{name}") for name, inner in part.items())
        if not isinstance(part, list):
            return 0
        return sum(count(inner, f"{path}.{k}") for k, inner in enumerate(part))

    whole = description.model_dump(mode="json", include={*OF_NODES, *OF_WAYS})
    return sum(count(part, name) for name, part in whole.items())


def _at(part: Any, end: End, doubtful_only: bool = False) -> Any:
    if isinstance(part, Mapping):
        if "value" in part and isinstance(part.get("range"), list):
            if doubtful_only and part.get("doubtful") is not True:
                return part
            return {**part, "value": _bound(part["range"], end)}
        if "protocol" in part and part.get("doubtful") is True:
            return {**part, "protocol": PROTOCOLS[end]}
        return {
            name: _at(inner, _OTHER[end] if name in TURNED else end, doubtful_only)
            for name, inner in part.items()
        }
    return [_at(inner, end, doubtful_only) for inner in part] if isinstance(part, list) else part


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
