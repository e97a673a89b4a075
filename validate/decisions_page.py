"""The page on decisions: predicted against measured, the reasons of misses, the form of a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .decision_cases import FOLDER
from .decisions_scored import INPUT, NOT_MODELLED, RIGHT, summary

Row = Mapping[str, Any]
MISSED = 0.15  # an error of a ratio from which on the page says why


def page_of(rows: Sequence[Row]) -> str:
    """The whole page."""
    text = (FOLDER / "page.md").read_text(encoding="utf-8")
    return text.replace("@rows@", "\n".join(_body(rows)))


def _body(rows: Sequence[Row]) -> Iterator[str]:
    found = summary(rows)
    if found["decisions"]:
        yield (
            f"Of {found['decisions']} decisions {found['right']} are right, "
            f"{found['wrong']} wrong, {found['cannot_tell']} cannot be told. "
            f"The median error of ratios is\n{found['median_error']:.1%}; {found['coverage']:.0%} "
            f"of the {found['level']:.0%} "
            "intervals hold what was measured."
        )
        yield ""
    yield "| case | alternative | measured | predicted | interval | error | level | verdict |"
    yield "| --- | --- | --: | --: | --: | --: | --: | --- |"
    for row in rows:
        if row["verdict"] != NOT_MODELLED:
            error = f"{row['relative_error']:+.1%}"
            level = "" if row["level_error"] is None else f"{row['level_error']:+.1%}"
            yield (
                f"| `{row['id']}` | {row['alternative']} | {ratio_text(row['measured_ratio'])} | "
                f"{ratio_text(row['predicted_ratio'])} | {ratio_text(row['interval'])} | {error} | "
                f"{level} | {row['verdict']} |"
            )
    yield ""
    yield "## The cases"
    yield ""
    for row in {row["id"]: row for row in rows}.values():
        typical = f" Typical: {', '.join(row['typical'])}." if row["typical"] else ""
        where = f"baseline {row['baseline']}; {row['source']}"
        yield f"- `{row['id']}`: {row['title']} ({where}).{typical}"
    yield ""
    yield "## Why predictions miss"
    yield ""
    for row in rows:
        off = row["relative_error"] is not None and abs(row["relative_error"]) > MISSED
        if row["verdict"] not in (NOT_MODELLED, INPUT) and (off or row["verdict"] != RIGHT):
            yield f"- `{row['id']}`, {row['alternative']}: {row['note'] or 'not explained yet.'}"
    for row in {row["id"]: row for row in rows if row["not_modelled"]}.values():
        yield f"- `{row['id']}`: not modelled here: {row['not_modelled']}."


def ratio_text(value: Any) -> str:
    """A ratio, or the ends of a range."""
    if value is None:
        return "–"
    ends = [value] if isinstance(value, float) else [*dict.fromkeys(f"{v:.3g}" for v in value)]
    return " to ".join(end if isinstance(end, str) else f"{end:.3g}" for end in ends)
