"""Whether one record stays faster than another if the machine's uncertain facts are off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..sim.run.record import Record

EQUAL = 0.005  # relative; what differs by less decides nothing
MEASURED_BY = "('numatwin machine measure', Intel MLC)"


def decisions(records: Sequence[Record]) -> list[dict[str, Any]]:
    """For each operation and each record but the first: ``record`` (its position), ``operation``,
    ``ratio`` to the first, its ``range`` over the uncertain facts; ``interval``: over these and
    the replications, at ``level`` (None where neither is random), None where nobody knows how far
    replications differ; ``holds``: whether the same one is faster all over it. Nothing where no
    record has uncertain facts.

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
    row: dict[str, Any] = {
        "record": k,
        "operation": operation,
        "ratio": ratio,
        "range": [low, high],
    }
    row |= _with_chance(row, (first, other), (own, against))
    low, high = row["interval"] or row["range"]
    return {**row, "holds": low > 1.0 + EQUAL or high < 1.0 - EQUAL}


def _with_chance(
    row: dict[str, Any], records: tuple[Record, Record], values: tuple[float, float]
) -> dict[str, Any]:
    """``interval`` and ``level``: chance moves the ratio as far at each end of its range."""
    from ..sim.run.comparison import difference, level_of

    if not any(record.replications for record in records):
        return {"interval": row["range"], "level": None}
    level = level_of(records)
    found = difference(("throughput", row["operation"]), values, records, level)
    by_chance = None if found is None else found["ratio_interval"]
    if by_chance is None or not row["ratio"]:
        return {"interval": None, "level": level}
    pairs = zip(row["range"], by_chance, strict=True)
    return {"interval": [end * bound / row["ratio"] for end, bound in pairs], "level": level}


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
    return [
        f"{row['operation']}, {letters[row['record']]} to {letters[0]}: ×{row['ratio']:.2f}"
        f"{_causes(row)}: {_verdict(row, letters)}."
        for row in found
    ]


def _causes(row: Mapping[str, Any]) -> str:
    """The interval of the ratio, and what it comes from."""
    matters = _facts_matter(row)
    causes = ["the ranges of uncertain facts"] if matters else []
    if row["level"] is not None and row["interval"] is not None:
        causes.insert(0, f"replications ({100 * row['level']:g}%)")
    low, high = row["interval"] or row["range"]
    text = f" [×{low:.2f}, ×{high:.2f}], given {' and '.join(causes)}" if causes else ""
    if not matters:
        text += f"{';' if causes else ','} uncertain facts change that by less than {EQUAL:.1%}"
    if row["interval"] is None:
        text += "; how far replications differ is unknown"
    return text


def _verdict(row: Mapping[str, Any], letters: Sequence[str]) -> str:
    low, high = row["interval"] or row["range"]
    if row["holds"]:
        return f"{letters[row['record']] if row['ratio'] > 1.0 else letters[0]} is faster"
    if low >= 1.0 - EQUAL and high <= 1.0 + EQUAL:
        return "no difference"
    if _facts_matter(row):
        return "which is faster depends on uncertain facts: measure them " + MEASURED_BY
    return "which is faster is open: run more replications"


def _facts_matter(row: Mapping[str, Any]) -> bool:
    low, high = row["range"]
    return bool(high - low > EQUAL * row["ratio"])


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
