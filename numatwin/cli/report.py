"""``numatwin report``: one HTML file from records, side by side where there are several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .output import console

Records = Annotated[
    list[Path],
    typer.Argument(metavar="RECORD", help="Folders that 'numatwin run' wrote.", show_default=False),
]


def report(
    records: Records,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Write a report that opens offline in any browser."""
    from ..reports import write_report
    from ..sim.record import load_record

    console().print(str(write_report([load_record(path) for path in records], out)), soft_wrap=True)
