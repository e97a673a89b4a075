"""What a run assumed, as text: a table by effect, and the sources below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..reports.assumptions import NOTHING, assumption_rows
from .output import table

if TYPE_CHECKING:
    from rich.console import Console

    from ..sim.run.record import Record


def print_assumptions(record: Record, to: Console) -> None:
    """Prints what the run counted with though nobody stated it."""
    rows = assumption_rows(record.assumptions)
    to.print()
    if not rows:
        to.print("Nothing was assumed: machine file and scenario state all that it counts with.")
        return
    to.print(
        table(
            ("assumed", "value", "throughput if lower", "if higher"),
            ((row.name, row.value, row.low or "–", row.high or "–") for row in rows),
        )
    )
    decisive = sum(row.effect >= NOTHING for row in rows)
    to.print(
        f"\n{len(rows)} assumptions, {decisive} of which change the throughput of the first "
        "moments, as predicted.",
        soft_wrap=True,
    )
    for row in rows:
        to.print(f"{row.name}: {row.source}", soft_wrap=True)
