"""The page on published results: good and bad predictions, and why; with its pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..inputs.atomic import write_text_atomically
from ..reports.curve_svg import curve_svg
from ..sim.studies.results import Response
from .published import NEAR, PUBLISHED, Given, given_others, words_given
from .published_pictures import Bar, bars_svg
from .systems.registry import validations

Row = Mapping[str, Any]
PICTURES = "pictures"
ERRORS, IN_ADVANCE = "published-errors.svg", "published-in-advance.svg"
# A reader's words for the size of an error.
CLOSE_MAX, FAIR_MAX = 0.1, 0.25

INTRODUCTION = """\
# Predicted against published

<!-- 'make docs' writes this page: numatwin published --page docs/published.md -->

Results that were published of the modelled systems, and what numatwin predicts for them from
low-level facts of their machines alone. A published figure is never an input of its own prediction.
`numatwin published` prints these rows, `numatwin published --id eris-fig9` one of them. What models
lack is noted below, and [how blind](#how-blind-these-predictions-are) these predictions are.
"""


def write_page(rows: Sequence[Row], path: Path) -> None:
    """Writes the page, and its pictures into a folder beside it; raises InputError."""
    folder = path.parent / PICTURES
    folder.mkdir(exist_ok=True)
    for name, picture in pictures(rows).items():
        write_text_atomically(folder / name, picture)
    write_text_atomically(path, page(rows))


def pictures(rows: Sequence[Row]) -> dict[str, str]:
    """The pictures of the page by the names of their files."""
    bars = [
        Bar(row["id"], row["relative_error"], _well(row["relative_error"]))
        for row in rows
        if row["relative_error"] is not None
    ]
    predicted = {row["id"]: row["predicted"] for row in rows}
    curves: dict[str, list[tuple[float, float, None, None]]] = {}
    for id_, result in PUBLISHED.items():
        if result.curve is not None:
            name, place = result.curve
            curves.setdefault(name, []).append((place, predicted[id_], None, None))
    advance = Response("clients", "", "transactions per second", curves, 0, log=False)
    return {
        ERRORS: bars_svg(bars, "predicted over published, less 1"),
        IN_ADVANCE: curve_svg(advance, "Transactions by the number of clients", "/s"),
    }


def page(rows: Sequence[Row]) -> str:
    """The page as Markdown."""
    return "\n".join(_lines(rows)).rstrip("\n") + "\n"


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    numbers = [row for row in rows if row["relative_error"] is not None]
    words = [row for row in rows if row["holds"] is not None]
    advance = [row for row in rows if row["published"] is None]
    near = [sum(_well(row["relative_error"]) == well for row in numbers) for well in (2, 1, 0)]
    yield INTRODUCTION
    yield (
        f"Of {len(numbers)} results in numbers {near[0]} are predicted "
        f"within {100 * CLOSE_MAX:.0f}%, {near[1]} more within {100 * FAIR_MAX:.0f}%, "
        f"{near[2]} are further off.\n"
        f"Of {len(words)} in words {sum(row['holds'] for row in words)} are predicted as published."
    )
    yield f"\n![The error of each result in numbers]({PICTURES}/{ERRORS})\n"
    yield "## In numbers\n"
    yield "| result | what | published | predicted | error | plane | machine |"
    yield "| --- | --- | --: | --: | --: | --- | --- |"
    for row in sorted(numbers, key=lambda row: abs(row["relative_error"])):
        yield _cells(
            f"`{row['id']}`",
            f"{row['about']}: {row['unit']}" if _unit(row) is None else row["about"],
            _figure(row, "published"),
            _figure(row, "predicted"),
            f"{100 * row['relative_error']:+.1f}%",
            row["plane"],
            _machines(row),
        )
    yield from _three_columns(numbers)
    yield "\n## In words\n"
    yield WORDS
    yield (
        "| result | what | published | predicted | outcome | before evidence | given the numbers | "
        "plane | machine |"
    )
    yield "| --- | --- | --- | --- | --- | --: | --: | --- | --- |"
    for row in sorted(words, key=lambda row: not row["holds"]):
        yield _cells(
            f"`{row['id']}`",
            row["about"],
            row["published"],
            row["predicted"],
            "as published" if row["holds"] else "**not so**",
            *_probabilities(row["id"]),
            row["plane"],
            _machines(row),
        )
    yield "\n## Why\n"
    said: dict[str, str] = {}
    for title, chosen in _by_success(numbers, words):
        ids_by_note: dict[str, list[str]] = {}
        for row in chosen:
            if row["note"]:
                ids_by_note.setdefault(row["note"], []).append(f"`{row['id']}`")
        if ids_by_note:
            yield f"### {title}\n"
            for note, ids in ids_by_note.items():
                yield f"- {', '.join(ids)}: {_said_once(note, ids[0], said)}"
            yield ""
    yield from _in_advance(advance)
    yield from _input_rows(rows)
    yield "## How blind these predictions are\n"
    for validation in validations():
        if validation.blindness:
            yield validation.blindness


OPEN = """
## With all that sources leave open

Sources do not tell everything: how many cache lines a lookup has in flight, how many tasks wait,
how large pages are. The next table has three predictions of each figure, none of which has seen it:

| column | made of | other published figures of its source |
| --- | --- | --- |
| **blind** | facts and defaults as they are: the prediction above | not used |
| **before evidence** | 90% interval over all that facts and unreported conditions may be, and \
over what the model was wrong by for other sources | not used |
| **given the others** | the same draws, weighed by how well each predicts the *other* figures of \
its source: median, its error, 90% interval | **used**, but never the figure itself |

So only the first two columns are predictions of a paper that nobody has read; the third says how
far its own figures agree with each other, if some conditions are as the other figures suggest. What
was taken to be open is listed below; it was written down with the published figures in sight. Where
fewer than 10 draws would count, the other figures count less. What is predicted as 0 has no row.
Draws: `python benchmarks/published_draws.py --write`.
"""


WORDS = """\
*Before evidence*: in what part of all draws of what the source leaves open it comes out as
published. *Given the numbers*: weighed by how well each draw predicts its source's numbers.
"""


def _probabilities(id_: str) -> Iterator[str]:
    """How probably a result in words comes out; a dash where no draws are stored."""
    for share in words_given().get(id_, (None, None)):
        yield "–" if share is None else f"{share:.0%}"


def _three_columns(numbers: Sequence[Row]) -> Iterator[str]:
    """Blind, before evidence, given the others; of results whose draws are stored."""
    rows = [(row, found[row["id"]]) for row in numbers if row["id"] in (found := given_others())]
    if not rows:
        return
    yield OPEN
    held = [one.holds(row["published"]) for row, one in rows]
    near = [one.near(row["published"]) for row, one in rows]
    before = [one.before[0] <= row["published"] <= one.before[1] for row, one in rows]
    blind = [abs(row["relative_error"]) <= NEAR for row, _ in rows]
    yield (
        f"Of {len(rows)} results {sum(blind)} lie within {NEAR:.0%} blind, and {sum(near)} given "
        f"the others; {sum(before)} in their interval before evidence, and {sum(held)} in the one "
        "given the others.\n"
    )
    yield (
        "| result | published | blind | before evidence, 90% | given the others | error | "
        "given the others, 90% |"
    )
    yield "| --- | --: | --: | --: | --: | --: | --: |"
    for row, one in rows:
        figures = {"low": one.before[0], "high": one.before[1], "value": one.value}
        figures |= {"least": one.interval[0], "most": one.interval[1]}
        low, high, value, least, most = (_figure({**row, k: v}, k) for k, v in figures.items())
        out = "" if one.holds(row["published"]) else " (**not**)"
        yield _cells(
            f"`{row['id']}`",
            _figure(row, "published"),
            _figure(row, "predicted"),
            f"{low} to {high}",
            value,
            f"{100 * (one.value / row['published'] - 1.0):+.0f}%",
            f"{least} to {most}{out}",
        )
    yield from _missing(rows)
    yield "\n| left open by a source | it may be |\n| --- | --- |"
    for validation in validations():
        for condition in validation.conditions:
            yield _cells(condition.name, "; ".join(condition.choices))


def _missing(rows: Sequence[tuple[Row, Given]]) -> Iterator[str]:
    """What stays outside its interval given the others: the farthest first, and why."""
    ends = [(row, row["published"], *one.interval) for row, one in rows]
    outside = [(max(low / value, value / high), row) for row, value, low, high in ends]
    outside = sorted((one for one in outside if one[0] > 1.0), key=lambda one: -one[0])
    if outside:
        yield "\nMissing physics, in order of evidence: what no draw explains, given the others.\n"
        yield "| result | outside its interval by | what is known of it |\n| --- | --: | --- |"
    for factor, row in outside:
        known = row["note"].partition(". ")[0].rstrip(".")
        yield _cells(f"`{row['id']}`", f"×{factor:.2f}", known or "nothing")


def _in_advance(rows: Sequence[Row]) -> Iterator[str]:
    yield "## Predicted in advance\n"
    yield (
        "Only the points of these curves in the tables above were published; the curves are "
        "here to be compared with measurements.\n"
    )
    yield f"![Throughput by the number of clients]({PICTURES}/{IN_ADVANCE})\n"
    yield "| result | what | predicted | limit |"
    yield "| --- | --- | --: | --- |"
    for row in rows:
        limit = row["note"].removeprefix("Limited by ").rstrip(".")
        yield _cells(f"`{row['id']}`", row["about"], _figure(row, "predicted"), limit)
    yield ""


def _input_rows(rows: Sequence[Row]) -> Iterator[str]:
    yield "## What the predictions rest on\n"
    yield "Machines are described by data sheets, and by measured tables of single facts:\n"
    yield "| machine | measured facts come from | calibrated on | rows |"
    yield "| --- | --- | --- | --: |"
    machines = {machine["name"]: machine for row in rows for machine in row["machines"]}
    for name, machine in machines.items():
        count = sum(name in [machine["name"] for machine in row["machines"]] for row in rows)
        on = ", ".join(machine["calibrated_on"]) or "nothing"
        source = machine["source"] or "none: an ideal machine for an upper bound, as in its source"
        yield _cells(f"`{name}`", source, on, str(count))
    yield ""
    by_results: dict[str, list[str]] = {}
    for row in rows:
        if row["calibrated_on"]:
            by_results.setdefault(", ".join(row["calibrated_on"]), []).append(f"`{row['id']}`")
    for results, ids in by_results.items():
        yield f"A parameter of {', '.join(ids)} comes from `{results}`.\n"
    yield "No other row has a parameter from a published result.\n"


def _by_success(
    numbers: Sequence[Row], words: Sequence[Row]
) -> Iterator[tuple[str, Sequence[Row]]]:
    def of(well: int) -> list[Row]:
        return [row for row in numbers if _well(row["relative_error"]) == well]

    held = [[row for row in words if row["holds"] is which] for which in (True, False)]
    yield f"Further off than {100 * FAIR_MAX:.0f}%, or not so", [*of(0), *held[1]]
    yield f"Within {100 * FAIR_MAX:.0f}%", of(1)
    yield f"Within {100 * CLOSE_MAX:.0f}%, or as published", [*of(2), *held[0]]


def _well(error: float) -> int:
    """2: within a tenth, 1: within a quarter, 0: further off."""
    return int(abs(error) <= CLOSE_MAX) + int(abs(error) <= FAIR_MAX)


def _machines(row: Row) -> str:
    return ", ".join(f"`{machine['name']}`" for machine in row["machines"])


def _unit(row: Row) -> str | None:
    return {"B/s": "B/s", "transactions/s": "/s"}.get(row["unit"])


def _figure(row: Row, which: str) -> str:
    value, unit = float(row[which]), _unit(row)
    if unit is None:
        return f"{value:.3g}"
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _said_once(note: str, id_: str, said: dict[str, str]) -> str:
    """The note, in which long sentences that a row above has (``said``: by which) lead there."""
    kept: list[str] = []
    for sentence in re.split(r"(?<=[.;]) (?=[A-Z0-9])", note):
        first = said.setdefault(sentence, id_)
        if first == id_ or len(sentence) < 100:
            kept.append(sentence)
        elif not kept or kept[-1] != f"See {first}.":
            kept.append(f"See {first}.")
    return " ".join(kept)
