"""What a run assumed, as rows of words: for reports and for the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .words import plain, seconds

NOTHING = 5e-4  # a smaller change is none


@dataclass(frozen=True)
class AssumptionRow:
    """``low`` and ``high``: another value and what throughput (else power) then does, empty where
    nothing else can be stated. ``effect``: by how much throughput differs between both, or to what
    it is; ``ranged``: whether they are the ends of a range.
    """

    name: str
    value: str
    low: str
    high: str
    source: str
    effect: float
    ranged: bool


def assumption_rows(assumptions: Sequence[Mapping[str, Any]]) -> list[AssumptionRow]:
    """A row for each, what decides most first."""
    rows = [
        AssumptionRow(
            str(one["name"]),
            _with_unit(one["value"], one["unit"]),
            _end(one.get("low"), one["unit"], one["value"]),
            _end(one.get("high"), one["unit"], one["value"]),
            str(one["source"]),
            _spread([_change(one.get(end), "throughput") or 0.0 for end in ("low", "high")]),
            bool(one.get("ranged")),
        )
        for one in assumptions
    ]
    return sorted(rows, key=lambda row: -row.effect)


def _spread(changes: Sequence[float]) -> float:
    return max(0.0, *changes) - min(0.0, *changes)


def _end(end: Mapping[str, Any] | None, unit: str, assumed: Any) -> str:
    if end is None or end["value"] == assumed:
        return ""
    text = _with_unit(end["value"], unit)
    change = _change(end, "throughput")
    power = _change(end, "power")
    if change is None:
        return text
    if abs(change) < NOTHING and power is not None and abs(power) >= NOTHING:
        return f"{text}: {100 * power:+.1f}% power"
    return f"{text}: {100 * change:+.1f}%" if abs(change) >= NOTHING else f"{text}: no change"


def _change(end: Mapping[str, Any] | None, what: str) -> float | None:
    found = None if end is None else end.get(what)
    return found if isinstance(found, (int, float)) else None


def _with_unit(value: Any, unit: str) -> str:
    if not isinstance(value, (int, float)):
        return str(value)
    if unit == "ns":
        return seconds(value * 1e-9, 4)
    if unit in ("Hz", "B/s") and value >= 1e6:
        return f"{value / 1e9:.4g} G{unit}"
    return f"{plain(value, 4)} {unit}".strip()
