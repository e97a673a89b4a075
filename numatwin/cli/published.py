"""``numatwin published``: predictions against published results, a row each."""

from __future__ import annotations

from typing import Annotated

import typer

from .output import console, print_json, table
from .run import Plane


def published(
    on: Annotated[Plane, typer.Option(help="The data plane that predicts.")] = Plane.flow,
    id_: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="Only this result, such as eris-fig9.", show_default=False
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Compare what is predicted with what was published."""
    from ..validate.published import published_rows

    rows = published_rows(on.value, id_)
    if json:
        print_json({"rows": rows})
        return
    to = console()
    to.print(
        table(
            ("id", "unit", "published", "predicted", "error", "calibrated on"),
            (
                (
                    row["id"],
                    row["unit"],
                    _figure(row["published"]),
                    _figure(row["predicted"]),
                    _signed_percent(row["relative_error"]),
                    ", ".join(row["calibrated_on"]) or "nothing",
                )
                for row in rows
            ),
            left=2,
        )
    )
    for row in rows:
        if row.get("note"):
            to.print(f"\n{row['id']}: {row['note']}")


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)


def _signed_percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:+.1f}%"
