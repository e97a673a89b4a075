"""A record as text: rates, use, what limits each operation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .output import latency, number, percent, print_facts, table

if TYPE_CHECKING:
    from rich.console import Console

    from ..sim.record import Record

RESOURCES_SHOWN, GAINS_SHOWN = 8, 4


def print_record(record: Record, to: Console) -> None:
    """Prints what ran, how fast, the busiest resources, and why it is no faster."""
    _print_head(record, to)
    _print_operations(record, to)
    _print_resources(record, to)
    _print_why(record, to)
    if record.warnings:
        to.print()
    for warning in record.warnings:
        to.print(f"Note: {warning}", soft_wrap=True)


def _print_head(record: Record, to: Console) -> None:
    wall_s = record.provenance.get("wall_s")
    kinds = Counter(event.kind for event in record.control_events)
    print_facts(
        to,
        (
            ("scenario", f"{record.scenario}: {record.title}" if record.title else record.scenario),
            ("machine", str(record.machine["name"])),
            ("policy", record.policy),
            (
                "plane",
                f"{record.plane}, {record.horizon_s:g} s"
                + (f" in {latency(wall_s * 1e9)}" if isinstance(wall_s, float) else ""),
            ),
            ("memory traffic", number(record.bandwidth_Bps.get("memory"), "B/s")),
            ("link traffic", number(record.bandwidth_Bps.get("links"), "B/s")),
            ("energy", number(record.energy_J, "J") if record.energy_J is not None else None),
            (
                "control events",
                ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or None,
            ),
        ),
    )


def _print_operations(record: Record, to: Console) -> None:
    """A row for each operation; a latency that is known of none has no column."""
    columns = {
        "operation": list(record.throughput),
        "throughput": [number(rate, "/s") for rate in record.throughput.values()],
    }
    for title, name in (("mean latency", "mean"), ("p99", "p99")):
        found = [(record.latency_ns.get(one) or {}).get(name) for one in record.throughput]
        if any(value is not None for value in found):
            columns[title] = [latency(value) for value in found]
    columns["in all"] = [number(record.operations.get(name)) for name in record.throughput]
    to.print()
    to.print(table(list(columns), zip(*columns.values(), strict=True)))


def _print_resources(record: Record, to: Console) -> None:
    # What differs by rounding stays in the record's order, that of nodes and links.
    busiest = sorted(record.resources, key=lambda use: -round(use.utilisation, 3))
    to.print()
    to.print(
        table(
            ("busiest resources", "in use", "traffic", "capacity"),
            (
                (
                    use.name,
                    percent(use.utilisation),
                    number(use.Bps, "B/s"),
                    number(use.capacity_Bps, "B/s"),
                )
                for use in busiest[:RESOURCES_SHOWN]
            ),
        )
    )


def _print_why(record: Record, to: Console) -> None:
    for name, why in record.why.items():
        gains = [gain for gain in why.gains if gain.gain_per_10pct >= 0.0005][:GAINS_SHOWN]
        best = f"; most would come of 10% more {gains[0].resource}" if gains else ""
        to.print(f"\n{name} is limited by {why.resource}{best}", soft_wrap=True)
        if gains:
            to.print(
                table(
                    ("10% more of", "throughput"),
                    ((gain.resource, f"+{percent(gain.gain_per_10pct)}") for gain in gains),
                )
            )
