"""Whether one record stays faster than another if the machine's uncertain facts are off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..sim.run.record import Record

EQUAL = 0.005  # relative; what differs by less decides nothing
MEASURED_BY = "('numatwin machine measure', Intel MLC)"


def ratio_texts(ratio: float, *bounds: float) -> list[str]:
    """``×0.96 ×0.93 ×0.9995``: as many digits as distinguish the bounds, from each other and 1."""
    different = len({1.0, *bounds})
    for digits in range(2, 6):
        written = (f"×{value:.{digits}f}" for value in (1.0, ratio, *bounds))
        one, *texts = (text.replace("inf", "∞") for text in written)
        if len({one, *texts[1:]}) == different:
            break
    return texts


def decisions(records: Sequence[Record]) -> list[dict[str, Any]]:
    """For each operation and each record but the first: ``record`` (its position), ``operation``,
    ``ratio`` to the first, its ``range`` over all that was predicted for uncertain facts: the
    corners of their ranges, and what ``--uncertainty`` drew; ``interval``: over these and the
    replications, at ``level`` (None where neither is random), None where nobody knows how far
    replications differ; ``holds``: whether the same one is faster all over it; ``prediction``: the
    position of the one that predicts what the other measured, or None; ``facts``: how many are
    uncertain. Nothing where none are, but of predictions, and of runs that did not settle.

    Records on the same machine are compared with the same facts at the same ends.
    """
    from ..sim.run.comparison import predicts, settled

    first = records[0]
    return [
        row
        for k, other in enumerate(records[1:], 1)
        if settled((first, other))
        if first.fact_range or other.fact_range or predicts(first, other)
        for operation in first.throughput
        if (row := _decision(k, operation, first, other)) is not None
    ]


def _decision(k: int, operation: str, first: Record, other: Record) -> dict[str, Any] | None:
    from ..sim.run.comparison import predicts
    from ..sim.run.plane_names import NATIVE

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
        "prediction": (k if first.plane == NATIVE else 0) if predicts(first, other) else None,
        "facts": max(one.fact_range.get("facts", 0) for one in (first, other)),
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
    corners, others = _corners(first, operation), _corners(other, operation)
    draws, drawn = _drawn(first, operation), _drawn(other, operation)
    if first.machine == other.machine and corners.keys() == others.keys():
        pairs = [(corners[name], others[name]) for name in corners]
        if first.uncertainty.get("facts") == other.uncertainty.get("facts"):
            pairs += zip(draws, drawn, strict=False)
    else:  # each may be off by itself
        mine = [*corners.values(), *draws] or [first.throughput[operation]]
        its = [*others.values(), *drawn] or [other.throughput[operation]]
        pairs = list(product((min(mine), max(mine)), (min(its), max(its))))
    for one, another in pairs:
        if one:
            yield another / one


def _corners(record: Record, operation: str) -> dict[str, float]:
    """Throughput at the corners of the facts' ranges, by their name."""
    found = record.fact_range.get("corners", {})
    return {name: rates[operation] for name, rates in found.items() if operation in rates}


def _drawn(record: Record, operation: str) -> list[float]:
    """Throughput with the facts of each draw."""
    shifts = record.uncertainty.get("shifts", {}).get(operation, ())
    return [record.throughput[operation] * shift for shift in shifts]


def decision_lines(
    found: Sequence[Mapping[str, Any]],
    letters: Sequence[str],
    beats: Sequence[Mapping[str, Any]] = (),
) -> list[str]:
    """A line for each pair and operation of ``decisions`` and ``beaten``."""
    by_pair = [{(one["record"], one["operation"]): one for one in rows} for rows in (found, beats)]
    decided, beating = by_pair
    return [
        _line(key, decided.get(key), beating.get(key), letters)
        for key in dict.fromkeys([*decided, *beating])
    ]


def _line(
    key: tuple[int, str],
    row: Mapping[str, Any] | None,
    beat: Mapping[str, Any] | None,
    letters: Sequence[str],
) -> str:
    record, operation = key
    names = [letters[record], letters[0]]
    likely = [] if beat is None else beat["interval"]
    causes = (beat or {}).get("causes", []) if row is None else _causes(row)
    extreme = (row["interval"] or row["range"]) if row is not None and causes else []
    values = [(row or beat or {})["ratio"], *likely, *extreme]
    if row is not None and row["prediction"] is not None:
        return _prediction_line(row, values, causes, letters)
    ratio, *bounds = ratio_texts(*values)
    said = f"{operation}, {names[0]} to {names[1]}: {ratio}"
    if beat is not None:
        said += f", with {beat['level']:.0%} between {bounds[0]} and {bounds[1]}"
    if extreme:
        said += f"{', at the extremes' * bool(likely)} [{', '.join(bounds[-2:])}]"
    if causes:
        said += f", given {' and '.join(causes)}"
    if row is None:
        return f"{said}: {_likely_verdict(beat or {}, names)}."
    return f"{said}{_known(row, causes)}: {_verdict(row, beat, names)}."


def _prediction_line(
    row: Mapping[str, Any], values: Sequence[float], causes: Sequence[str], letters: Sequence[str]
) -> str:
    """Of what was measured, and what was predicted of it: no rivals."""
    predicted, measured = letters[row["prediction"]], letters[row["record"]]
    if row["prediction"] == 0:  # the ratio is that of what was measured
        values = [1.0 / value if value else math.inf for value in values]
        values[1:] = reversed(values[1:])
    else:
        measured = letters[0]
    ratio, *bounds = ratio_texts(*values)
    said = f"{row['operation']}: the prediction ({predicted}) is {ratio}"
    said += f" [{', '.join(bounds[-2:])}]" if bounds else ""
    said += f" of what was measured ({measured})"
    if causes:
        said += f", given {' and '.join(causes)}"
    return f"{said}{_known(row, causes)}."


def _known(row: Mapping[str, Any], causes: Sequence[str]) -> str:
    """What does not matter, and what is unknown, of the causes."""
    said = ""
    if row["facts"] and not _facts_matter(row):
        said += f"{';' if causes else ','} uncertain facts change that by less than {EQUAL:.1%}"
    if row["interval"] is None:
        said += "; how far replications differ is unknown"
    return said


def _causes(row: Mapping[str, Any]) -> list[str]:
    """What the interval of the ratio comes from."""
    known = row["level"] is not None and row["interval"] is not None
    causes = [f"replications ({100 * row['level']:g}%)"] if known else []
    return [*causes, "the ranges of uncertain facts"] if _facts_matter(row) else causes


def _verdict(row: Mapping[str, Any], beat: Mapping[str, Any] | None, names: Sequence[str]) -> str:
    low, high = row["interval"] or row["range"]
    if row["holds"]:
        return f"{names[row['ratio'] < 1.0]} is faster"
    if low >= 1.0 - EQUAL and high <= 1.0 + EQUAL:
        return "no difference"
    if low >= 1.0 - EQUAL or high <= 1.0 + EQUAL:
        faster = names[high <= 1.0 + EQUAL]
        return f"{faster} is faster, or they hardly differ (by less than {EQUAL:.1%})"
    if beat is not None:
        return _likely_verdict(beat, names)
    if _facts_matter(row):
        return "which is faster depends on uncertain facts: measure them " + MEASURED_BY
    return "which is faster is open: run more replications"


def _likely_verdict(beat: Mapping[str, Any], names: Sequence[str]) -> str:
    low, high = beat["interval"]
    if low > 1.0 or high < 1.0:
        return f"{names[high < 1.0]} is faster with {beat['level']:.0%}"
    return f"undecided: {names[0]} does more in {beat['share']:.0%} of what may be"


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
