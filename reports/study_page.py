"""The page of a study: pictures, and all runs in parallel coordinates and in a table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from .._version import __version__
from ..inputs import InputError, json_text, write_text_atomically
from ..sim.run.record import unit_of
from ..sim.studies.base import INNER
from ..sim.studies.evaluate import COST, ERROR, REPLAY, UNSETTLED, own_seed
from ..sim.studies.explanation import Explanation, explained_by_rows
from ..sim.studies.levels import is_number
from ..sim.studies.regret import UnderDoubt
from ..sim.studies.results import Results, short
from .decisions import best_texts
from .page import Plot, Plots
from .report import rendered
from .study_charts import (
    heat_map,
    level_text,
    likely_chart,
    pareto_chart,
    response_band,
    tornado,
    waterfall,
)
from .words import count, figure_text, signed_percent

ROWS_MAX = 20_000
RESPONSES_MAX = 6
MACHINES_MAX = 12
LIKELY = "90% intervals, of some runs: of facts, assumptions, chance and the model's error."


@dataclass(frozen=True)
class StudyPage:
    """What the page shows, in its order."""

    title: str
    path: str
    answer: str
    notes: list[str]
    starred: bool
    likely: Plot | None
    tornado: Plot | None
    waterfall: Plot | None
    front: Plot | None
    heat: Plot | None
    responses: list[Plot]
    data: Markup


def write_study_report(results: Results, path: str | Path, doubt: UnderDoubt | None = None) -> Path:
    """Writes the page to ``path``, whole or not at all; raises InputError without rows."""
    return write_text_atomically(path, study_html(results, doubt))


def study_html(results: Results, doubt: UnderDoubt | None = None) -> str:
    """The page as text, with what is known of its ``doubt``; raises InputError without rows."""
    if not results.rows:
        raise InputError("no run to report on", expected="'numatwin study run' before")
    page = _page(results, doubt or UnderDoubt())
    return rendered("study.html", own=("study.js",), page=page, version=__version__)


def _page(results: Results, doubt: UnderDoubt) -> StudyPage:
    plots, study = Plots(), results.study
    metric = results.main
    shown = _shown(results)
    notes = list(results.notes)
    if len(shown) < len(results.rows):
        notes.append(
            f"{len(shown):,} of {len(results.rows):,} runs are on this page, evenly chosen."
        )

    made: dict[str, Any] = {"tornado": None, "waterfall": None, "front": None, "heat": None}
    responses: list[Plot] = []
    made["likely"] = plots.plot(likely_chart(doubt), LIKELY)
    if metric is not None:
        made["tornado"] = plots.plot(
            tornado(results, metric),
            "From the lowest to the highest mean of runs that share a value of the factor.",
        )
        ends = _ends(results, metric)
        found = explained_by_rows(results, *ends, metric) if ends is not None else None
        if ends is not None and found is not None:
            made["waterfall"] = plots.plot(
                waterfall(results, *ends, metric, found),
                f"From the first run to {_end(results, metric)}: each factor's part, averaged over "
                f"all orders in which they may change (Shapley). {_in_words(found, metric)}",
            )
        # Where all cost the same, what they take is left to save.
        varied = len(np.unique(results.column(COST))) > 1
        least = COST if COST in results.numeric and varied else "power_W"
        if least in results.numeric:
            made["front"] = plots.plot(
                pareto_chart(results, least, metric), f"{metric} against {least}."
            )
        made["heat"] = plots.plot(
            heat_map(results, metric), f"Mean {metric} by the two factors that matter most."
        )
        bands = [response_band(results, path, metric) for path in study.runs.paths[:RESPONSES_MAX]]
        caption = "The mean of the runs with each value, and between what 80% of them lie."
        responses = plots.all_of((band, caption) for band in bands)
    return StudyPage(
        title=study.title,
        path=study.file,
        answer=_answer(results, doubt),
        notes=notes,
        starred=bool(results.best()),
        responses=responses,
        data=_data(results, shown, metric),
        **made,
    )


def _end(results: Results, metric: str) -> str:
    """Where the waterfall ends."""
    most = "least" if results.wants_less(metric) else "most"
    return f"the one with the {most} {metric}" if results.study.objective is None else "the best"


def _in_words(found: Explanation, metric: str) -> str:
    """What each factor brings, and what holds the run after each change."""
    unit, words = unit_of(metric), []
    for step in found.path:
        part = found.parts[step.path]
        sign = "+" if part >= 0 else "−"
        share = f" ({signed_percent(part / found.before)})" if found.before else ""
        brings = f"{sign}{figure_text(abs(part), unit)}{share}"
        text = f"{short(step.path)} {step.old} → {step.new}: {brings}"
        words.append(text + (f", {step.words}" if step.then_bound_by is not None else ""))
    first = f"At first bound by: {found.bound_by}. " if found.bound_by else ""
    return " ".join([f"{first}{'; '.join(words)}.", *found.notes])


def _answer(results: Results, doubt: UnderDoubt) -> str:
    study, rows = results.study, results.rows
    failed = sum(ERROR in row for row in rows)
    text = f"{count(len(rows), 'run')} of {study.design.count:,}"
    text += f", of which {failed:,} failed" if failed else ""
    if study.constraints:
        text += f"; {int(results.feasible.sum()):,} hold all constraints"
    best = results.best()
    objective = results.objective
    if best and study.objective is not None and objective is not None:
        row = rows[best[0]]
        values = ", ".join(
            f"{short(f.path)} {level_text(row.get(f.path), f.unit)}" for f in study.factors
        )
        unit = study.objective.unit
        ends = doubt.intervals.get(int(row["point"]), []) if doubt.choices else []
        figure = figure_text(float(objective[best[0]]), unit)
        figure += f" (90%: {' to '.join(figure_text(e, unit) for e in ends)})" if ends else ""
        text += f". To {study.objective.text}: point {row['point']} ({values}), {figure}"
        text += ", of a run that did not settle" if best[0] in results.unsettled else ""
        margins = [
            constraint.margin(float(results.slacks[constraint.text][best[0]]))
            for constraint in study.constraints
        ]
        text += f". There {'; '.join(margins)}" if margins else ""
    return " ".join([*best_texts(doubt), f"{text}."])


def _shown(results: Results) -> list[int]:
    """Positions of the rows on the page: all, or evenly chosen ones with the best and the front."""
    size = len(results.rows)
    if size <= ROWS_MAX:
        return list(range(size))
    chosen = set(range(0, size, -(-size // ROWS_MAX))) | set(results.best(20))
    if results.main is not None and COST in results.numeric:
        chosen |= set(results.front(COST, results.main))
    return sorted(chosen)


def _ends(results: Results, metric: str) -> tuple[int, int] | None:
    """The first run that has the figure, and the best one; without an objective that of the most
    (where less is better, the least). None where that is the same run.
    """
    first, figures = results.first(metric), results.column(metric)
    if first is None:
        return None
    chosen = np.nanargmin(figures) if results.wants_less(metric) else np.nanargmax(figures)
    best = next(iter(results.best()), int(chosen))
    return None if best == first else (first, best)


def _data(results: Results, shown: Sequence[int], metric: str | None) -> Markup:
    """What the page's script reads: columns, and the scenarios that rows are made from."""
    study = results.study
    units = {factor.path: factor.unit for factor in study.factors}
    names = [*study.runs.paths, UNSETTLED, *results.metrics, ERROR]
    names = [name for name in names if name in results.table.column_names]
    columns = []
    for name in names:
        values = [results.rows[k].get(name) for k in shown]
        if name == UNSETTLED:  # the warning itself is a note
            values = [None if value is None else "does not settle" for value in values]
        if all(value is None for value in values):
            continue
        numeric = all(value is None or is_number(value) for value in values)
        kind = "factor" if name in units else "metric"
        columns.append(
            {
                "name": name,
                "short": short(name) if name in units else name,
                "kind": kind,
                "numeric": numeric,
                "unit": units.get(name, unit_of(name)),
                "values": [_short_number(v) if kind == "metric" else v for v in values],
            }
        )
    best = {int(results.points[k]) for k in results.best()}
    data = {
        "points": [int(results.points[k]) for k in shown],
        "holds": [bool(results.feasible[k]) for k in shown],
        "best": sorted(best),
        "colour": metric,
        "columns": columns,
        "scenario": _scenarios(results),
    }
    if study.runs.own_seeds:
        data["seeds"] = [own_seed(int(results.points[k])) for k in shown]
    text = json_text(data, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e"))


def _scenarios(results: Results) -> dict[str, Any]:
    """The base scenario as a file, the machines and workloads that rows put into it."""
    runs = results.study.runs
    base = runs.base.load()
    parts: dict[str, dict[str, Any]] = {part: {} for part in INNER}
    for factor in results.study.factors:
        if factor.path in INNER and len(factor.levels.values) <= MACHINES_MAX:
            for value in factor.levels.values:
                try:
                    own = runs.base.load([f"{factor.path}={value}"])
                except InputError:  # a run of it is a row with its error
                    continue
                parts[factor.path][str(value)] = own.settings[factor.path]
    families = list(base.settings["policies"])
    command = runs.base.command([])
    return {
        "settings": base.settings,
        "parts": parts,
        "family": families[0] if len(families) == 1 else None,
        "command": command,
        "units": {factor.path: factor.unit for factor in results.study.factors},
        "replays": {
            str(row["point"]): row[REPLAY] for row in results.rows[:ROWS_MAX] if REPLAY in row
        },
    }


def _short_number(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
