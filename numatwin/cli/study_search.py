"""``numatwin study search``: the best point of a study in few runs, checked on the event plane."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..inputs import check_folder
from .failures import keeping
from .figures import runs_table, written_figure
from .options import Jobs, Json, flag, option
from .output import Part, below, present, progress_bar
from .study import File, Out

if TYPE_CHECKING:
    from ..sim.studies.results import Results
    from ..sim.studies.search import Found
    from ..sim.studies.study import Study

SHOWN = 3


RunsMax = Annotated[
    int | None, option("N", "Make at most N runs; by default 200, or half of the grid.", min=1)
]


def study_search(
    file: File,
    runs: RunsMax = None,
    seed: Annotated[int, option("N", "Seed of the proposals.", min=0)] = 0,
    verify: Annotated[
        bool, typer.Option(help="Run the point that was found on the event plane too.")
    ] = True,
    jobs: Jobs = None,
    restart: Annotated[
        bool, flag("--restart", "Remove the rows of an earlier search first.")
    ] = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Find the best point under the constraints in fewer runs than the grid."""
    from pathlib import Path

    from ..sim.studies import search as searching
    from ..sim.studies.study import load_study

    study = load_study(file)
    folder = out or Path("out") / f"search-{study.name}"
    check_folder(folder)
    with keeping(), progress_bar("searching") as progress:
        found = searching.search(
            study, folder, runs_max=runs, seed=seed, jobs=jobs, restart=restart, progress=progress
        )
    checked: list[tuple[int, Results]] = []
    with keeping(), progress_bar("verifying") as progress:
        if verify:
            checked += searching.verify(study, found, folder, jobs, progress)
    plain = {"study": study.name, "out": str(folder), **_as_json(found)}
    plain["verified"] = [_row(results, 0) for _, results in checked]
    present(json, lambda: plain, _parts(study, found, checked))


def _as_json(found: "Found") -> dict[str, Any]:
    return {
        "runs": len(found.results.table),
        "new": found.new,
        "grid": found.grid,
        "stopped": found.stopped,
        "best": [_row(found.results, at) for at in found.best[:SHOWN]],
    }


def _row(results: "Results", at: int) -> dict[str, Any]:
    study, row, known = results.study, results.rows[at], results.objective
    return results.verdict(at) | {
        "run": row["point"],
        "objective": None if known is None or known[at] != known[at] else float(known[at]),
        "feasible": bool(results.feasible[at]),
        "metrics": {name: row.get(name) for name in results.metrics},
        "error": row.get("error"),
        "command": study.runs.command(row["point"], [row.get(path) for path in study.runs.paths]),
    }


def _parts(study: "Study", found: "Found", checked: "list[tuple[int, Results]]") -> Iterator[Part]:
    made = len(found.results.table)
    yield f"{made:,} runs, of a grid of {found.grid:,}: {found.stopped}."
    assert study.objective is not None
    if not found.best:
        yield "\nNo run holds all constraints."
        return
    asked = found.results.asked
    yield f"\n{study.objective.text}:"
    yield runs_table(found.results, found.best[:SHOWN], name="run")
    yield from below(found.results.notes)
    for at, results in checked:
        yield from _checked(found.results.rows[at], results, asked)
    held = [at for at, results in checked if results.feasible[0]]
    if held or not checked:
        yield f"\n{_row(found.results, held[0] if held else found.best[0])['command']}"


def _checked(predicted: dict[str, Any], results: "Results", asked: list[str]) -> Iterator[str]:
    from ..sim.studies.evaluate import UNSETTLED

    row = results.rows[0]
    if row.get("error"):
        yield f"\nRun {row['point']} on the event plane: {row['error']}"
        return
    verdict = "holds all constraints" if results.feasible[0] else "breaks a constraint"
    if not results.study.constraints:
        verdict = "as found"
    yield f"\nRun {row['point']} on the event plane: {verdict}."
    for name in asked:
        text = f"  {name}: {written_figure(name, row.get(name))}"
        if row.get(f"{name}.low") is not None:
            low, high = (written_figure(name, row[f"{name}.{end}"]) for end in ("low", "high"))
            text += f" [{low}, {high}]"
        if name in predicted and row.get(name) != predicted[name]:
            text += f", found as {written_figure(name, predicted[name])}"
        yield text
    for constraint in results.study.constraints:
        slack = float(results.slacks[constraint.text][0])
        if slack == slack:
            yield f"  {constraint.margin(slack)}"
    if UNSETTLED in row:
        yield f"  Note: {row[UNSETTLED]}"
