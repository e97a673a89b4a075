"""Records side by side: each figure that they share, with its ratio to the first record's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..sim.run.record import Place, better, counted_s, figures, unit_of
from .words import figure_text

if TYPE_CHECKING:
    import pandas as pd

    from ..sim.run.record import Record
    from ..sim.run.recovery import Recovery

ROOTS = (
    *("throughput", "bandwidth_Bps", "utilisation", "latency_ns", "energy_J", "power_W"),
    "traffic",
)


@dataclass(frozen=True)
class Comparison:
    """``records`` side by side, a table where they are printed; ratios are to the first one."""

    records: tuple[Record, ...]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """For each figure: ``metric``, ``unit``, which is ``better`` (``more``, ``less``, or None:
        it depends), and in the order of the records ``values``, ``ratios``, ``intervals`` and
        ``differences`` (see ``sim.run.comparison``); None where one is unknown. Times of recovery
        name the ``level`` that they are held against, and have ``notes`` where they are unknown.
        """
        loaded = [_with_power(record) for record in self.records]
        return [*_figure_rows(loaded), *_recovery_rows(loaded)]

    def to_frame(self) -> pd.DataFrame:
        """A row a figure: its ``metric`` and ``unit``, a column for each record's value (by
        position, from 0) and one for its ratio (``ratio_1`` …). Needs pandas.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "metric": row["metric"],
                "unit": row["unit"],
                **{str(k): value for k, value in enumerate(row["values"])},
                **{f"ratio_{k}": ratio for k, ratio in enumerate(row["ratios"]) if k},
            }
            for row in self.rows
        )

    def __str__(self) -> str:
        heads = ["", *(f"{one.scenario}, {one.policy}, {one.plane}" for one in self.records)]
        lines = [heads, *([row["metric"] + arrow(row), *_written(row)] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(map(str.ljust, line, widths)).rstrip() for line in [*lines, [DIRECTIONS]]
        )

    def _repr_html_(self) -> str:
        """All figures as a table, in a notebook."""
        heads = "".join(
            f"<th>{escape(record.title or record.scenario)}<br>{escape(record.policy)}, "
            f"{escape(str(record.machine.get('name')))}, {escape(record.plane)}</th>"
            for record in self.records
        )
        body = "".join(
            f"<tr><th>{escape(row['metric'])}{arrow(row)}</th>{''.join(cells)}</tr>"
            for row in self.rows
            for cells in [[f"<td>{escape(text)}</td>" for text in _written(row)]]
        )
        return f"<table><caption>{DIRECTIONS}</caption><tr><th></th>{heads}</tr>{body}</table>"


NOT_BY_THE_END = "not recovered by the end: the level that it is held against still changes then"
DIRECTIONS = "↑ more is better, ↓ less is better"


def arrow(row: Mapping[str, Any]) -> str:
    """Behind the name of a row's figure: which direction is better; nothing where it depends."""
    return {"more": " ↑", "less": " ↓", None: ""}[row["better"]]


def compare_records(*records: Record | Iterable[Record]) -> Comparison:
    """Put records side by side.

    Parameters
    ----------
    *records : Record, or one list of them
        Two or more; ratios are to the first.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If there are fewer than two.
    """
    from ..inputs import InputError
    from ..sim.run.record import Record

    listed = [[one] if isinstance(one, Record) else one for one in records]
    found = tuple(chain.from_iterable(listed))
    if len(found) < 2:
        raise InputError("nothing to compare", expected="two records or more")
    return Comparison(found)


def _written(row: Mapping[str, Any]) -> list[str]:
    ratios = ["", *(f" ×{ratio:.2f}" if ratio is not None else "" for ratio in row["ratios"][1:])]
    values = (figure_text(value, row["unit"], digits=1) for value in row["values"])
    return [text + ratio for text, ratio in zip(values, ratios, strict=True)]


def _with_power(record: Record) -> Record:
    """The record with what is known of its power, beside that of its energy."""
    time_s = counted_s(record)

    def per_s(known: Mapping[str, Any]) -> Mapping[str, Any]:
        energies = known.get("energy_J")
        if not isinstance(energies, (list, tuple)) or time_s <= 0:
            return known
        return {**known, "power_W": [energy / time_s for energy in energies]}

    return replace(record, confidence=per_s(record.confidence), replicates=per_s(record.replicates))


def _figure_rows(records: list[Record]) -> Iterator[dict[str, Any]]:
    """Of every figure that at least one record has, in the order of first appearance."""
    from ..sim.run.comparison import difference, level_of, settled

    found = [dict(figures(record, ROOTS)) for record in records]
    level = level_of(records)
    known = [settled((records[0], record)) for record in records]
    pairs = list(zip(found, records, strict=True))
    for path in _paths(records, found):
        values = [of.get(path) for of in found]
        intervals = [record.interval(*path) for record in records]
        differences = [
            difference(path, (values[0], of.get(path)), (records[0], record), level)
            for of, record in pairs[1:]
        ]
        row = _row(path, unit_of(".".join(path)), values, intervals, [None, *differences])
        ratios = zip(row["ratios"], known, strict=True)
        yield row | {"ratios": [ratio if is_known else None for ratio, is_known in ratios]}


def _paths(records: Sequence[Record], found: Sequence[Mapping[Place, Any]]) -> Iterator[Place]:
    # Energies over different times say nothing; powers do.
    over_time = len({counted_s(record) for record in records}) > 1
    unasked = {"energy_J" if over_time else "power_W"}
    if all(record.energy_J is None for record in records):
        unasked = {"energy_J", "power_W"}
    if not any(record.traffic for record in records):
        unasked.add("traffic")
    for root in ROOTS:
        if root not in unasked:
            yield from dict.fromkeys(path for of in found for path in of if path[0] == root)


def _row(
    path: Place,
    unit: str,
    values: list[float | None],
    intervals: Sequence[list[float] | None],
    differences: Sequence[dict[str, Any] | None],
) -> dict[str, Any]:
    return {
        "metric": ".".join(path),
        "unit": "1/s" if unit == "/s" else unit,
        "better": "less" if path[0] == "recovery" else better(path[0]),
        "values": values,
        "ratios": [_ratio(value, values[0]) for value in values],
        "intervals": list(intervals),
        "differences": list(differences),
    }


def _ratio(value: float | None, first: float | None) -> float | None:
    """None of what is unknown, and to what is next to nothing."""
    ratio = value / first if first and value is not None else math.inf
    return ratio if math.isfinite(ratio) else None


def _recovery_rows(records: list[Record]) -> list[dict[str, Any]]:
    """Where the workload changes: how far throughput drops at worst, when it is back on average.

    A time is unknown where throughput is not back after one of the changes; ``notes`` says so of
    each record. ``level``: what it is held against, a key of ``_LEVELS``.
    """
    from ..sim.run.recovery import recoveries_together, share_levels

    rows, nothing = [], [None] * len(records)
    for operation in dict.fromkeys(name for record in records for name in record.throughput):
        depths: list[float | None] = []
        times: list[float | None] = []
        together = recoveries_together(records, operation)
        for found in together:
            depths.append(max((one.depth for one in found if one.depth is not None), default=None))
            times.append(_mean([one.recovery_s for one in found]))
        if any(depth is not None for depth in depths):
            level = {"level": "best" if share_levels(together) else "own"}
            for name, unit, values in (("depth", "1", depths), ("time_s", "s", times)):
                path = ("recovery", operation, name)
                rows.append(_row(path, unit, values, nothing, nothing) | level)
            rows[-1]["notes"] = [_not_back(found) for found in together]
    return rows


def _not_back(found: Sequence[Recovery]) -> str | None:
    """Why there is no time of recovery; None where there is one, or nothing changes."""
    if found and not found[-1].settled:
        return NOT_BY_THE_END
    missed = [one.recovery_s is None for one in found]
    if any(missed[:-1]):
        return "not recovered before the next change"
    return "not recovered by the end" if any(missed) else None


def _mean(values: list[float | None]) -> float | None:
    """The mean; None of nothing, or where one is unknown."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None
