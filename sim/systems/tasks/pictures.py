"""What a report shows of a run of tasks: queues, use by node, where parts lie, steals, cores."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....inputs.grouping import by_key
from ...kernel.arrays import Floats
from ...planes.pictures import Picture, PicturedRecord, Span, Square, Steps, Strips, Timeline

ROWS_MAX = 48  # of a timeline; tables that change come first


def pictures(record: PicturedRecord) -> Iterator[Picture]:
    """Those that the record has the figures for."""
    series = record.series
    if len(series.get("time_s", ())) > 1:
        edges_s = np.append(series["time_s"], series["time_s"][-1] + series["duration_s"][-1])
        yield from _strips(series, edges_s)
        yield from _steps(series, edges_s)
    if parts := _parts(record):
        yield parts
    traffic = np.array(record.model.get("traffic_Bps", ()), dtype=np.float64)
    ids = tuple(str(node["id"]) for node in record.machine.get("nodes", ()))
    if len(ids) > 1 and traffic.shape == (len(ids), len(ids)):
        yield Square(
            "What processors of each node read and write of each node's memory, on average.",
            ids,
            traffic,
            "processors of node",
            "memory of node",
            "B/s",
        )


def _strips(series: Mapping[str, Any], edges_s: Floats) -> Iterator[Strips]:
    for prefix, caption, unit, share in (
        ("waiting/", "Tasks that wait in the queues of each node.", "tasks", False),
        ("utilisation/cores of ", "Use of each node's cores.", "", True),
        ("utilisation/memory of ", "Use of each node's memory bandwidth.", "", True),
    ):
        columns = _columns(series, prefix)
        if len(columns) > 1:
            yield Strips(
                caption, tuple(columns), edges_s, np.array(list(columns.values())), unit, share
            )


def _steps(series: Mapping[str, Any], edges_s: Floats) -> Iterator[Steps]:
    stolen = {name: values for name, values in _columns(series, "stolen/").items() if values.any()}
    if stolen:
        caption = "Tasks that workers of other nodes stole, by class."
        yield Steps(caption, edges_s, stolen, "tasks/s", stacked=True)
    cores = _columns(series, "allocated cores")
    if any(np.ptp(values) > 0 for values in cores.values()):
        yield Steps("Allocated cores.", edges_s, {"allocated cores": cores[""]}, "cores")


def _columns(series: Mapping[str, Any], prefix: str) -> dict[str, Floats]:
    """Those whose name begins so, by the rest of it."""
    return {
        name.removeprefix(prefix): np.nan_to_num(np.asarray(values, dtype=np.float64))
        for name, values in series.items()
        if name.startswith(prefix)
    }


def _parts(record: PicturedRecord) -> Timeline | None:
    """Where each part of each table lies; None where the record does not tell."""
    history: Sequence[Sequence[Any]] = record.model.get("layout", ())
    by_table = by_key((table, (time_s, parts)) for time_s, table, parts in history)
    ordered = sorted(by_table, key=lambda table: len(by_table[table]) < 2)
    rows: dict[str, tuple[Span, ...]] = {}
    for table in ordered:
        rows |= _rows(table, by_table[table], record.horizon_s)
        if len(rows) > ROWS_MAX:
            break
    if not rows:
        return None
    caption = "Where each part of the tables lies; pale: it is being moved, partitioned or merged."
    if len(by_table) > 1 and len(rows) > ROWS_MAX:
        rows = dict(list(rows.items())[:ROWS_MAX])
        caption += f" The first {ROWS_MAX} parts, those that change first."
    ids = tuple(f"node {node['id']}" for node in record.machine.get("nodes", ()))
    return Timeline(caption, rows, ids, "all nodes in turn")


def _rows(
    table: str, changes: Sequence[tuple[float, Sequence[Any]]], end_s: float
) -> dict[str, tuple[Span, ...]]:
    """Spans of each part of one table, by the part's name."""
    ends = [*(time_s for time_s, _ in changes[1:]), end_s]
    most = max(len(parts) for _, parts in changes)
    rows: dict[str, list[Span]] = {}
    for (start_s, parts), stop_s in zip(changes, ends, strict=True):
        for p, (count, node, busy) in enumerate(parts):
            name = f"{table}, part {p}" if most > 1 else table
            state = None if node is None else f"node {node}"
            words = f"{count} rows" + (", being copied" if busy else "")
            if stop_s > start_s:
                rows.setdefault(name, []).append(Span(start_s, stop_s, state, words, bool(busy)))
    return {name: tuple(spans) for name, spans in rows.items()}
