"""What a run assumed, as text: a table by effect, and the sources below it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..reports.page import NOTHING, assumption_rows
from ..reports.words import count
from .output import Part, whole_table

if TYPE_CHECKING:
    from ..sim.run.record import Record


def assumption_parts(record: "Record") -> Iterator[Part]:
    """What the run counted with though nobody stated it."""
    rows = assumption_rows(record.assumptions)
    yield ""
    if not rows:
        yield "Nothing was assumed: machine file and scenario state all that it counts with."
        return
    yield whole_table(
        ("assumed", "value", "throughput if lower", "if higher"),
        ((row.name, row.value, row.low or "–", row.high or "–") for row in rows),
        long_names=True,
        whole=True,
    )
    decisive, ranged = (sum(row.effect >= NOTHING for row in rows), sum(row.ranged for row in rows))
    ends = f"for {count(ranged, 'uncertain fact')} the ends of the range, else " if ranged else ""
    values = f"values ({ends}mostly a tenth less and more)"
    what = "change the predicted throughput"
    if len(rows) == 1:
        text = f"Other {values} would {'' if decisive else 'not '}{what}"
    else:
        text = f"Other {values} of {decisive or 'none'} of them would {what}"
    yield f"\n{count(len(rows), 'assumption')}. {text}."
    yield from (f"{row.name}: {row.source}" for row in rows)
