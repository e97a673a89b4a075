"""Counted memory traffic as text: sums, the matrix of misses, the busiest links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .output import Part, below, facts, latency, number, percent, table, whole_table

if TYPE_CHECKING:
    from ..sim.run.record import Record

PLACEMENTS = (
    "Data all local: each node's misses go to its own memory; interleaved: evenly to all memory; "
    "where used\nmost: each node's pages move to the node that misses there most. "
    "Over 100% is slower."
)
NODES_SHOWN, LINKS_SHOWN, HELD_SHOWN = 8, 8, 4


def traffic_parts(record: Record) -> Iterator[Part]:
    """What was counted; matrices of up to eight nodes."""
    from ..reports.traffic import link_rows, node_pairs

    yield facts(_counted(record))
    ids = [str(node["id"]) for node in record.machine.get("nodes", ())]
    for title, pairs in node_pairs(record).items() if len(ids) <= NODES_SHOWN else ():
        rows = zip(ids, pairs.tolist(), strict=True)
        yield ""
        yield whole_table(
            (title, *(f"memory {name}" for name in ids)),
            ((f"node {name}", *map(number, row)) for name, row in rows),
        )
    links = [row for row in link_rows(record) if row.least_s is not None and row.bytes]
    if links:
        yield ""
        yield table(
            ("busiest links", "bytes", "of them data", "take at least"),
            (
                (
                    row.name,
                    number(row.bytes, "B"),
                    number(row.data_bytes, "B"),
                    latency((row.least_s or 0.0) * 1e9),
                )
                for row in links[:LINKS_SHOWN]
            ),
        )
    if record.traffic.get("predicted"):
        yield ""
        yield from predicted_parts(record.traffic["predicted"])
    yield from below([f"Note: {warning}" for warning in record.warnings])


def _counted(record: Record) -> Iterator[tuple[str, str | None]]:
    from ..reports.traffic import traffic_tiles

    traffic = record.traffic
    span = "the whole command"
    if traffic.get("span") == "regions":
        count = traffic["regions"]
        span = "its marked region" if count == 1 else f"its {count} marked regions"
    yield "counted", span
    yield from ((f"{name} done", f"{count:,.0f}") for name, count in record.operations.items())
    executed = traffic.get("instructions")
    yield "instructions", None if executed is None else f"{executed:,}"
    for name, value, note in traffic_tiles(record):
        yield name, f"{value} ({note})" if note else value
    for name, rate in record.model.items():
        if isinstance(rate, float):
            yield name, percent(rate)


def predicted_parts(predicted: dict[str, Any]) -> Iterator[Part]:
    """How long the command would take on the machine, and what would change it."""

    def seconds(value: float) -> str:
        return latency(value * 1e9)

    time_s, (least, most) = predicted["time_s"], predicted["interval_s"]
    held = list(predicted["binding"].items())[:HELD_SHOWN]
    placed = predicted["placements_s"].items() if time_s else ()
    yield facts(
        (
            ("would take there", f"{seconds(time_s)}, {seconds(least)} to {seconds(most)}"),
            ("held by", ", ".join(f"{name} ({percent(part)})" for name, part in held)),
            *(
                (f"data {name}", f"{seconds(found)}, {percent(found / time_s)} of that")
                for name, found in placed
            ),
        )
    )
    if placed:
        yield f"\n{PLACEMENTS}"
