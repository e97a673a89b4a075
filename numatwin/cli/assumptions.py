"""What a run assumed, as text: a table by effect, and the sources below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..reports.assumptions import NOTHING, assumption_rows
from ..reports.words import count
from .output import print_whole, table

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
    print_whole(
        to,
        table(
            ("assumed", "value", "throughput if lower", "if higher"),
            ((row.name, row.value, row.low or "–", row.high or "–") for row in rows),
            long_names=True,
            whole=True,
        ),
    )
    decisive, ranged = (sum(row.effect >= NOTHING for row in rows), sum(row.ranged for row in rows))
    ends = f"for {count(ranged, 'uncertain fact')} the ends of the range, else " if ranged else ""
    values = f"values ({ends}mostly a tenth less and more)"
    what = "change the predicted throughput"
    if len(rows) == 1:
        text = f"Other {values} would {'' if decisive else 'not '}{what}"
    else:
        text = f"Other {values} of {decisive or 'none'} of them would {what}"
    to.print(f"\n{count(len(rows), 'assumption')}. {text}.", soft_wrap=True)
    for row in rows:
        to.print(f"{row.name}: {row.source}", soft_wrap=True)
