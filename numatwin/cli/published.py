"""``numatwin published``: predictions compared with published results, a row each."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from .options import Json, Plane, option
from .output import Part, number, present, table, wrapped


def published(
    on: Annotated[
        Plane | None,
        typer.Option(
            help="The data plane that predicts; by default, for each result, the first that can."
        ),
    ] = None,
    id_: Annotated[str | None, option("ID", "Only this result, such as eris-fig9.", "--id")] = None,
    json: Json = False,
) -> None:
    """Compare predictions with published results."""
    from ..validate.published import given_others, left_out, published_rows

    plane = on.value if on else None
    given = given_others()
    rows = published_rows(plane, id_)
    for row in rows:
        row["given_others"] = asdict(given[row["id"]]) if row["id"] in given else None
    if plane is not None and id_ is None and (others := left_out(plane)):
        print(
            f"numatwin: plane {plane} cannot predict {len(others)} results, which are left out: "
            + ", ".join(others),
            file=sys.stderr,
        )
    present(json, lambda: {"rows": rows}, _parts(rows))


def _parts(rows: list[dict[str, Any]]) -> Iterator[Part]:
    """The rows as a table, their notes, and what they rest on."""
    yield table(
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
    if len(rows) == 1 and rows[0]["given_others"]:
        yield _open(rows[0])
    for row in rows:
        if row["note"]:
            yield wrapped(f"\n{row['id']}: {row['note']}")
    for name, source in {m["name"]: m["source"] for row in rows for m in row["machines"]}.items():
        yield wrapped(f"\nMachine {name}: {source or 'made up for an upper bound'}")
    calibrated = [row for row in rows if row["calibrated_on"]]
    for row in calibrated:
        yield wrapped(f"\n{row['id']}: calibrated on {', '.join(row['calibrated_on'])}")
    if not calibrated:
        yield "\nNothing is calibrated on a published result."


def _open(row: dict[str, Any]) -> str:
    """What the figure may be with all that its source leaves open, and by its other figures."""
    found, unit = row["given_others"], _unit(row)
    low, high, value, least, most = (
        number(one, unit) for one in (*found["before"], found["value"], *found["interval"])
    )
    return (
        f"\nWith all that its source leaves open: {low} to {high}, with 90%. Given the "
        f"{found['others']} other figures of the source, not its own: {value}, with 90% from "
        f"{least} to {most}."
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
