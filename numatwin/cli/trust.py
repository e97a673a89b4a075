"""``numatwin trust``: what predictions of each kind were off by so far."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .options import Json
from .output import console, print_json, table


def trust(
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE.md", help="Also write a page with each figure."),
    ] = None,
    json: Json = False,
) -> None:
    """Show what predictions of each kind were off by so far.

    Factors either way: of figures that were published, measured or counted.
    """
    from ..inputs.atomic import check_writable, write_text_atomically
    from ..sim.run.model_error import known_evidence
    from ..validate.trust import (
        AIM,
        COVERAGE_HEADS,
        LEVEL,
        TRUST_HEADS,
        coverage,
        coverage_cells,
        page_of,
        trust_cells,
    )
    from ..validate.trust import trust as rows_of

    evidence = known_evidence()
    if page is not None:
        check_writable(page)
        write_text_atomically(page, page_of(evidence))
    known, covered = rows_of(evidence), coverage(evidence)
    if json:
        print_json(
            {
                "level": LEVEL,
                "aim": list(AIM),
                "rows": [row.as_json() for row in known],
                "coverage": [asdict(row) for row in covered],
                "evidence": [row.as_json() for row in evidence],
            }
        )
        return
    to = console()
    to.print(table(TRUST_HEADS, map(trust_cells, known), left=4))
    to.print(f"\nIntervals of {LEVEL:.0%}, each by the evidence of all other sources:\n")
    to.print(table(COVERAGE_HEADS, map(coverage_cells, covered), left=1))
    to.print(
        "\nOf work or figures that are not listed nothing is known: intervals of these are wide.",
        soft_wrap=True,
    )
