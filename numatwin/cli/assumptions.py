"""What a run assumed, as text: a table by effect, and the sources below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..reports.assumptions import NOTHING, assumption_rows
from ..reports.words import count
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
            long_names=True,
            whole=True,
        )
    )
    decisive = sum(row.effect >= NOTHING for row in rows)
    what = "the predicted throughput of the first moments"
    changing = f"{decisive or 'none'} of them change{'s' * (decisive < 2)} {what}"
    if len(rows) == 1:
        changing = f"it {'changes' if decisive else 'does not change'} {what}"
    to.print(f"\n{count(len(rows), 'assumption')}; {changing}.", soft_wrap=True)
    for row in rows:
        to.print(f"{row.name}: {row.source}", soft_wrap=True)
