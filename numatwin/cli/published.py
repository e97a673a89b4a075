"""``numatwin published``: predictions compared with published results, a row each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Json, Plane
from .output import console, number, print_json, table


def published(
    on: Annotated[
        Plane | None,
        typer.Option(
            help="The data plane that predicts; by default, for each result, the first that can.",
            show_default=False,
        ),
    ] = None,
    id_: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="Only this result, such as eris-fig9.", show_default=False
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md",
            help="Also write a page, with its pictures in pictures/ in the same folder.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare predictions with published results."""
    from ..inputs import InputError
    from ..inputs.atomic import check_writable
    from ..validate.published import left_out, published_rows
    from ..validate.published_page import write_page

    if page is not None:
        if on is not None or id_ is not None:
            raise InputError("--page writes all results", expected="neither --on nor --id")
        check_writable(page)
    plane = on.value if on else None
    rows = published_rows(plane, id_)
    if page is not None:
        write_page(rows, page)
    if plane is not None and id_ is None and (others := left_out(plane)):
        print(
            f"numatwin: plane {plane} cannot predict {len(others)} results, which are left out: "
            + ", ".join(others),
            file=sys.stderr,
        )
    if json:
        print_json({"rows": rows})
    else:
        _print(rows)


def _print(rows: list[dict[str, Any]]) -> None:
    """The rows as a table, their notes, and what they rest on."""
    to = console()
    to.print(
        table(
            ("result", "plane", "published", "predicted", "error", "unit"),
            (
                (
                    row["id"],
                    row["plane"],
                    _figure(row, "published"),
                    _figure(row, "predicted"),
                    _verdict(row),
                    row["unit"],
                )
                for row in rows
            ),
            left=6,
        )
    )
    for row in rows:
        if row["note"]:
            to.print(f"\n{row['id']}: {row['note']}")
    for name, source in {m["name"]: m["source"] for row in rows for m in row["machines"]}.items():
        to.print(f"\nMachine {name}: {source or 'made up for an upper bound'}")
    calibrated = [row for row in rows if row["calibrated_on"]]
    for row in calibrated:
        to.print(f"\n{row['id']}: calibrated on {', '.join(row['calibrated_on'])}")
    if not calibrated:
        to.print("\nNothing is calibrated on a published result.")


def _figure(row: dict[str, Any], which: str) -> str:
    value: float | str | None = row[which]
    if value is None:
        return "not yet"
    unit = {"B/s": "B/s", "transactions/s": "/s"}.get(row["unit"], "")
    return value if isinstance(value, str) else number(value, unit)


def _verdict(row: dict[str, Any]) -> str:
    """The relative error; for a result in words, whether it is reproduced."""
    if row["relative_error"] is not None:
        return f"{100 * row['relative_error']:+.1f}%"
    return {True: "as published", False: "not so", None: "–"}[row["holds"]]
