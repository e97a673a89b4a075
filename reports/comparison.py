"""Records side by side: each figure that they share, with its ratio to the first record's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from .words import nanoseconds, percent, seconds, si

if TYPE_CHECKING:
    import pandas as pd

    from ..sim.run.record import Record
    from ..sim.run.recovery import Recovery

Path_ = tuple[str, ...]

# Which direction is better, by a figure's first word; of others it depends.
_BETTER = {
    "throughput": "more",
    "latency_ns": "less",
    "energy_J": "less",
    "power_W": "less",
    "recovery": "less",
}


class Metric(NamedTuple):
    """A figure that records share: where it stands in their JSON form, and its unit."""

    path: Path_
    unit: str

    @property
    def better(self) -> str | None:
        """``more`` or ``less``; None for use and traffic, of which either may be good."""
        return _BETTER.get(self.path[0])


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
        return [_row(metric, loaded) for metric in _metrics(loaded)] + _recovery_rows(loaded)

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
            for cells in [map(_cell, _written(row))]
        )
        return f"<table><caption>{DIRECTIONS}</caption><tr><th></th>{heads}</tr>{body}</table>"


NOT_BY_THE_END = "not recovered by the end: the level that it is held against still changes then"
DIRECTIONS = "↑ more is better, ↓ less is better"


def arrow(row: Mapping[str, Any]) -> str:
    """Behind the name of a row's figure: which direction is better; nothing where it depends."""
    return {"more": " ↑", "less": " ↓", None: ""}[row["better"]]


def compare_records(*records: Record | Iterable[Record]) -> Comparison:
    """Two records or more, or a list of them, side by side; raises InputError for fewer."""
    from ..inputs import InputError
    from ..sim.run.record import Record

    listed = [[one] if isinstance(one, Record) else one for one in records]
    found = tuple(chain.from_iterable(listed))
    if len(found) < 2:
        raise InputError("nothing to compare", expected="two records or more")
    return Comparison(found)


def _written(row: Mapping[str, Any]) -> list[str]:
    ratios = ["", *(f" ×{ratio:.2f}" if ratio is not None else "" for ratio in row["ratios"][1:])]
    values = (_value_text(value, row["unit"]) for value in row["values"])
    return [text + ratio for text, ratio in zip(values, ratios, strict=True)]


def _value_text(value: float | None, unit: str) -> str:
    if unit == "ns":
        return nanoseconds(value)
    if unit == "s":
        return seconds(value)
    return percent(value, 1) if unit == "1" else si(value, unit.replace("1/s", "/s"))


def _cell(text: str) -> str:
    return f"<td>{escape(text)}</td>"


def _counted_s(record: Record) -> float:
    """The time that a record's sums, such as its energy, are over."""
    return record.horizon_s - record.warm_up_s


def _with_power(record: Record) -> Record:
    """The record with what is known of its power, beside that of its energy."""
    counted_s = _counted_s(record)

    def per_s(known: Mapping[str, Any]) -> Mapping[str, Any]:
        energies = known.get("energy_J")
        if not isinstance(energies, (list, tuple)) or counted_s <= 0:
            return known
        return {**known, "power_W": [energy / counted_s for energy in energies]}

    return replace(record, confidence=per_s(record.confidence), replicates=per_s(record.replicates))


def _metrics(records: Sequence[Record]) -> list[Metric]:
    """Every figure that at least one record has, in the order of first appearance."""
    found: dict[Metric, None] = {}
    for record in records:
        for operation in record.throughput:
            found[Metric(("throughput", operation), "1/s")] = None
    for record in records:
        for part in record.bandwidth_Bps:
            found[Metric(("bandwidth_Bps", part), "B/s")] = None
    for record in records:
        for kind in dict.fromkeys(use.kind for use in record.resources):
            found[Metric(("utilisation", kind, "mean"), "1")] = None
            found[Metric(("utilisation", kind, "busiest"), "1")] = None
    for record in records:
        for operation, figures in record.latency_ns.items():
            for name in figures or ():
                found[Metric(("latency_ns", operation, name), "ns")] = None
    lengths_s = {_counted_s(record) for record in records}
    for record in records:
        if record.energy_J is not None and len(lengths_s) == 1:
            found[Metric(("energy_J",), "J")] = None
        elif record.energy_J is not None:  # energies over different times say nothing
            found[Metric(("power_W",), "W")] = None
    if any(record.traffic for record in records):
        for name in ("memory_bytes", "link_bytes", "links_per_memory", "remote_share"):
            found[Metric(("traffic", name), "B" if name.endswith("bytes") else "1")] = None
    return list(found)


def _row(metric: Metric, records: list[Record]) -> dict[str, Any]:
    from ..sim.run.comparison import difference, level_of, settled

    path, level = metric.path, level_of(records)
    values = [_value(path, record) for record in records]
    intervals = [record.interval(*path) for record in records]
    first, *others = zip(values, records, strict=True)
    differences = [
        difference(path, (first[0], value), (first[1], record), level) for value, record in others
    ]
    row = _row_of(metric, values, intervals, [None, *differences])
    known = [settled((records[0], record)) for record in records]
    return row | {
        "ratios": [ratio if is_ else None for ratio, is_ in zip(row["ratios"], known, strict=True)]
    }


def _row_of(
    metric: Metric,
    values: list[float | None],
    intervals: Sequence[list[float] | None],
    differences: Sequence[dict[str, Any] | None],
) -> dict[str, Any]:
    first = values[0]
    return {
        "metric": ".".join(metric.path),
        "unit": metric.unit,
        "better": metric.better,
        "values": values,
        "ratios": [_ratio(value, first) for value in values],
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
                metric = Metric(("recovery", operation, name), unit)
                rows.append(_row_of(metric, values, nothing, nothing) | level)
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


def _value(path: Path_, record: Record) -> float | None:
    if path[0] == "utilisation":
        used = [use.utilisation for use in record.resources if use.kind == path[1]]
        if not used:
            return None
        return max(used) if path[2] == "busiest" else math.fsum(used) / len(used)
    if path[0] == "power_W":
        known = record.energy_J is not None and _counted_s(record) > 0
        return (record.energy_J or 0.0) / _counted_s(record) if known else None
    if path[0] == "traffic":
        return _traffic(record).get(path[1])
    part: Any = getattr(record, path[0])
    for key in path[1:]:
        part = part.get(key) if isinstance(part, Mapping) else None
    return part if isinstance(part, (int, float)) else None


def _traffic(record: Record) -> dict[str, float | None]:
    """Bytes through all memory controllers and over all links: as counted, or the rate over time.

    ``remote_share``: of the lines that cores miss, those of other nodes' memory; unknown of rates.
    """
    counted = record.traffic
    if counted:
        memory = math.fsum(m["read_bytes"] + m["written_bytes"] for m in counted["memory"])
        links = math.fsum(one["data_bytes"] + one["message_bytes"] for one in counted["links"])
        known: tuple[float | None, float | None] = (memory, links if counted["links"] else None)
    else:
        rates = [record.bandwidth_Bps.get(name) for name in ("memory", "links")]
        times_s = _counted_s(record)
        sums = [None if rate is None else rate * times_s for rate in rates]
        known = sums[0], sums[1]
    memory_bytes, link_bytes = known
    return {
        "memory_bytes": memory_bytes,
        "link_bytes": link_bytes,
        "links_per_memory": link_bytes / memory_bytes if memory_bytes and link_bytes else None,
        "remote_share": counted.get("remote_share") if counted else None,
    }
