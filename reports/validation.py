"""A page that compares predictions with measurements: pictures, a summary, all rows.

It is made of plain rows and tables, for any command that validates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..inputs import write_text_atomically
from .page import Plot, Plots
from .predicted_measured import (
    Row,
    predicted_against_measured,
    residuals_by_group,
    residuals_over_size,
    units,
)
from .report import rendered

AGAINST = "Predicted against measured, each with its interval; in the band: within 10%"
OVER_SIZE = "Predicted over measured, by the size of the data"
BY_GROUP = "Predicted over measured, by what was run; bars reach as far as both intervals allow"
OF_UNIT = {"/s": "rates", "B/s": "bandwidths", "s": "times", "1": "shares"}


@dataclass(frozen=True)
class Cell:
    """A cell of a table; ``bad`` ones are seen from afar."""

    text: str
    note: str = ""
    bad: bool = False


@dataclass(frozen=True)
class Table:
    """A table with its title; the first ``texts`` columns are text, the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    texts: int = 1
    note: str = ""


@dataclass(frozen=True)
class Validation:
    """What a page of a validation says.

    ``path``: the line above the title; ``answer``: the paragraph below; ``summaries``, ``tables``:
    before and behind the pictures, which are made of ``rows``; ``doubts``: what to distrust;
    ``facts``: names and values.
    """

    title: str
    path: str
    answer: str
    version: str
    rows: Sequence[Row]
    summaries: Sequence[Table] = ()
    tables: Sequence[Table] = ()
    doubts: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    figures_by_set: bool = False
    """Whether each set of rows has pictures of its own."""


@dataclass(frozen=True)
class _Chapter:
    """The pictures of rows of one unit."""

    title: str
    against: Plot | None
    over_size: Plot | None
    by_group: Plot | None


def write_validation(validation: Validation, path: str | Path) -> Path:
    """Writes the page to ``path``, whole or not at all; raises InputError."""
    return write_text_atomically(path, validation_html(validation))


def validation_html(validation: Validation) -> str:
    """The page as text."""
    return rendered(
        "validation.html", page=validation, chapters=list(_chapters(Plots(), validation))
    )


def _chapters(plots: Plots, validation: Validation) -> Iterator[_Chapter]:
    rows = validation.rows
    sets = dict.fromkeys(row.set for row in rows) if validation.figures_by_set else [None]
    for of_set in sets:
        chosen = [row for row in rows if of_set in (None, row.set)]
        for unit in units(chosen):
            title = f"predicted and measured {OF_UNIT.get(unit, 'figures')}"
            title = title.capitalize() if of_set is None else f"{of_set.capitalize()} set: {title}"
            yield _chapter(plots, title, [row for row in chosen if row.unit == unit])


def _chapter(plots: Plots, title: str, rows: Sequence[Row]) -> _Chapter:
    return _Chapter(
        title,
        plots.plot(predicted_against_measured(rows), AGAINST),
        plots.plot(residuals_over_size(rows, "size of the data"), OVER_SIZE),
        plots.plot(residuals_by_group(rows), BY_GROUP),
    )
