"""``numatwin published``: predictions compared with published results, a row each."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Json, Plane
from .output import console, number, print_json, table

if TYPE_CHECKING:
    from rich.console import Console


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
    from ..validate.published_given import given_others
    from ..validate.published_page import write_page

    if page is not None:
        if on is not None or id_ is not None:
            raise InputError("--page writes all results", expected="neither --on nor --id")
        check_writable(page)
    plane = on.value if on else None
    given = given_others()
    rows = published_rows(plane, id_)
    for row in rows:
        row["given_others"] = asdict(given[row["id"]]) if row["id"] in given else None
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
    for row in rows if len(rows) == 1 else ():
        if row["given_others"]:
            _print_open(row, to)
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


def _print_open(row: dict[str, Any], to: Console) -> None:
    """What the figure may be with all that its source leaves open, and by its other figures."""
    found, unit = row["given_others"], _unit(row)
    low, high, value, least, most = (
        number(one, unit) for one in (*found["before"], found["value"], *found["interval"])
    )
    to.print(
        f"\nWith all that its source leaves open: {low} to {high}, with 90%. Given the "
        f"{found['others']} other figures of the source, not its own: {value}, with 90% from "
        f"{least} to {most}.",
        soft_wrap=True,
    )


def _unit(row: dict[str, Any]) -> str:
    return {"B/s": "B/s", "transactions/s": "/s"}.get(row["unit"], "")


def _figure(row: dict[str, Any], which: str) -> str:
    value: float | str | None = row[which]
    if value is None:
        return "not yet"
    return value if isinstance(value, str) else number(value, _unit(row))


def _verdict(row: dict[str, Any]) -> str:
    """The relative error; for a result in words, whether it is reproduced."""
    if row["relative_error"] is not None:
        return f"{100 * row['relative_error']:+.1f}%"
    return {True: "as published", False: "not so", None: "–"}[row["holds"]]
