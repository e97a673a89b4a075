"""``numatwin study``: runs, shows and reports studies that a file describes."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .failures import keeping
from .figures import (
    curve_of,
    factor_names,
    factor_values,
    ratio,
    written_figure,
    written_value,
)
from .long_work import announce_points
from .options import Jobs, Json
from .output import (
    console,
    number,
    print_facts,
    print_json,
    print_notes,
    print_whole,
    progress_bar,
    table,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ..sim.studies.regret import Choice
    from ..sim.studies.results import Results
    from ..sim.studies.run_study import Progressed
    from ..sim.studies.study import Study

REPORT_FILE = "report.html"
BEST_SHOWN, POINTS_SHOWN = 5, 20
SAMPLES = ("latin_hypercube", "sobol", "table")  # no curves: each point has values of its own
File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A study file (.yaml).", show_default=False)
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The folder of its rows; by default out/study-NAME.",
        show_default=False,
    ),
]


def run_study_file(
    file: File,
    jobs: Jobs = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A dask scheduler whose workers run it, such as tcp://10.0.0.1:8786.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Run at most N more points."),
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Remove all rows in the folder, and run all again.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Run points that failed once more.")
    ] = False,
    regret: Annotated[
        bool,
        typer.Option(
            "--regret",
            help="Also predict the best runs with all that is uncertain, and sort them by expected "
            "regret.",
        ),
    ] = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Run what is left of a study; finished runs are kept."""
    from ..inputs import check_folder
    from ..sim.studies.results import load_results
    from ..sim.studies.run_study import progressed, run_study
    from ..sim.studies.study import load_study

    study = load_study(file)
    folder = out or study.default_folder
    check_folder(folder)
    points = study.design.count
    left = min(points if restart else points - progressed(study, folder).done, limit or points)
    if left and scheduler is None:  # nobody knows how many workers a scheduler has
        announce_points(study.runs, study.design, left, jobs)
    with keeping(), progress_bar("simulating") as progress:
        done = run_study(
            study,
            folder,
            jobs=jobs,
            scheduler=scheduler,
            limit=limit,
            restart=restart,
            retry=retry,
            progress=progress,
        )
    results = load_results(study, folder)
    if json:
        found = {"best": _best(results), "unsettled": results.unsettled_points}
        if regret:
            found["least_regret"] = [asdict(one) for one in _choices(results)]
        print_json(_status(study, folder, done) | found)
    else:
        _print_status(study, folder, done)
        _print_best(results)
        if regret:
            _print_choices(_choices(results))
    _warn_of_failures(results, done)


def show_study(
    file: File,
    point: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Print the scenario of this point, as a file for 'run'."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show a study: its factors, its design, what is asked of it."""
    from ..inputs import InputError
    from ..sim.studies.study import load_study

    study = load_study(file)
    design = study.design
    if point is not None:
        if point >= design.count:
            expected = f"0 to {design.count - 1}"
            raise InputError("no such point", study.file, token=str(point), expected=expected)
        _show_point(study, point, json)
        return
    if json:
        print_json(
            {
                "study": study.name,
                "title": study.title,
                "points": design.count,
                "design": design.kind,
                "factors": study.identity["factors"],
                "metrics": list(study.runs.metrics.patterns),
                "constraints": [one.text for one in study.constraints],
                "objective": study.objective.text if study.objective else None,
            }
        )
        return
    to = console()
    print_facts(
        to,
        [
            ("Study", study.title),
            ("Points", f"{design.count:,} ({design.kind.replace('_', ' ')})"),
            ("Metrics", ", ".join(study.runs.metrics.patterns)),
            ("Constraints", ", ".join(one.text for one in study.constraints) or None),
            ("Objective", study.objective.text if study.objective else None),
            ("Rows", str(study.default_folder)),
        ],
    )
    to.print()
    rows = []
    for factor in study.factors:
        values = [written_value(value, factor.unit) for value in factor.levels.values]
        text = ", ".join(values if len(values) <= 8 else [*values[:4], "…", *values[-2:]])
        drawn = factor.distribution.kind if factor.distribution is not None else "listed"
        rows.append([factor.path, drawn, text])
    print_whole(to, table(["factor", "values", "such as"], rows, left=3))


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
    from ..inputs import InputError
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
    if json:
        print_json(_status(study, folder, done))
    else:
        _print_status(study, folder, done)


def study_report(
    file: File,
    out: Out = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The page; by default report.html there.", show_default=False
        ),
    ] = None,
) -> None:
    """Write a page of a study that opens offline in any browser."""
    from ..inputs.atomic import check_writable
    from ..reports.study_page import write_study_report
    from ..sim.studies.results import load_results
    from ..sim.studies.study import load_study

    study = load_study(file)
    folder = out or study.default_folder
    results = load_results(study, folder)
    target = page or folder / REPORT_FILE
    if page is not None or folder.exists():
        check_writable(target)
    console().print(str(write_study_report(results, target)), soft_wrap=True)


def _status(study: Study, folder: Path, done: Progressed) -> dict[str, Any]:
    return {
        "study": study.name,
        "out": str(folder),
        "points": done.points,
        "done": done.done,
        "failed": done.failed,
        "new": done.new,
        "complete": done.complete,
        "wall_s": done.wall_s,
    }


def _print_status(study: Study, folder: Path, done: Progressed) -> None:
    to = console()
    left = done.points - done.done
    speed = f", {number(done.new / done.wall_s)} a second" if done.new and done.wall_s else ""
    facts = [
        ("Study", study.title),
        ("Points", f"{done.done:,} of {done.points:,} done" + (f", {left:,} left" if left else "")),
        ("Failed", f"{done.failed:,}" if done.failed else None),
        ("This time", f"{done.new:,} in {done.wall_s:.3g} s{speed}" if done.new else None),
        ("Rows", str(folder)),
    ]
    print_facts(to, facts)


def _best(results: Results) -> list[dict[str, Any]]:
    objective = results.objective
    found = []
    for at in results.best(BEST_SHOWN):
        row = results.rows[at]
        one = (
            {"point": row["point"], "objective": float(objective[at])}
            if objective is not None
            else {}
        )
        one["settings"] = {path: row.get(path) for path in results.study.runs.paths}
        one["metrics"] = {name: row.get(name) for name in results.metrics}
        one["slack"] = {text: float(slack[at]) for text, slack in results.slacks.items()}
        one["settled"] = at not in results.unsettled
        found.append(one)
    return found


def _print_best(results: Results) -> None:
    study, to = results.study, console()
    best = results.best(BEST_SHOWN)
    asked = results.asked
    if best:
        to.print(f"\n{study.objective.text if study.objective else ''}:")
    elif study.constraints and len(results.table):
        held = int(results.feasible.sum())
        to.print(f"\n{held:,} of {len(results.table):,} runs hold all constraints.")
    rows = []
    for at in best:
        row = results.rows[at]
        line = factor_values(study.factors, row)
        figures = {n: written_figure(n, row.get(n)) for n in asked} | ratio(results, at)
        rows.append([str(row["point"]), *line, *figures.values()])
    if rows:
        columns = ["point", *factor_names(study.factors), *figures]
        print_whole(to, table(columns, rows, left=1 + len(study.factors)))
    print_notes(to, results.notes)
    metric = results.throughput
    if study.objective or metric is None:
        return
    if study.design.kind in SAMPLES:
        to.print()
        print_whole(to, table(["figure", "least", "median", "most"], _ranges(results)))
    else:
        _print_points(results, to)
        for drawn in curve_of(study.design, results.rows, metric):
            to.print(drawn, soft_wrap=True)


def _choices(results: Results) -> list[Choice]:
    from ..inputs import InputError
    from ..sim.studies.regret import least_regret

    if results.study.objective is None:
        raise InputError("--regret", results.study.file, expected="a study with an objective")
    return least_regret(results)


def _print_choices(choices: list[Choice]) -> None:
    if not choices:
        return
    to, best = console(), choices[0]
    to.print(f"\nUnder doubt, point {best.point} has the least expected regret:")
    rows = ((str(one.point), f"{one.probability:.0%}", f"{one.regret:.1%}") for one in choices)
    to.print(table(("point", "is the best with", "expected regret"), rows, left=1))


def _print_points(results: Results, to: Console) -> None:
    """The first points of a study without an objective, with their throughputs and bounds."""
    factors, rows = results.study.factors, results.rows
    rates = [name for name in results.numeric if name.startswith("throughput.")]
    figures = list(dict.fromkeys([*rates, *results.asked]))
    cells = [
        [str(row["point"]), *factor_values(factors, row)]
        + [written_figure(name, row.get(name)) for name in figures]
        for row in rows[:POINTS_SHOWN]
    ]
    to.print()
    columns = ["point", *factor_names(factors), *figures]
    print_whole(to, table(columns, cells, left=1 + len(factors)))
    if len(rows) > POINTS_SHOWN:
        to.print(f"… and {len(rows) - POINTS_SHOWN:,} more: 'numatwin study report' shows all")


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
