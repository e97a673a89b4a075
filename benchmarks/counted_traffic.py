"""What ``numatwin crossvalidate --traffic --out DIR`` found, as tables of a page.

    python benchmarks/counted_traffic.py DIR/rows.json [...] --write

Cases of a file take the place of those that were there (``counted_traffic/rows.json``), so that a
case may be counted again alone. One JSON object a line: the median error by figure, against 5%.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from numatwin.validate.crossvalidate.traffic import MEDIAN_MAX, WORST_MAX

ROWS = Path(__file__).parent / "counted_traffic" / "rows.json"
PAGE = Path(__file__).parents[1] / "docs" / "model" / "counted-traffic.md"
BEGIN, END = "<!-- benchmarks/counted_traffic.py --write -->\n", "<!-- end -->\n"
FIGURES = ("memory", "busiest controller", "links", "busiest link")
PLANES = ("flow", "event")

Row = Mapping[str, Any]


def merged(known: Sequence[Row], found: Sequence[Row]) -> list[Row]:
    """The rows with those of cases that were counted again, in the order of the cases."""
    again = {row["scenario"] for row in found}
    if not known:
        return list(found)
    order = list(dict.fromkeys(row["scenario"] for row in [*known, *found]))
    left = [row for row in known if row["scenario"] not in again]
    return sorted([*left, *found], key=lambda row: order.index(row["scenario"]))


def kept(row: Row) -> Row:
    """What of a row of ``rows.json`` is kept here."""
    names = ("scenario", "metric", "plane", "measured", "predicted", "relative_error")
    return {name: row[name] for name in names}


def table(rows: Sequence[Row]) -> str:
    """In Markdown: a row for each case, errors of both planes; then what the aim comes to."""
    return "\n".join([*_table(rows), "", _summary(rows)]) + "\n"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| predicted less counted: flow, event | " + " | ".join(FIGURES) + " |"
    yield "| --- |" + " --: |" * len(FIGURES)
    errors = {(row["scenario"], row["metric"], row["plane"]): row["relative_error"] for row in rows}
    for case in dict.fromkeys(row["scenario"] for row in rows):
        told = [
            ", ".join(_told(errors.get((case, figure, plane))) for plane in PLANES)
            for figure in FIGURES
        ]
        machine, _, what = case.partition(" ")
        yield f"| `{machine}` {what} | " + " | ".join(told) + " |"


def _told(error: float | None) -> str:
    if error is None:
        return "–"
    text = f"{100 * error:+.0f}%"
    return f"**{text}**" if abs(error) > WORST_MAX else text


def _summary(rows: Sequence[Row]) -> str:
    errors = [abs(row["relative_error"]) for row in rows]
    far = sum(error > WORST_MAX for error in errors)
    return (
        f"Of {len(errors)} rows the median error is {median(errors):.1%} (aim: {MEDIAN_MAX:.0%}); "
        f"{far} are further off than {WORST_MAX:.0%} (aim: none)."
    )


def written(page: str, rows: Sequence[Row]) -> str:
    """The page with these rows."""
    first, rest = page.split(BEGIN)
    return first + BEGIN + table(rows) + END + rest.split(END, 1)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="rows.json of crossvalidate --traffic")
    parser.add_argument("--write", action="store_true", help=f"{ROWS.name} and {PAGE.name}")
    options = parser.parse_args()
    rows: list[Row] = json.loads(ROWS.read_text()) if ROWS.exists() else []
    for file in options.files:
        rows = merged(rows, [kept(row) for row in json.loads(file.read_text())["rows"]])
    for figure in FIGURES:
        error = median(abs(row["relative_error"]) for row in rows if row["metric"] == figure)
        line = {
            "name": f"counted traffic/{figure}",
            "value": round(100 * error, 1),
            "unit": "%",
            "versus": f"aim: {MEDIAN_MAX:.0%}",
            "ratio": round(error / MEDIAN_MAX, 2),
        }
        print(json.dumps(line))
    if options.write:
        ROWS.write_text("[\n " + ",\n ".join(json.dumps(row) for row in rows) + "\n]\n")
        PAGE.write_text(written(PAGE.read_text("utf-8"), rows), "utf-8")


if __name__ == "__main__":
    main()
