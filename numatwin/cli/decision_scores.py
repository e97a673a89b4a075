"""``numatwin decisions``: predictions held against decisions that were measured, a row each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ..inputs import InputError, write_text_atomically
from .files import check_file
from .options import Json, Plane, option
from .output import Part, present, progress_bar, table, wrapped


def decisions(
    on: Annotated[Plane | None, typer.Option(help="The data plane that predicts.")] = None,
    id_: Annotated[str | None, option("ID", "Only this case, such as cxl-triad.", "--id")] = None,
    cases: Annotated[
        Path | None,
        option("DIR", "Score the cases of this folder, such as your own decisions of the past."),
    ] = None,
    page: Annotated[Path | None, option("FILE.md", "Also write a page.")] = None,
    json: Json = False,
) -> None:
    """Compare predictions with decisions that were measured."""
    from ..validate.decision_cases import case_files
    from ..validate.decisions_scored import page_of, scored, summary

    if page is not None and (on is not None or id_ is not None):
        raise InputError("--page writes all cases", expected="neither --on nor --id")
    check_file(page)
    files = case_files(cases, id_)
    with progress_bar("predicting") as progress:
        rows = scored(files, on.value if on else None, progress)
    if page is not None:
        write_text_atomically(page, page_of(rows))
    found = summary(rows)
    present(json, lambda: {"rows": rows, "summary": found}, _parts(rows, found))


def _parts(rows: list[dict[str, Any]], found: dict[str, Any]) -> Iterator[Part]:
    from ..validate.decisions_scored import summary_text

    heads = ("case", "alternative", "measured", "predicted", "interval", "error", "verdict")
    yield table(heads, map(_cells, rows), left=2)
    for row in rows:
        if row["not_modelled"]:
            yield wrapped(f"\n{row['id']}: not modelled here: {row['not_modelled']}")
    yield wrapped("\n" + summary_text(found).replace("\n", " "))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    from ..validate.decisions_scored import ratio_text

    error = "–" if row["relative_error"] is None else f"{row['relative_error']:+.1%}"
    return (
        row["id"],
        row["alternative"],
        ratio_text(row["measured_ratio"]),
        ratio_text(row["predicted_ratio"]),
        ratio_text(row["interval"]),
        error,
        row["verdict"],
    )
