"""Writes the page on published results: published_page.py FILE.md

Good and bad predictions, and why; with its pictures in pictures/ in the same folder.
"""

import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from published_pictures import Bar, bars_svg

from numatwin.inputs.atomic import write_text_atomically
from numatwin.inputs.grouping import by_key
from numatwin.reports.curve_svg import curve_svg
from numatwin.sim.studies.results import Response
from numatwin.validate.markdown import page_text, table_rows
from numatwin.validate.published import (
    NEAR,
    PUBLISHED,
    Given,
    given_others,
    published_rows,
    words_given,
)
from numatwin.validate.systems.registry import validations

Row = Mapping[str, Any]
PICTURES = "pictures"
ERRORS, IN_ADVANCE = "published-errors.svg", "published-in-advance.svg"
# A reader's words for the size of an error.
CLOSE_MAX, FAIR_MAX = 0.1, 0.25


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
    of_curves = ((id_, one.curve) for id_, one in PUBLISHED.items() if one.curve is not None)
    curves = by_key((name, (place, predicted[id_], None, None)) for id_, (name, place) in of_curves)
    advance = Response("clients", "", "transactions per second", curves, 0, log=False)
    return {
        ERRORS: bars_svg(bars, "predicted over published, less 1"),
        IN_ADVANCE: curve_svg(advance, "Transactions by the number of clients", "/s"),
    }


def page(rows: Sequence[Row]) -> str:
    """The page as Markdown."""
    numbers = [row for row in rows if row["relative_error"] is not None]
    words = [row for row in rows if row["holds"] is not None]
    stored = [(row, one) for row in numbers if (one := given_others().get(row["id"])) is not None]
    conditions = (one for validation in validations() for one in validation.conditions)
    text = page_text(
        "published",
        summary=_summary(numbers, words),
        numbers=table_rows(map(_of_number, sorted(numbers, key=lambda row: abs(_error(row))))),
        shares=_shares(stored),
        given=table_rows(itertools.starmap(_given, stored)),
        missing=table_rows(_missing(stored)),
        open=table_rows((one.name, "; ".join(one.choices)) for one in conditions),
        words=table_rows(map(_of_words, sorted(words, key=lambda row: not row["holds"]))),
        why="\n".join(_why(numbers, words)),
        advance=table_rows(_in_advance(row) for row in rows if row["published"] is None),
        machines=table_rows(_of_machines(rows)),
        calibrated="\n".join(_calibrated(rows)),
        blindness="\n".join(one.blindness for one in validations() if one.blindness),
    )
    return text.rstrip("\n") + "\n"


def _summary(numbers: Sequence[Row], words: Sequence[Row]) -> str:
    near = [sum(_well(_error(row)) == well for row in numbers) for well in (2, 1, 0)]
    probable = [words_given().get(row["id"], (0.0, 0.0))[1] > 0.5 for row in words]
    return (
        f"Of {len(numbers)} results in numbers {near[0]} are predicted "
        f"within {100 * CLOSE_MAX:.0f}%, {near[1]} more within {100 * FAIR_MAX:.0f}%, "
        f"{near[2]} are further off.\n"
        f"Of {len(words)} in words {sum(row['holds'] for row in words)} are as published, "
        f"{sum(probable)} more probably than not given the other results of their source."
    )


def _of_number(row: Row) -> Iterator[str]:
    yield f"`{row['id']}`"
    yield f"{row['about']}: {row['unit']}" if _unit(row) is None else row["about"]
    yield from (_figure(row, which) for which in ("published", "predicted"))
    yield from (f"{100 * _error(row):+.1f}%", row["plane"], _machines(row))


def _of_words(row: Row) -> Iterator[str]:
    yield from (f"`{row['id']}`", row["about"], row["published"], row["predicted"])
    yield "as published" if row["holds"] else "**not so**"
    for share in words_given().get(row["id"], (None, None)):  # no draws may be stored
        yield "–" if share is None else f"{share:.0%}"
    yield from (row["plane"], _machines(row))


def _why(numbers: Sequence[Row], words: Sequence[Row]) -> Iterator[str]:
    said: dict[str, str] = {}
    for title, chosen in _by_success(numbers, words):
        ids_by_note = by_key((row["note"], f"`{row['id']}`") for row in chosen if row["note"])
        if ids_by_note:
            yield f"### {title}\n"
            for note, ids in ids_by_note.items():
                yield f"- {', '.join(ids)}: {_said_once(note, ids[0], said)}"
            yield ""


def _shares(rows: Sequence[tuple[Row, Given]]) -> str:
    held = [one.holds(row["published"]) for row, one in rows]
    near = [one.near(row["published"]) for row, one in rows]
    before = [one.before[0] <= row["published"] <= one.before[1] for row, one in rows]
    blind = [abs(_error(row)) <= NEAR for row, _ in rows]
    return (
        f"Of {len(rows)} results {sum(blind)} lie within {NEAR:.0%} blind, and {sum(near)} given "
        f"the others; {sum(before)} in their interval before evidence, and {sum(held)} in the one "
        "given the others."
    )


def _given(row: Row, one: Given) -> tuple[str, ...]:
    """Blind, before evidence, given the others."""
    ends = (*one.before, one.value, *one.interval)
    low, high, value, least, most = (_figure({**row, "end": end}, "end") for end in ends)
    out = "" if one.holds(row["published"]) else " (**not**)"
    return (
        f"`{row['id']}`",
        _figure(row, "published"),
        _figure(row, "predicted"),
        f"{low} to {high}",
        value,
        f"{100 * (one.value / row['published'] - 1.0):+.0f}%",
        f"{least} to {most}{out}",
    )


def _missing(rows: Sequence[tuple[Row, Given]]) -> Iterator[tuple[str, ...]]:
    """What stays outside its interval given the others: the farthest first, and why."""
    ends = [(row, row["published"], *one.interval) for row, one in rows]
    outside = [(max(low / value, value / high), row) for row, value, low, high in ends]
    for factor, row in sorted(outside, key=lambda one: -one[0]):
        if factor > 1.0:
            known = row["note"].partition(". ")[0].rstrip(".")
            yield f"`{row['id']}`", f"×{factor:.2f}", known or "nothing"


def _in_advance(row: Row) -> tuple[str, ...]:
    limit = row["note"].removeprefix("Limited by ").rstrip(".")
    return f"`{row['id']}`", row["about"], _figure(row, "predicted"), limit


def _of_machines(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    machines = {machine["name"]: machine for row in rows for machine in row["machines"]}
    for name, machine in machines.items():
        count = sum(name in [machine["name"] for machine in row["machines"]] for row in rows)
        on = ", ".join(machine["calibrated_on"]) or "nothing"
        source = machine["source"] or "none: an ideal machine for an upper bound, as in its source"
        yield f"`{name}`", source, on, str(count)


def _calibrated(rows: Sequence[Row]) -> Iterator[str]:
    calibrated = (row for row in rows if row["calibrated_on"])
    by_results = by_key((", ".join(row["calibrated_on"]), f"`{row['id']}`") for row in calibrated)
    for results, ids in by_results.items():
        yield f"A parameter of {', '.join(ids)} comes from `{results}`.\n"


def _by_success(
    numbers: Sequence[Row], words: Sequence[Row]
) -> Iterator[tuple[str, Sequence[Row]]]:
    def of(well: int) -> list[Row]:
        return [row for row in numbers if _well(_error(row)) == well]

    held = [[row for row in words if row["holds"] is which] for which in (True, False)]
    yield f"Further off than {100 * FAIR_MAX:.0f}%, or not so", [*of(0), *held[1]]
    yield f"Within {100 * FAIR_MAX:.0f}%", of(1)
    yield f"Within {100 * CLOSE_MAX:.0f}%, or as published", [*of(2), *held[0]]


def _well(error: float) -> int:
    """2: within a tenth, 1: within a quarter, 0: further off."""
    return int(abs(error) <= CLOSE_MAX) + int(abs(error) <= FAIR_MAX)


def _error(row: Row) -> float:
    return float(row["relative_error"])


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


if __name__ == "__main__":
    write_page(published_rows(), Path(sys.argv[1]))
