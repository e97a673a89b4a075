"""``numatwin study frontier``, ``explain`` and ``sensitivity``: answers from a study's runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..inputs import InputError
from .figures import runs_table, written_figure
from .options import Jobs, Json, flag, grouped, option
from .output import Part, below, percent, present, progress_bar, signed, whole_table
from .study import Exact, File, Out, check_point

if TYPE_CHECKING:
    from ..sim.studies.explanation import Explanation
    from ..sim.studies.regret import UnderDoubt
    from ..sim.studies.results import Results
    from ..sim.studies.sensitivity import Screening, Sensitivity
    from ..sim.studies.study import Study


class Method(StrEnum):
    """How sensitivity is estimated."""

    sobol = "sobol"
    morris = "morris"


Metric = Annotated[
    str | None, option("PATH", "The figure; by default the objective's, or the first throughput.")
]


def study_frontier(
    file: File,
    metric: Metric = None,
    least: Annotated[
        str | None,
        option("PATH", "The expense to minimise: by default cost, or power_W without prices."),
    ] = None,
    exact: Exact = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Show the runs that no other beats in both cost and throughput."""
    from ..sim.studies.evaluate import COST
    from ..sim.studies.regret import UnderDoubt, evenly, intervals_of

    study, results = _loaded(file, out)
    main = metric or _main(results)
    saved = least or (COST if study.prices is not None else "power_W")
    _check_frontier(results, main, saved, least is not None)
    positions = results.front(saved, main)
    doubt = UnderDoubt() if exact else intervals_of(results, evenly(positions), main)
    rows = [
        {"point": row["point"], saved: row[saved], main: row[main]}
        | {"interval": doubt.intervals.get(int(row["point"]))}
        | results.verdict(at)
        for at, row in ((at, results.rows[at]) for at in positions)
    ]
    plain: dict[str, Any] = {"study": study.name, "least": saved, "figure": main, "rows": rows}
    plain |= {"most": None if results.wants_less(main) else main}
    plain |= {"unsettled": results.unsettled_points}
    present(json, lambda: plain, _frontier_parts(results, positions, doubt, (saved, main)))


def _check_frontier(results: Results, main: str, saved: str, stated: bool) -> None:
    """Raises InputError where there is none; ``stated``: whether ``saved`` was."""
    from ..inputs.fields import near

    file = results.study.file
    if not stated and saved not in results.numeric:
        such = next((f", such as {n}" for n in results.numeric if results.wants_less(n)), "")
        raise InputError(
            "no run has a cost or a power to minimise",
            file,
            expected=f"'prices' in the study, 'power_W' among its metrics, or --least PATH{such}",
        )
    for name in (main, saved):
        if name not in results.numeric:
            expected = near(name, results.numeric) or "another --metric or --least"
            raise InputError("no run has such a figure", token=name, expected=expected)
    if main == saved:
        expected = "--metric and --least of different figures"
        raise InputError("a frontier of one figure", token=main, expected=expected)


def _frontier_parts(
    results: Results, positions: Sequence[int], doubt: UnderDoubt, names: tuple[str, str]
) -> Iterator[Part]:
    study = results.study
    if not positions:
        holds = "No run that holds all constraints has both." if study.constraints else ""
        yield holds or "No run has both."
        return
    yield runs_table(results, positions, names, doubt=doubt)
    point, slack = results.rows[positions[0]]["point"], results.verdict(positions[0])["slack"]
    holds = " that holds all constraints" if study.constraints else ""
    yield f"\nLeast {names[0]}{holds}: point {point}"
    yield from (f"  {one.margin(slack[one.text])}" for one in study.constraints)
    yield f"  {study.runs.command(point, study.design.of(point))}"
    yield from below(results.notes)


def explain_step(
    file: File,
    first: Annotated[
        int | None,
        option(
            "N",
            "The point to start from; by default the first one that has the figure.",
            "--from",
            min=0,
        ),
    ] = None,
    second: Annotated[
        int | None, option("N", "The point to explain; by default the best one.", "--to", min=0)
    ] = None,
    metric: Metric = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Explain why one run of a study beats another, factor by factor."""
    from ..sim.studies.explanation import explained

    study, results = _loaded(file, out)
    name = metric or _main(results)
    ends = _explained_points(results, name, first, second)
    found = explained(study.runs, study.design.of(ends[0]), study.design.of(ends[1]), name)
    plain: dict[str, Any] = {"metric": name, "from": ends[0], "to": ends[1], "runs": found.runs}
    plain |= {"before": found.before, "after": found.after, "bound_by": found.bound_by}
    plain |= {"steps": [{"path": p, "part": part} for p, part in found.parts.items()]}
    plain |= {"way": [vars(step) for step in found.path], "unsettled": len(found.unsettled)}
    plain |= dict(zip(("from_settled", "to_settled"), found.settled, strict=True))
    present(json, lambda: plain, _step_parts(found, name, ends))


def _explained_points(
    results: Results, name: str, first: int | None, second: int | None
) -> tuple[int, int]:
    """The points to explain, of those that were asked for; raises InputError."""
    study, best = results.study, results.best()
    if second is None and not best:
        raise InputError("no best run: expected --to N, or an objective")
    if first is None:
        known = results.first(name)
        first = 0 if known is None else int(results.points[known])
    ends = (first, int(results.points[best[0]]) if second is None else second)
    for point in ends:
        check_point(study, point)
    if study.design.of(ends[0]) == study.design.of(ends[1]):
        what = f"points {first} and {ends[1]} have the same values"
        if first == ends[1]:
            what = f"point {first} is " + ("itself the best" if second is None else "both ends")
        raise InputError(what, study.file, expected="two that differ: --from N and --to M")
    return ends


def _step_parts(found: Explanation, name: str, ends: tuple[int, int]) -> Iterator[Part]:
    before, after = found.before, found.after
    ratio = f", ×{after / before:.2f}" if before else ""
    yield (
        f"{name}: {written_figure(name, before)} at point {ends[0]}, "
        f"{written_figure(name, after)} at point {ends[1]}{ratio}."
    )
    rows = []
    for step in found.path:
        part = found.parts[step.path]
        share = [signed(part / before, percent(abs(part / before)))] if before else []
        change = f"{step.old} → {step.new}"
        rows.append([step.path, change, signed(part, written_figure(name, abs(part))), *share])
    relative = [f"relative to point {ends[0]}"] if before else []
    yield whole_table(["factor", "change", "brings", *relative], rows, left=2)
    bound = f", bound by: {found.bound_by}" if found.bound_by else ""
    yield f"\nStep by step, from {written_figure(name, before)}{bound}"
    for at, step in enumerate(found.path, 1):
        reached = written_figure(name, step.figure)
        yield f"{at}. {step.path} {step.old} → {step.new}: {reached}, {step.words}"
    yield from below(found.notes)


@dataclass(frozen=True)
class Sampling:
    """What is varied, and how often."""

    metric: Metric = None
    facts: Annotated[
        bool,
        flag("--facts", "Vary the machine's uncertain facts within their ranges, not the factors."),
    ] = False
    method: Annotated[
        Method, typer.Option(help="Sobol indices, or Morris screening in far fewer runs.")
    ] = Method.sobol
    points: Annotated[
        int | None,
        option(
            "N",
            "sobol: base points, a power of two (128), N·(factors+2) runs; morris: trajectories "
            "(16), N·(factors+1) runs.",
            min=2,
        ),
    ] = None
    leave_out_failed: Annotated[
        bool,
        flag(
            "--leave-out-failed",
            "Leave out base points or trajectories with a failed run, at most a tenth: the "
            "answer then holds where runs succeed (Sobol indices: approximately).",
        ),
    ] = False
    jobs: Jobs = None
    json: Json = False

    @property
    def count(self) -> int:
        """Base points or trajectories; raises InputError for what Sobol's method does not take."""
        points = self.points or (128 if self.method is Method.sobol else 16)
        if self.method is Method.sobol and points & (points - 1):
            raise InputError("--points", token=str(points), expected="a power of two")
        return points

    def figure(self, study: Study) -> str:
        """The one that is asked for; by default the objective, or the first throughput."""
        from ..sim.studies.evaluate import check_metric

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
    from ..sim.studies.sensitivity import fact_factors, screening, sensitivity
    from ..sim.studies.study import load_study

    study = load_study(file)
    points, name = by.count, by.figure(study)
    factors = fact_factors(study.runs.base) if by.facts else list(study.factors)
    options: dict[str, Any] = {"jobs": by.jobs, "leave_out_failed": by.leave_out_failed}
    with progress_bar("simulating") as progress:
        options["progress"] = progress
        if by.method is Method.morris:
            screened = screening(study, factors, name, trajectories=points, **options)
            plain, parts = _screening(screened, points)
        else:
            found = sensitivity(study, factors, name, base_points=points, **options)
            plain, parts = _indices(found, points)
    present(by.json, lambda: plain, parts)


Answer = tuple[dict[str, Any], Iterator["Part"]]


def _indices(found: Sensitivity, points: int) -> Answer:
    undecided = Undecided(
        points,
        NEGLIGIBLE,
        {
            "alone": [(i.path, i.first, i.first_half) for i in found.indices],
            "with others": [(i.path, i.total, i.total_half) for i in found.indices],
        },
    )
    plain = _plain(found, undecided) | {"rows": [vars(index) for index in found.indices]}
    return plain | {"interval_90": [found.low, found.high]}, _index_parts(found, undecided)


def _plain(found: Sensitivity | Screening, undecided: Undecided) -> dict[str, Any]:
    plain = {"metric": found.metric, "runs": found.runs, "left_out": found.left_out}
    plain |= {"mean": found.mean, "undecided": undecided.as_json()}
    return plain | {"unsettled": len(found.unsettled)}


def _index_parts(found: Sensitivity, undecided: Undecided) -> Iterator[Part]:
    name = found.metric
    low, mean, high = (written_figure(name, v) for v in (found.low, found.mean, found.high))
    yield f"{name}: {mean} on average, 90% of {found.runs:,} runs between {low} and {high}."
    yield from _left_out(found.left_out, "base points")
    rows = [
        [
            i.path,
            *(f"{a:.3f} ±{b:.3f}" for a, b in ((i.first, i.first_half), (i.total, i.total_half))),
        ]
        for i in found.indices
    ]
    yield whole_table(["factor", "alone", "with others"], rows, long_names=True)
    yield from undecided.notes
    yield from _unsettled(found)


def _screening(found: Screening, points: int) -> Answer:
    largest = max((one.size for one in found.effects), default=0.0)
    sizes = [(one.path, one.size, one.size_half) for one in found.effects]
    undecided = Undecided(points, NEGLIGIBLE * largest, {"size": sizes})
    plain = _plain(found, undecided) | {"rows": [vars(effect) for effect in found.effects]}
    return plain, _screening_parts(found, undecided)


def _screening_parts(found: Screening, undecided: Undecided) -> Iterator[Part]:
    name = found.metric
    mean = written_figure(name, found.mean)
    yield f"{name}: {mean} on average of {found.runs:,} runs. What two thirds of a range change:"
    yield from _left_out(found.left_out, "trajectories")
    rows = [
        [
            one.path,
            f"{written_figure(name, one.size)} ±{written_figure(name, one.size_half)}",
            "–" if one.mean is None else signed(one.mean, written_figure(name, abs(one.mean))),
            written_figure(name, one.deviation),
        ]
        for one in found.effects
    ]
    yield whole_table(["factor", "size", "with its sign", "varies by"], rows, long_names=True)
    unordered = ", ".join(one.path for one in found.effects if one.mean is None)
    if unordered:
        yield (
            f"\nValues without an order have no sign ({unordered}): there, size is what a change "
            "to another value brings on average."
        )
    yield from undecided.notes
    yield from _unsettled(found)


def _unsettled(found: Sensitivity | Screening) -> list[Part]:
    from ..sim.run.replications import unsettled_notes
    from ..sim.studies.results import NOTES_MAX

    def counted(runs: list[int]) -> str:
        return f"{len(runs):,} of {found.runs:,} runs"

    return below(unsettled_notes(found.unsettled.items(), counted, NOTES_MAX))


def _left_out(count: int, groups: str) -> Iterator[str]:
    if count:
        about = ", approximately" if groups == "base points" else ""
        yield f"Without {count} {groups} in which a run failed: it holds where runs succeed{about}."


def _loaded(file: Any, out: Any) -> tuple[Study, Results]:
    from ..sim.studies.results import load_results
    from ..sim.studies.study import load_study

    study = load_study(file)
    results = load_results(study, out or study.default_folder)
    if not results.rows:
        raise InputError("no run yet", study.file, expected="'numatwin study run' before")
    return study, results


def _main(results: Results) -> str:
    if results.main is None:
        raise InputError("no run has a figure", expected="--metric PATH")
    return results.main


NEGLIGIBLE = 0.01  # an index of a hundredth of the variance, known to that, decides nothing


@dataclass(frozen=True)
class Undecided:
    """Of ``columns`` {title: (name, estimate, half of its interval) each}, estimated from so many
    ``points``; an error of ``negligible`` is small enough for an estimate of any size.
    """

    points: int
    negligible: float
    columns: Mapping[str, Sequence[tuple[str, float, float]]]

    @property
    def names(self) -> dict[str, list[str]]:
        """By column, those whose error exceeds both the estimate and what is negligible."""
        found = {
            title: [name for name, value, half in rows if half > self._wanted(value)]
            for title, rows in self.columns.items()
        }
        return {title: names for title, names in found.items() if names}

    @property
    def enough(self) -> int:
        """Points, a power of two, of which the errors would not: they fall with the root."""
        ratios = [
            half / self._wanted(value)
            for rows in self.columns.values()
            for _, value, half in rows
            if half > self._wanted(value)
        ]
        return 1 << math.ceil(math.log2(self.points * max(ratios, default=1.0) ** 2))

    def as_json(self) -> dict[str, Any] | None:
        """None where all can be distinguished from 0."""
        return {**self.names, "points": self.enough} if self.names else None

    @property
    def notes(self) -> list[str]:
        """A line, where there is anything to tell."""
        if not self.names:
            return []
        which = "; ".join(f"'{title}' of {', '.join(names)}" for title, names in self.names.items())
        return [
            f"\nNot distinguishable from 0 yet: {which}. "
            f"Errors fall with the square root of --points; {self.enough:,} would do."
        ]

    def _wanted(self, value: float) -> float:
        return max(abs(value), self.negligible)
