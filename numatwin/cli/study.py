"""``numatwin study``: runs, shows and reports studies that a file describes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..inputs import InputError, check_folder, check_writable
from .failures import keeping
from .figures import curve_of, runs_table, written_figure, written_value
from .options import Jobs, Json, argument, flag, grouped, option
from .output import (
    Part,
    below,
    facts,
    number,
    present,
    print_json,
    progress_bar,
    show,
    table,
    whole_table,
)

if TYPE_CHECKING:
    from ..sim.studies.regret import UnderDoubt
    from ..sim.studies.results import Results
    from ..sim.studies.run_study import Progressed
    from ..sim.studies.study import Study

REPORT_FILE = "report.html"
BEST_SHOWN, POINTS_SHOWN = 5, 20
SAMPLES = ("latin_hypercube", "sobol", "table")  # no curves: each point has values of its own
File = Annotated[Path, argument("FILE", "A study file (.yaml).")]
Out = Annotated[Path | None, option("DIR", "The folder of its rows; by default out/study-NAME.")]

Regret = Annotated[
    bool,
    flag(
        "--regret",
        "Also predict the best runs with all that is uncertain, and sort them by expected regret.",
    ),
]

Exact = Annotated[
    bool, flag("--exact", "Leave out 90% intervals, and how sure it is which run is best.")
]


@dataclass(frozen=True)
class Running:
    """Which points are run, and on what."""

    jobs: Jobs = None
    scheduler: Annotated[
        str | None,
        option("ADDRESS", "A dask scheduler whose workers run it, such as tcp://10.0.0.1:8786."),
    ] = None
    limit: Annotated[int | None, option("N", "Run at most N more points.", min=1)] = None
    restart: Annotated[
        bool, flag("--restart", "Remove all rows in the folder, and run all again.")
    ] = False
    retry: Annotated[bool, flag("--retry", "Run points that failed once more.")] = False


@grouped
def run_study_file(
    file: File,
    running: Running = Running(),
    regret: Regret = False,
    exact: Exact = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Run what is left of a study; finished runs are kept."""
    from ..sim.studies.results import load_results
    from ..sim.studies.run_study import run_study
    from ..sim.studies.study import load_study

    study = load_study(file)
    folder = out or study.default_folder
    check_folder(folder)
    with keeping(), progress_bar("simulating") as progress:
        done = run_study(study, folder, progress=progress, **asdict(running))
    results = load_results(study, folder)
    doubt = _doubt(results, regret, exact)
    present(
        json,
        lambda: (
            _status(study, folder, done)
            | {"best": _best(results, doubt), "unsettled": results.unsettled_points}
            | {"least_regret": [*map(asdict, doubt.choices)], "measure": doubt.measure}
            | {"holds": doubt.holds}
        ),
        chain(
            _status_parts(study, folder, done),
            _best_parts(results, doubt),
            _choice_parts(doubt, regret),
        ),
    )
    _warn_of_failures(results, done)


def show_study(
    file: File,
    point: Annotated[
        int | None, option("N", "Print the scenario of this point, as a file for 'run'.", min=0)
    ] = None,
    json: Json = False,
) -> None:
    """Show a study: its factors, its design, what is asked of it."""
    from ..sim.studies.study import load_study

    study = load_study(file)
    design = study.design
    if point is not None:
        check_point(study, point)
        _show_point(study, point, json)
        return
    plain = {
        "study": study.name,
        "title": study.title,
        "points": design.count,
        "design": design.kind,
        "factors": study.identity["factors"],
        "metrics": list(study.runs.metrics.patterns),
        "constraints": [one.text for one in study.constraints],
        "objective": study.objective.text if study.objective else None,
    }
    present(json, lambda: plain, _parts(study))


def check_point(study: Study, point: int) -> None:
    """Raises InputError where a study has no such point."""
    if point >= study.design.count:
        expected = f"0 to {study.design.count - 1}"
        raise InputError("no such point", study.file, token=str(point), expected=expected)


def _parts(study: Study) -> Iterator[Part]:
    design = study.design
    yield facts(
        [
            ("Study", study.title),
            ("Points", f"{design.count:,} ({design.kind.replace('_', ' ')})"),
            ("Metrics", ", ".join(study.runs.metrics.patterns)),
            ("Constraints", ", ".join(one.text for one in study.constraints) or None),
            ("Objective", study.objective.text if study.objective else None),
            ("Rows", str(study.default_folder)),
        ]
    )
    yield ""
    rows = []
    for factor in study.factors:
        values = [written_value(value, factor.unit) for value in factor.levels.values]
        text = ", ".join(values if len(values) <= 8 else [*values[:4], "…", *values[-2:]])
        drawn = factor.distribution.kind if factor.distribution is not None else "listed"
        rows.append([factor.path, drawn, text])
    yield whole_table(["factor", "values", "such as"], rows, left=3)


def _show_point(study: Study, point: int, json: bool) -> None:
    import yaml

    values = study.design.of(point)
    settings, policy = study.runs.settings(point, values)
    scenario = study.runs.base.load(settings, policy)
    if json:
        command = study.runs.command(point, values)
        print_json({"point": point, "command": command, "settings": dict(scenario.settings)})
        return
    print(f"# Point {point} of study {study.name}: {study.runs.command(point, values)}")
    print(yaml.safe_dump(dict(scenario.settings), sort_keys=False, allow_unicode=True), end="")


def study_status(file: File, out: Out = None, json: Json = False) -> None:
    """Show the progress of a study."""
    from ..sim.studies.run_study import progressed
    from ..sim.studies.store import Store
    from ..sim.studies.study import load_study

    study = load_study(file)
    if out is not None and Store(out).identity() is None:
        raise InputError(
            "no rows of a study", str(out), expected="the folder of '--out' in 'numatwin study run'"
        )
    folder = out or study.default_folder
    done = progressed(study, folder)
    present(json, lambda: _status(study, folder, done), _status_parts(study, folder, done))


def study_report(
    file: File,
    out: Out = None,
    page: Annotated[Path | None, option("FILE", "The page; by default report.html there.")] = None,
    exact: Exact = False,
) -> None:
    """Write a page of a study that opens offline in any browser."""
    from ..reports.study_page import write_study_report
    from ..sim.studies.results import load_results
    from ..sim.studies.study import load_study

    study = load_study(file)
    folder = out or study.default_folder
    results = load_results(study, folder)
    target = page or folder / REPORT_FILE
    if page is not None or folder.exists():
        check_writable(target)
    doubt = _doubt(results, exact=exact) if results.rows else None
    show([str(write_study_report(results, target, doubt))])


def _status(study: Study, folder: Path, done: Progressed) -> dict[str, Any]:
    named = {"study": study.name, "out": str(folder), "complete": done.complete}
    return named | asdict(done)


def _status_parts(study: Study, folder: Path, done: Progressed) -> Iterator[Part]:
    left = done.points - done.done
    speed = f", {number(done.new / done.wall_s)} a second" if done.new and done.wall_s else ""
    points = f"{done.done:,} of {done.points:,} done" + (f", {left:,} left" if left else "")
    yield facts(
        [
            ("Study", study.title),
            ("Points", points),
            ("Failed", f"{done.failed:,}" if done.failed else None),
            ("This time", f"{done.new:,} in {done.wall_s:.3g} s{speed}" if done.new else None),
            ("Rows", str(folder)),
        ]
    )


def _best(results: Results, doubt: UnderDoubt) -> list[dict[str, Any]]:
    if (objective := results.objective) is None:
        return []
    return [
        {"point": row["point"], "objective": float(objective[at])}
        | {"interval": doubt.intervals.get(int(row["point"]))}
        | {"metrics": {name: row.get(name) for name in results.metrics}}
        | results.verdict(at)
        for at, row in ((at, results.rows[at]) for at in results.best(BEST_SHOWN))
    ]


def _best_parts(results: Results, doubt: UnderDoubt) -> Iterator[Part]:
    study, best = results.study, results.best(BEST_SHOWN)
    if best:
        yield f"\n{study.objective.text if study.objective else ''}:"
        yield runs_table(results, best, doubt=doubt)
    elif study.constraints and len(results.table):
        held = int(results.feasible.sum())
        yield f"\n{held:,} of {len(results.table):,} runs hold all constraints."
    yield from below(results.notes)
    metric = results.throughput
    if study.objective or metric is None:
        return
    yield ""
    if study.design.kind in SAMPLES:
        yield whole_table(["figure", "least", "median", "most"], _ranges(results))
        return
    # The first points, with their throughputs and bounds.
    rates = [name for name in results.numeric if name.startswith("throughput.")]
    count, figures = len(results.rows), list(dict.fromkeys([*rates, *results.asked]))
    yield runs_table(results, range(min(count, POINTS_SHOWN)), figures, doubt=doubt)
    if count > POINTS_SHOWN:
        yield f"… and {count - POINTS_SHOWN:,} more: 'numatwin study report' shows all"
    yield from curve_of(study.design, results.rows, metric)


def _doubt(results: Results, regret: bool = False, exact: bool = False) -> UnderDoubt:
    from ..sim.studies.regret import CANDIDATES, UnderDoubt, under_doubt

    if regret:
        if results.study.objective is None:
            raise InputError("--regret", results.study.file, expected="a study with an objective")
        return under_doubt(results, CANDIDATES, quick=False)
    return UnderDoubt() if exact else under_doubt(results)


def _choice_parts(doubt: UnderDoubt, regret: bool) -> Iterator[Part]:
    from ..reports.decisions import best_texts

    if regret and doubt.choices:
        yield "\nThe least expected regret first:"
        rows = [
            [str(one.point), f"{one.probability:.0%}", f"{one.regret:.1%}"] for one in doubt.choices
        ]
        yield table(("point", "is the best with", "expected regret"), rows)
    yield from below([" ".join(texts)] if (texts := best_texts(doubt)) else [])


def _ranges(results: Results) -> list[list[str]]:
    """Of each figure that is a number: the least, the median, the most of all runs."""
    import numpy as np

    found = []
    for name in results.numeric:
        values = results.column(name)
        ends = np.quantile(values[np.isfinite(values)], (0.0, 0.5, 1.0)).tolist()
        found.append([name, *(written_figure(name, value) for value in ends)])
    return found


def _warn_of_failures(results: Results, done: Progressed) -> None:
    if not done.failed:
        return
    first = next(row for row in results.rows if "error" in row)
    print(
        f"numatwin: {done.failed:,} of {done.done:,} runs failed, such as: {first['error']} "
        f"({first['replay']})",
        file=sys.stderr,
    )
