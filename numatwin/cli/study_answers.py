"""``numatwin study frontier``, ``explain`` and ``sensitivity``: answers from a study's runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .figures import factor_names, factor_values, written_figure
from .long_work import announce_points
from .option_groups import grouped
from .options import Jobs, Json
from .output import (
    console,
    percent,
    print_json,
    print_notes,
    print_whole,
    progress_bar,
    signed,
    table,
)
from .study import File, Out
from .undecided import NEGLIGIBLE, Undecided

if TYPE_CHECKING:
    from ..sim.studies.results import Results
    from ..sim.studies.sensitivity import Screening, Sensitivity
    from ..sim.studies.study import Study


class Method(StrEnum):
    """How sensitivity is estimated."""

    sobol = "sobol"
    morris = "morris"


Metric = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="The figure; by default the objective's, or the first throughput.",
        show_default=False,
    ),
]


def study_frontier(
    file: File,
    metric: Metric = None,
    least: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The expense to minimise: by default cost, or power_W without prices.",
            show_default=False,
        ),
    ] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Show the runs that no other beats in both cost and throughput."""
    from ..inputs import InputError
    from ..inputs.fields import near
    from ..sim.studies.metrics import COST

    study, results = _loaded(file, out)
    main = metric or _main(results)
    saved = least or (COST if study.prices is not None else "power_W")
    if least is None and saved not in results.numeric:
        such = next((f", such as {n}" for n in results.numeric if results.wants_less(n)), "")
        raise InputError(
            "no run has a cost or a power to minimise",
            study.file,
            expected=f"'prices' in the study, 'power_W' among its metrics, or --least PATH{such}",
        )
    for name in (main, saved):
        if name not in results.numeric:
            expected = near(name, results.numeric) or "another --metric or --least"
            raise InputError("no run has such a figure", token=name, expected=expected)
    if main == saved:
        expected = "--metric and --least of different figures"
        raise InputError("a frontier of one figure", token=main, expected=expected)
    rows = []
    for at in results.front(saved, main):
        row = results.rows[at]
        slack = {text: float(values[at]) for text, values in results.slacks.items()}
        settings = {path: row.get(path) for path in study.runs.paths}
        rows.append(
            {"point": row["point"], "settings": settings, saved: row[saved], main: row[main]}
            | {"slack": slack, "settled": at not in results.unsettled}
        )
    if json:
        most = None if results.wants_less(main) else main
        found = {"study": study.name, "least": saved, "most": most, "figure": main, "rows": rows}
        print_json(found | {"unsettled": results.unsettled_points})
        return
    to = console()
    if not rows:
        to.print(
            "No run that holds all constraints has both."
            if study.constraints
            else "No run has both."
        )
        return
    cells = [
        [str(row["point"]), *factor_values(study.factors, row["settings"])]
        + [written_figure(name, row[name]) for name in (saved, main)]
        for row in rows
    ]
    print_whole(
        to,
        table(
            ["point", *factor_names(study.factors), saved, main], cells, left=1 + len(study.factors)
        ),
    )
    first = rows[0]
    holds = " that holds all constraints" if study.constraints else ""
    to.print(f"\nLeast {saved}{holds}: point {first['point']}", soft_wrap=True)
    for constraint in study.constraints:
        to.print(f"  {constraint.margin(first['slack'][constraint.text])}", soft_wrap=True)
    to.print(
        f"  {study.runs.command(first['point'], study.design.of(first['point']))}", soft_wrap=True
    )
    print_notes(to, results.notes)


def explain_step(
    file: File,
    first: Annotated[
        int | None,
        typer.Option(
            "--from",
            metavar="N",
            min=0,
            help="The point to start from; by default the first one that has the figure.",
            show_default=False,
        ),
    ] = None,
    second: Annotated[
        int | None,
        typer.Option(
            "--to", metavar="N", min=0, help="The point to explain; by default the best one."
        ),
    ] = None,
    metric: Metric = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Explain why one run of a study beats another, factor by factor."""
    from ..inputs import InputError
    from ..sim.studies.explanation import explained

    study, results = _loaded(file, out)
    name = metric or _main(results)
    best = results.best()
    if second is None and not best:
        raise InputError("no best run: expected --to N, or an objective")
    if first is None:
        known = results.first(name)
        first = 0 if known is None else int(results.points[known])
    ends = (first, int(results.points[best[0]]) if second is None else second)
    for point in ends:
        if point >= study.design.count:
            expected = f"0 to {study.design.count - 1}"
            raise InputError("no such point", study.file, token=str(point), expected=expected)
    one, other = (study.design.of(point) for point in ends)
    if one == other:
        what = f"points {first} and {ends[1]} have the same values"
        if first == ends[1]:
            what = f"point {first} is " + ("itself the best" if second is None else "both ends")
        raise InputError(what, study.file, expected="two that differ: --from N and --to M")
    found = explained(study.runs, one, other, name)
    before, after = found.before, found.after
    if json:
        print_json(
            {"metric": name, "from": ends[0], "to": ends[1], "before": before, "after": after}
            | {"steps": [{"path": p, "part": part} for p, part in found.parts.items()]}
            | {"bound_by": found.bound_by, "way": [vars(step) for step in found.path]}
            | {"runs": found.runs, "unsettled": len(found.unsettled)}
            | dict(zip(("from_settled", "to_settled"), found.settled, strict=True))
        )
        return
    to = console()
    ratio = f", ×{after / before:.2f}" if before else ""
    to.print(
        f"{name}: {written_figure(name, before)} at point {ends[0]}, "
        f"{written_figure(name, after)} at point {ends[1]}{ratio}.",
        soft_wrap=True,
    )
    rows = []
    for step in found.path:
        part = found.parts[step.path]
        share = [signed(part / before, percent(abs(part / before)))] if before else []
        change = f"{step.old} → {step.new}"
        rows.append([step.path, change, signed(part, written_figure(name, abs(part))), *share])
    columns = ["factor", "change", "brings", *([f"relative to point {first}"] if before else [])]
    print_whole(to, table(columns, rows, left=2))
    to.print(f"\nStep by step, from {written_figure(name, before)}", end="")
    to.print(f", bound by: {found.bound_by}" if found.bound_by else "", soft_wrap=True)
    for at, step in enumerate(found.path, 1):
        reached = written_figure(name, step.figure)
        text = f"{at}. {step.path} {step.old} → {step.new}: {reached}, {step.words}"
        to.print(text, soft_wrap=True)
    print_notes(to, found.notes)


@dataclass(frozen=True)
class Sampling:
    """What is varied, and how often."""

    metric: Metric = None
    facts: Annotated[
        bool,
        typer.Option(
            "--facts",
            help="Vary the machine's uncertain facts within their ranges, not the factors.",
        ),
    ] = False
    method: Annotated[
        Method,
        typer.Option(help="Sobol indices, or Morris screening in far fewer runs."),
    ] = Method.sobol
    points: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            help="sobol: base points, a power of two (128), N·(factors+2) runs; morris: "
            "trajectories (16), N·(factors+1) runs.",
            show_default=False,
        ),
    ] = None
    leave_out_failed: Annotated[
        bool,
        typer.Option(
            "--leave-out-failed",
            help="Leave out base points or trajectories with a failed run, at most a tenth: the "
            "answer then holds where runs succeed (Sobol indices: approximately).",
        ),
    ] = False
    jobs: Jobs = None
    json: Json = False

    @property
    def count(self) -> int:
        """Base points or trajectories; raises InputError for what Sobol's method does not take."""
        from ..inputs import InputError

        points = self.points or (128 if self.method is Method.sobol else 16)
        if self.method is Method.sobol and points & (points - 1):
            raise InputError("--points", token=str(points), expected="a power of two")
        return points

    def figure(self, study: Study) -> str:
        """The one that is asked for; by default the objective, or the first throughput."""
        from ..sim.studies.metrics import check_metric

        operations = list(study.runs.base.load().workload.operations)
        of, name = study.objective, self.metric
        if name is None:
            known = of is not None and of.metric != "cost"
            name = of.metric if of is not None and known else f"throughput.{operations[0]}"
        check_metric(name, operations, "--metric" if self.metric else None)
        return name


@grouped
def study_sensitivity(file: File, by: Sampling) -> None:
    """Show which factors, or uncertain facts, decide the result."""
    from ..sim.studies.designs import one_at_a_time
    from ..sim.studies.sensitivity import fact_factors, runs_of, screening, sensitivity
    from ..sim.studies.study import load_study

    study = load_study(file)
    points, name = by.count, by.figure(study)
    factors = fact_factors(study.runs.base) if by.facts else list(study.factors)
    runs = points * (len(factors) + (1 if by.method is Method.morris else 2))
    announce_points(runs_of(study, factors, name), one_at_a_time(factors), runs, by.jobs)
    options: dict[str, Any] = {"jobs": by.jobs, "leave_out_failed": by.leave_out_failed}
    with progress_bar("simulating") as progress:
        options["progress"] = progress
        if by.method is Method.morris:
            show = partial(
                _print_screening, screening(study, factors, name, trajectories=points, **options)
            )
        else:
            found = sensitivity(study, factors, name, base_points=points, **options)
            show = partial(_print_indices, found, name)
    show(points, by.json)


def _print_indices(found: Sensitivity, name: str, points: int, json: bool) -> None:
    undecided = Undecided(
        points,
        NEGLIGIBLE,
        {
            "alone": [(i.path, i.first, i.first_half) for i in found.indices],
            "with others": [(i.path, i.total, i.total_half) for i in found.indices],
        },
    )
    if json:
        print_json(
            {"metric": name, "runs": found.runs, "left_out": found.left_out, "mean": found.mean}
            | {"interval_90": [found.low, found.high]}
            | {"rows": [vars(index) for index in found.indices]}
            | {"undecided": undecided.as_json(), "unsettled": len(found.unsettled)}
        )
        return
    to = console()
    low, mean, high = (written_figure(name, v) for v in (found.low, found.mean, found.high))
    to.print(f"{name}: {mean} on average, 90% of {found.runs:,} runs between {low} and {high}.")
    _tell_left_out(found.left_out, "base points")
    rows = [
        [
            i.path,
            *(f"{a:.3f} ±{b:.3f}" for a, b in ((i.first, i.first_half), (i.total, i.total_half))),
        ]
        for i in found.indices
    ]
    print_whole(to, table(["factor", "alone", "with others"], rows, long_names=True))
    undecided.print_to(to)
    _tell_unsettled(found)


def _print_screening(found: Screening, points: int, json: bool) -> None:
    largest = max((one.size for one in found.effects), default=0.0)
    sizes = [(one.path, one.size, one.size_half) for one in found.effects]
    undecided = Undecided(points, NEGLIGIBLE * largest, {"size": sizes})
    if json:
        effects = [vars(effect) for effect in found.effects]
        about = {"metric": found.metric, "runs": found.runs, "left_out": found.left_out}
        about["mean"] = found.mean
        about |= {"rows": effects, "undecided": undecided.as_json()}
        print_json(about | {"unsettled": len(found.unsettled)})
        return
    to, name = console(), found.metric
    mean = written_figure(name, found.mean)
    to.print(
        f"{name}: {mean} on average of {found.runs:,} runs. What two thirds of a range change:"
    )
    _tell_left_out(found.left_out, "trajectories")
    rows = [
        [
            one.path,
            f"{written_figure(name, one.size)} ±{written_figure(name, one.size_half)}",
            "–" if one.mean is None else signed(one.mean, written_figure(name, abs(one.mean))),
            written_figure(name, one.deviation),
        ]
        for one in found.effects
    ]
    columns = ["factor", "size", "with its sign", "varies by"]
    print_whole(to, table(columns, rows, long_names=True))
    unordered = ", ".join(one.path for one in found.effects if one.mean is None)
    if unordered:
        to.print(
            f"\nValues without an order have no sign ({unordered}): there, size is what a change "
            "to another value brings on average.",
            soft_wrap=True,
        )
    undecided.print_to(to)
    _tell_unsettled(found)


def _tell_unsettled(found: Sensitivity | Screening) -> None:
    from ..sim.run.replications import unsettled_notes
    from ..sim.studies.results import NOTES_MAX

    def counted(runs: list[int]) -> str:
        return f"{len(runs):,} of {found.runs:,} runs"

    print_notes(console(), unsettled_notes(found.unsettled.items(), counted, NOTES_MAX))


def _tell_left_out(count: int, groups: str) -> None:
    if count:
        about = ", approximately" if groups == "base points" else ""
        console().print(
            f"Without {count} {groups} in which a run failed: it holds where runs succeed{about}."
        )


def _loaded(file: Any, out: Any) -> tuple[Study, Results]:
    from ..inputs import InputError
    from ..sim.studies.results import load_results
    from ..sim.studies.study import load_study

    study = load_study(file)
    results = load_results(study, out or study.default_folder)
    if not results.rows:
        raise InputError("no run yet", study.file, expected="'numatwin study run' before")
    return study, results


def _main(results: Results) -> str:
    from ..inputs import InputError

    if results.main is None:
        raise InputError("no run has a figure", expected="--metric PATH")
    return results.main
