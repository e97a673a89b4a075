"""Whether one record stays faster than another if the machine's uncertain facts are off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..sim.run.record import Record

EQUAL = 0.005  # relative; what differs by less decides nothing


def decisions(records: Sequence[Record]) -> list[dict[str, Any]]:
    """For each operation and each record but the first: ``record`` (its position), ``operation``,
    ``ratio`` to the first, its ``range`` over the uncertain facts, ``holds``: whether the same one
    is faster all over it. Nothing where no record has uncertain facts.

    Records on the same machine are compared with the same facts at the same ends.
    """
    first = records[0]
    return [
        row
        for k, other in enumerate(records[1:], 1)
        if first.fact_range or other.fact_range
        for operation in first.throughput
        if (row := _decision(k, operation, first, other)) is not None
    ]


def _decision(k: int, operation: str, first: Record, other: Record) -> dict[str, Any] | None:
    own, against = first.throughput[operation], other.throughput.get(operation)
    if not own or against is None:
        return None
    ratio = against / own
    seen = [ratio, *_ratios(operation, first, other)]
    low, high = min(seen), max(seen)
    holds = low > 1.0 + EQUAL or high < 1.0 - EQUAL
    return {
        "record": k,
        "operation": operation,
        "ratio": ratio,
        "range": [low, high],
        "holds": holds,
    }


def _ratios(operation: str, first: Record, other: Record) -> Iterator[float]:
    corners, others = first.fact_range.get("corners", {}), other.fact_range.get("corners", {})
    if first.machine == other.machine and corners.keys() == others.keys():
        pairs = [(corners[name], others[name]) for name in corners]
    else:  # of two machines each may be off by itself
        mine = list(corners.values()) or [first.throughput]
        its = list(others.values()) or [other.throughput]
        pairs = [(one, another) for one in mine for another in its]
    for one, another in pairs:
        if one.get(operation) and operation in another:
            yield another[operation] / one[operation]


def decision_lines(found: Sequence[dict[str, Any]], letters: Sequence[str]) -> list[str]:
    """A line for each decision."""
    lines = []
    for row in found:
        low, high = row["range"]
        letter, first = letters[row["record"]], letters[0]
        if row["holds"]:
            faster = letter if row["ratio"] > 1.0 else first
            verdict = f"{faster} is faster wherever in their ranges the uncertain facts lie"
        elif low >= 1.0 - EQUAL and high <= 1.0 + EQUAL:
            verdict = "no difference, wherever in their ranges the uncertain facts lie"
        else:
            verdict = (
                "which is faster depends on uncertain facts: measure them "
                "('numatwin machine measure', Intel MLC)"
            )
        lines.append(
            f"{row['operation']}, {letter} to {first}: ×{row['ratio']:.2f} "
            f"[×{low:.2f}, ×{high:.2f}]: {verdict}."
        )
    return lines


def beaten(records: Sequence[Record]) -> list[dict[str, Any]]:
    """For each operation and each record but the first, where all were run with uncertainty: how
    sure it is that it does more than the first; ``record`` is its position.
    """
    if not all(record.uncertainty for record in records):
        return []
    from ..sim.studies.uncertainty import beats

    return [
        {"record": k, **found}
        for k, other in enumerate(records[1:], 1)
        for operation in records[0].throughput
        if operation in other.throughput
        if (found := beats(records[0], other, operation)) is not None
    ]


def beaten_lines(found: Sequence[dict[str, Any]], letters: Sequence[str]) -> list[str]:
    """A line for each."""
    lines = []
    for row in found:
        low, high = row["interval"]
        letter, first, sure = letters[row["record"]], letters[0], row["share"]
        if low > 1.0:
            verdict = f"{letter} beats {first}"
        elif high < 1.0:
            verdict = f"{first} beats {letter}"
        else:
            verdict = f"undecided: {letter} does more in {100 * sure:.0f}% of what may be"
        lines.append(
            f"{row['operation']}, given uncertain facts and replications: ×{row['ratio']:.2f}, "
            f"with {row['level']:.0%} between ×{low:.2f} and ×{high:.2f}: {verdict}."
        )
    return lines
