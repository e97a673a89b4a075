"""Measured decisions against predictions: ratio, interval, verdict, and all together.

The page on decisions: predicted against measured, the reasons of misses, the form of a case.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from ..inputs.progress import Progress, silent
from ..sim.run.decision import decision
from ..sim.run.model_error import RATIO, class_of
from ..sim.run.record import Record
from ..sim.run.runner import run_scenario
from ..sim.run.uncertainty import LEVEL, bounds, shift_of, with_uncertainty
from .decision_cases import Case, CaseFile
from .markdown import page_text, table_rows

Row = dict[str, Any]
RIGHT, WRONG, UNDECIDED, NOT_MODELLED, INPUT = (
    "right",
    "wrong",
    "cannot tell",
    "not modelled here",
    "input",
)


def scored(
    files: Sequence[CaseFile], plane: str | None = None, progress: Progress = silent
) -> list[Row]:
    """A row for each alternative of each case but its baseline; see ``_row``."""
    rows: list[Row] = []
    for k, file in enumerate(files):
        rows += _rows(file, plane)
        progress((k + 1) / len(files))
    return rows


def _rows(file: CaseFile, plane: str | None) -> list[Row]:
    case = file.case
    others = [name for name in case.alternatives if name != case.first]
    if case.scenario is None:
        return [_measured(case, name) | _nothing() for name in others]
    base = _record(file, case.first, plane)
    return [_row(case, name, base, _record(file, name, plane)) for name in others]


def _record(file: CaseFile, name: str, plane: str | None) -> Record:
    further = [] if plane is None else [f"plane={plane}"]
    scenario = file.scenario(name, further)
    return with_uncertainty(run_scenario(scenario), scenario)


def _measured(case: Case, name: str) -> Row:
    one = case.alternatives[name]
    return {
        "id": case.name,
        "title": case.title,
        "alternative": name,
        "baseline": case.first,
        "measured_ratio": list(case.ratio(name)),
        "measured": None if one.measured is None else list(one.measured),
        "unit": case.unit,
        "source": case.source,
        "publication": case.publication,
        "typical": list(case.typical),
        "note": " ".join(text for text in (one.note, case.note) if text),
        "not_modelled": case.not_modelled,
    }


def _nothing() -> Row:
    fields = "predicted_ratio interval facts_interval relative_error covered predicted"
    empty: Row = dict.fromkeys([*fields.split(), "level_error", "plane"])
    return {**empty, "verdict": NOT_MODELLED, "warnings": []}


def _row(case: Case, name: str, base: Record, record: Record) -> Row:
    operation = case.operation or next(iter(base.throughput))
    measured, row = case.ratio(name), _measured(case, name)
    found = decision(base, record, operation, case.publication)
    ratio = record.throughput[operation] / base.throughput[operation]
    ends = "interval", "facts_interval"
    (low, high), facts = ([ratio, ratio] if found is None else found[end] for end in ends)
    per = case.per_operation
    level = None if per is None else record.throughput[operation] * per
    scored_level = row["measured"] if name not in case.inputs else None
    is_input = {name, case.first} <= set(case.inputs)
    return row | {
        "of": asdict(class_of(record, operation, RATIO)),
        "predicted_ratio": ratio,
        "level_facts": bounds(shift_of(record, ("throughput", operation))),
        "interval": [low, high],
        "facts_interval": facts,
        "relative_error": error(ratio, measured),
        "covered": low <= measured[1] and high >= measured[0],
        "predicted": level,
        "level_error": None if level is None or not scored_level else error(level, scored_level),
        "plane": record.plane,
        "verdict": INPUT if is_input else verdict(measured, (low, high), case.equal_within),
        "warnings": [text for text in record.warnings if text.startswith("memory:")],
    }


def error(predicted: float, measured: Sequence[float]) -> float:
    """Relative to the nearest end of what was measured; 0 within it."""
    nearest = min(max(predicted, measured[0]), measured[1])
    return predicted / nearest - 1.0


def verdict(measured: Sequence[float], predicted: Sequence[float], equal: float) -> str:
    """Whether the interval of the predicted ratio has the measured decision: faster, slower, or no
    difference (within ``equal``). "cannot tell": it has this and another one.
    """
    bounds = 1.0 / (1.0 + equal), 1.0 + equal

    def decisions(ends: Sequence[float]) -> set[str]:
        found = {"slower"} if ends[0] < bounds[0] else set()
        found |= {"faster"} if ends[1] > bounds[1] else set()
        return found | ({"equal"} if ends[0] <= bounds[1] and ends[1] >= bounds[0] else set())

    seen, said = decisions(measured), decisions(predicted)
    if said <= seen:
        return RIGHT
    return UNDECIDED if said & seen else WRONG


def summary(rows: Sequence[Mapping[str, Any]]) -> Row:
    """Counts of verdicts, the median error of ratios, how many intervals hold what was measured."""
    judged = [row for row in rows if row["verdict"] in (RIGHT, WRONG, UNDECIDED)]
    errors = [abs(row["relative_error"]) for row in judged]
    return {
        "decisions": len(judged),
        **{
            name.replace(" ", "_"): sum(row["verdict"] == name for row in rows)
            for name in (RIGHT, WRONG, UNDECIDED, NOT_MODELLED, INPUT)
        },
        "median_error": median(errors) if errors else None,
        "coverage": sum(row["covered"] for row in judged) / len(judged) if judged else None,
        "level": LEVEL,
    }


MISSED = 0.15  # an error of a ratio from which on the page says why


def summary_text(found: Row) -> str:
    """All cases in words."""
    if not found["decisions"]:
        return "No decision is predicted."
    return (
        f"Of {found['decisions']} decisions {found['right']} are right, "
        f"{found['wrong']} wrong, {found['cannot_tell']} cannot be told. "
        f"The median error of ratios is\n{found['median_error']:.1%}; {found['coverage']:.0%} "
        f"of the {found['level']:.0%} intervals hold what was measured."
    )


def page_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """The whole page."""
    cases = {row["id"]: row for row in rows}.values()
    return page_text(
        "decisions",
        summary=f"{summary_text(summary(rows))}\n\n",
        rows=table_rows(_cells(row) for row in rows if row["verdict"] != NOT_MODELLED),
        cases="\n".join(map(_of_case, cases)),
        why="\n".join(_misses(rows)),
    )


def _cells(row: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"`{row['id']}`", row["alternative"])
    yield from map(ratio_text, (row["measured_ratio"], row["predicted_ratio"], row["interval"]))
    yield f"{row['relative_error']:+.1%}"
    yield "" if row["level_error"] is None else f"{row['level_error']:+.1%}"
    yield row["verdict"]


def _of_case(row: Mapping[str, Any]) -> str:
    typical = f" Typical: {', '.join(row['typical'])}." if row["typical"] else ""
    return (
        f"- `{row['id']}`: {row['title']} (baseline {row['baseline']}; {row['source']}).{typical}"
    )


def _misses(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
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
