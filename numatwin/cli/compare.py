"""``numatwin compare``: compares records, each figure with its ratio to the first record's.

Figures of random runs have intervals, and so has how they differ (``sim/run/comparison.py``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .decisions import decision_lines, decisions
from .files import Records, record_folders
from .output import console, latency, number, percent, print_json, table

if TYPE_CHECKING:
    from ..sim.run.record import Record

ROUNDING = 1e-12  # relative; what differs by less is equal

Path_ = tuple[str, ...]


class Metric(NamedTuple):
    """A figure that records share: where it stands in their JSON form, and its unit."""

    path: Path_
    unit: str


# How a figure of each unit is put before people.
_WRITTEN: dict[str, Callable[[float | None], str]] = {
    "1/s": lambda value: number(value, "/s"),
    "B/s": lambda value: number(value, "B/s"),
    "ns": latency,
    "J": lambda value: number(value, "J"),
    "W": lambda value: number(value, "W"),
    "s": lambda value: latency(None if value is None else value * 1e9),
    "1": percent,
}

# What a drop and a recovery are held against.
_LEVELS = {
    "best": "Recovery: to the best level that any of these records settles at before the next "
    "change;\nso the figures of a record depend on the records that it is compared with.",
    "own": "Recovery: to the level that each record itself settles at before the next change.",
}


def compare(
    records: Records,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Compare records; ratios are to the first one."""
    from ..sim.run.record import load_record

    paths = list(record_folders(records))
    if len(paths) < 2:
        raise typer.BadParameter("expected two records or more", param_hint="RECORD...")
    loaded = [_with_power(load_record(path)) for path in paths]
    rows = [_row(metric, loaded) for metric in _metrics(loaded)] + _recovery_rows(loaded)
    if json:
        print_json(
            {
                "records": [_identity(*pair) for pair in zip(paths, loaded, strict=True)],
                "rows": rows,
                "decisions": decisions(loaded),
            }
        )
        return
    to = console()
    columns = [f"{letter}" for letter in _letters(len(loaded))]
    to.print(
        table(
            ("", "scenario", "policy", "machine", "plane", "record"),
            (
                (letter, one.scenario, one.policy, one.machine["name"], one.plane, str(path))
                for letter, path, one in zip(columns, paths, loaded, strict=True)
            ),
            left=6,
        )
    )
    to.print()
    known = [row for row in rows if any(value is not None for value in row["values"])]
    to.print(table(("", *columns), (_cells(row) for row in known)))
    for level in dict.fromkeys(row["level"] for row in known if "level" in row):
        to.print(f"\n{_LEVELS[level]}", soft_wrap=True)
    for line in decision_lines(decisions(loaded), columns):
        to.print(f"\n{line}", soft_wrap=True)
    for note in _notes(loaded, columns, known):
        to.print(f"\n{note}", soft_wrap=True)


def _notes(records: list[Record], letters: list[str], rows: list[dict[str, Any]]) -> list[str]:
    """What intervals mean, where there are any."""
    from ..sim.run.comparison import level_of

    random = [k for k, record in enumerate(records) if record.replications]
    if not random:
        return []
    runs = ", ".join(f"{letters[k]}: {records[k].replications}" for k in random)
    notes = [
        f"Intervals: {100 * level_of(records):g}%, each on its own, over replications ({runs})."
    ]
    found = [row["differences"] for row in rows]
    by_way: dict[str, list[str]] = {}
    for k, letter in enumerate(letters):
        of = [each[k]["paired"] for each in found if each[k] is not None]
        if of:
            way = _way(records[0], records[k], any(of)).format(letters[0])
            by_way.setdefault(way, []).append(letter)
    notes += [f"{', '.join(named)}: {way}." for way, named in by_way.items()]
    return notes


def _way(first: Record, other: Record, paired: bool) -> str:
    """How a record was compared with the first one, in words."""
    if paired:
        return "compared pair by pair with {}'s replications, which have the same draws"
    if not first.replications:
        return "compared with {}, which is exact, as its plane draws nothing at random"
    if not other.replications:
        return "exact, as its plane draws nothing at random, and compared with the mean of {}"
    return "compared with {} as independent samples (Welch)"


def _letters(count: int) -> list[str]:
    """A, B … Z, then by number."""
    return [chr(65 + k) if count <= 26 else str(k + 1) for k in range(count)]


def _identity(path: Path, record: Record) -> dict[str, Any]:
    return {
        "path": str(path),
        "scenario": record.scenario,
        "scenario_hash": record.scenario_hash,
        "policy": record.policy,
        "policies": dict(record.policies),
        "machine": record.machine["name"],
        "plane": record.plane,
        "seed": record.seed,
        "replications": record.replications,
        "warm_up_s": record.warm_up_s,
    }


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
    return list(found)


def _row(metric: Metric, records: list[Record]) -> dict[str, Any]:
    from ..sim.run.comparison import difference, level_of

    path, level = metric.path, level_of(records)
    values = [_value(path, record) for record in records]
    intervals = [record.interval(*path) for record in records]
    first, *others = zip(values, records, strict=True)
    differences = [
        difference(path, (first[0], value), (first[1], record), level) for value, record in others
    ]
    return _row_of(metric, values, intervals, [None, *differences])


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
        "values": values,
        "ratios": [value / first if first and value is not None else None for value in values],
        "intervals": list(intervals),
        "differences": list(differences),
    }


def _recovery_rows(records: list[Record]) -> list[dict[str, Any]]:
    """Where the workload changes: how far throughput drops at worst, when it is back on average.

    A time is unknown where throughput is not back after one of the changes. ``level``: what it is
    held against, a key of ``_LEVELS``.
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
    return rows


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
    part: Any = getattr(record, path[0])
    for key in path[1:]:
        part = part.get(key) if isinstance(part, Mapping) else None
    return part if isinstance(part, (int, float)) else None


def _differences(found: Mapping[str, Any], first: float | None) -> str:
    """``×1.02 [1.01, 1.03]``; ``no difference within ±1.6%`` where the interval holds 0; ``no
    difference`` where both do the same.
    """
    low, high = found["interval"]
    most, size = max(abs(low), abs(high)), abs(first or 0.0)
    if most <= ROUNDING * size:
        return "no difference"
    if low <= 0 <= high:
        return f"no difference within ±{100 * most / size:.2g}%" if size else "no difference seen"
    if found["ratio_interval"] is None or not first:
        return ""
    # As many digits as it takes to distinguish the bounds.
    values = [1 + found["value"] / first, *found["ratio_interval"]]
    written = [[f"{value:.{digits}g}" for value in values] for digits in range(3, 7)]
    ratio, *bounds = next((texts for texts in written if texts[1] != texts[2]), written[0])
    return f"×{ratio} [{', '.join(bounds)}]"


def _cells(row: dict[str, Any]) -> list[str]:
    written = _WRITTEN[row["unit"]]
    cells = [re.sub(r"_(Bps|ns|s|J|W)\b", "", row["metric"]).replace(".", " ")]
    for k, value in enumerate(row["values"]):
        cell = written(value)
        if row["intervals"][k] is not None:
            low, high = row["intervals"][k]
            cell += f"\n[{written(low)}, {written(high)}]"
        if row["differences"][k] is not None:
            cell += f"\n{_differences(row['differences'][k], row['values'][0])}"
        elif k and row["ratios"][k] is not None:
            cell += f" ×{row['ratios'][k]:.2f}"
        cells.append(cell)
    return cells
