"""Counted memory traffic as text: sums, the matrix of misses, the busiest links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .output import latency, number, percent, print_facts, print_whole, table

if TYPE_CHECKING:
    from rich.console import Console

    from ..sim.run.record import Record

PLACEMENTS = (
    "Data all local: each node's misses go to its own memory; interleaved: evenly to all memory; "
    "where used\nmost: each node's pages move to the node that misses there most. "
    "Over 100% is slower."
)
NODES_SHOWN, LINKS_SHOWN, HELD_SHOWN = 8, 8, 4


def print_traffic(record: Record, to: Console) -> None:
    """Prints what was counted; matrices of up to eight nodes."""
    from ..reports.traffic import link_rows, node_pairs, traffic_tiles

    traffic = record.traffic
    span = "the whole command"
    if traffic.get("span") == "regions":
        count = traffic["regions"]
        span = "its marked region" if count == 1 else f"its {count} marked regions"
    tiles = [(name, f"{value} ({note})" if note else value) for name, value, note in
             traffic_tiles(record)]  # fmt: skip
    rates = [
        (name, percent(rate)) for name, rate in record.model.items() if isinstance(rate, float)
    ]
    done = [(f"{name} done", f"{count:,.0f}") for name, count in record.operations.items()]
    executed = traffic.get("instructions")
    instructions = None if executed is None else f"{executed:,}"
    print_facts(to, (("counted", span), *done, ("instructions", instructions), *tiles, *rates))
    ids = [str(node["id"]) for node in record.machine.get("nodes", ())]
    if len(ids) <= NODES_SHOWN:
        for title, pairs in node_pairs(record).items():
            to.print()
            rows = (
                (f"node {name}", *map(number, row))
                for name, row in zip(ids, pairs.tolist(), strict=True)
            )
            print_whole(to, table((title, *(f"memory {name}" for name in ids)), rows))
    links = [row for row in link_rows(record) if row.least_s is not None and row.bytes]
    if links:
        to.print()
        to.print(
            table(
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
        )
    if traffic.get("predicted"):
        to.print()
        print_predicted(traffic["predicted"], to)
    if record.warnings:
        to.print()
    for warning in record.warnings:
        to.print(f"Note: {warning}", soft_wrap=True)


def print_predicted(predicted: dict[str, Any], to: Console) -> None:
    """Prints how long the command would take on the machine, and what would change it."""

    def seconds(value: float) -> str:
        return latency(value * 1e9)

    time_s, (least, most) = predicted["time_s"], predicted["interval_s"]
    held = ", ".join(
        f"{name} ({percent(part)})"
        for name, part in list(predicted["binding"].items())[:HELD_SHOWN]
    )
    print_facts(
        to,
        (
            ("would take there", f"{seconds(time_s)}, {seconds(least)} to {seconds(most)}"),
            ("held by", held),
            *(
                (f"data {name}", f"{seconds(found)}, {percent(found / time_s)} of that")
                for name, found in predicted["placements_s"].items()
                if time_s
            ),
        ),
    )
    if predicted["placements_s"] and time_s:
        to.print(f"\n{PLACEMENTS}", soft_wrap=True)
