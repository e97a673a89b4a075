"""``numatwin trust``: what predictions of each kind were off by so far."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..inputs import write_text_atomically
from .files import check_file
from .options import Json, option
from .output import Part, present, table

if TYPE_CHECKING:
    from ..validate.trust import Coverage, Trust


def trust(
    page: Annotated[Path | None, option("FILE.md", "Also write a page with each figure.")] = None,
    json: Json = False,
) -> None:
    """Show what predictions of each kind were off by so far.

    Factors either way: of figures that were published, measured or counted.
    """
    from ..sim.run.model_error import known_evidence
    from ..validate.trust import AIM, LEVEL, coverage, page_of
    from ..validate.trust import trust as rows_of

    check_file(page)
    evidence = known_evidence()
    if page is not None:
        write_text_atomically(page, page_of(evidence))
    known, covered = rows_of(evidence), coverage(evidence)
    present(
        json,
        lambda: {
            "level": LEVEL,
            "aim": list(AIM),
            "rows": [row.as_json() for row in known],
            "coverage": [asdict(row) for row in covered],
            "evidence": [asdict(row) for row in evidence],
        },
        _parts(known, covered),
    )


def _parts(known: "Sequence[Trust]", covered: "Sequence[Coverage]") -> Iterator[Part]:
    from ..validate.trust import COVERAGE_HEADS, LEVEL, TRUST_HEADS, coverage_cells, trust_cells

    yield table(TRUST_HEADS, map(trust_cells, known), left=4)
    yield f"\nIntervals of {LEVEL:.0%}, each by the evidence of all other sources:\n"
    yield table(COVERAGE_HEADS, map(coverage_cells, covered))
    yield "\nOf work or figures that are not listed nothing is known: intervals of these are wide."
