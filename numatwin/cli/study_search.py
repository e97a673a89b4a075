"""``numatwin study search``: the best point of a study in few runs, checked on the event plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .failures import keeping
from .figures import factor_names, factor_values, ratio, written_figure
from .long_work import announce_points, announce_run
from .options import Jobs, Json
from .output import console, print_json, print_notes, print_whole, progress_bar, table
from .study import File, Out

if TYPE_CHECKING:
    from ..sim.run.scenario import Scenario
    from ..sim.studies.results import Results
    from ..sim.studies.search import Found
    from ..sim.studies.study import Study

SHOWN = 3


def study_search(
    file: File,
    runs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Make at most N runs; by default 200, or half of the grid.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the proposals.")] = 0,
    verify: Annotated[
        bool,
        typer.Option(help="Run the point that was found on the event plane too."),
    ] = True,
    jobs: Jobs = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Remove the rows of an earlier search first.")
    ] = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Find the best point under the constraints in fewer runs than the grid."""
    from pathlib import Path

    from ..inputs import check_folder
    from ..sim.studies import search as searching
    from ..sim.studies.study import load_study

    study = load_study(file)
    folder = out or Path("out") / f"search-{study.name}"
    check_folder(folder)
    left = searching.runs_left(study, folder, runs, restart)
    if left:
        announce_points(study.runs, study.design, left, jobs, "at most")
    with keeping(), progress_bar("searching") as progress:
        found = searching.search(
            study, folder, runs_max=runs, seed=seed, jobs=jobs, restart=restart, progress=progress
        )
    with keeping(), progress_bar("verifying") as progress:
        checked = (
            list(searching.verify(study, found, folder, jobs, progress, _announce))
            if verify
            else []
        )
    if json:
        print_json(
            {
                "study": study.name,
                "out": str(folder),
                "runs": len(found.results.table),
                "new": found.new,
                "grid": found.grid,
                "stopped": found.stopped,
                "best": [_row(found.results, at) for at in found.best[:SHOWN]],
                "verified": [_row(results, 0) for _, results in checked],
            }
        )
        return
    _print(study, found, checked)


def _announce(scenario: Scenario) -> None:
    announce_run(scenario, "--no-verify leaves this run on the event plane out")


def _row(results: Results, at: int) -> dict[str, Any]:
    study, row = results.study, results.rows[at]
    known = results.objective
    values = tuple(row.get(path) for path in study.runs.paths)
    return {
        "run": row["point"],
        "settings": {path: row.get(path) for path in study.runs.paths},
        "objective": None if known is None or known[at] != known[at] else float(known[at]),
        "feasible": bool(results.feasible[at]),
        "settled": at not in results.unsettled,
        "slack": {
            text: None if slack[at] != slack[at] else float(slack[at])
            for text, slack in results.slacks.items()
        },
        "metrics": {name: row.get(name) for name in results.metrics},
        "error": row.get("error"),
        "command": study.runs.command(row["point"], values),
    }


def _print(study: Study, found: Found, checked: list[tuple[int, Results]]) -> None:
    to = console()
    made = len(found.results.table)
    to.print(f"{made:,} runs, of a grid of {found.grid:,}: {found.stopped}.", soft_wrap=True)
    assert study.objective is not None
    if not found.best:
        to.print("\nNo run holds all constraints.")
        return
    asked = found.results.asked
    to.print(f"\n{study.objective.text}:")
    rows = []
    for at in found.best[:SHOWN]:
        row = found.results.rows[at]
        values = factor_values(study.factors, row)
        figures = {n: written_figure(n, row.get(n)) for n in asked} | ratio(found.results, at)
        rows.append([str(row["point"]), *values, *figures.values()])
    columns = ["run", *factor_names(study.factors), *figures]
    print_whole(to, table(columns, rows, left=1 + len(study.factors)))
    print_notes(to, found.results.notes)
    for at, results in checked:
        _print_checked(found.results.rows[at], results, asked)
    best = next((at for at, results in checked if results.feasible[0]), found.best[0])
    row = found.results.rows[best]
    values_of = tuple(row.get(path) for path in study.runs.paths)
    if not checked or any(results.feasible[0] for _, results in checked):
        to.print(f"\n{study.runs.command(row['point'], values_of)}", soft_wrap=True)


def _print_checked(predicted: dict[str, Any], results: Results, asked: list[str]) -> None:
    from ..sim.studies.evaluate import UNSETTLED

    to, row = console(), results.rows[0]
    if row.get("error"):
        to.print(f"\nRun {row['point']} on the event plane: {row['error']}", soft_wrap=True)
        return
    verdict = "holds all constraints" if results.feasible[0] else "breaks a constraint"
    if not results.study.constraints:
        verdict = "as found"
    to.print(f"\nRun {row['point']} on the event plane: {verdict}.", soft_wrap=True)
    for name in asked:
        text = f"  {name}: {written_figure(name, row.get(name))}"
        if row.get(f"{name}.low") is not None:
            low, high = (written_figure(name, row[f"{name}.{end}"]) for end in ("low", "high"))
            text += f" [{low}, {high}]"
        if name in predicted and row.get(name) != predicted[name]:
            text += f", found as {written_figure(name, predicted[name])}"
        to.print(text, soft_wrap=True)
    for constraint in results.study.constraints:
        slack = float(results.slacks[constraint.text][0])
        if slack == slack:
            to.print(f"  {constraint.margin(slack)}", soft_wrap=True)
    if UNSETTLED in row:
        to.print(f"  Note: {row[UNSETTLED]}", soft_wrap=True)
