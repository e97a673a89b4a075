"""Which factors, or which uncertain facts of the machine, a figure depends on.

Sobol indices: the part of a figure's variance that a factor explains alone (first order), and with
all that it does together with others (total); estimated by SALib from Saltelli's design, with
intervals by bootstrap (Saltelli et al., Variance based sensitivity analysis of model output,
Computer Physics Communications 181, 2010).

Morris screening: the mean effect of a step of a factor over two thirds of its range, wherever the
others stand, in far fewer runs (Morris, Factorial sampling plans for preliminary computational
experiments, Technometrics 33, 1991; its mean of absolute effects: Campolongo et al., Environmental
Modelling and Software 22, 2007).

Both compare runs of one base point (Sobol) or trajectory (Morris) with each other: where one of
them fails, the others of that group say nothing either. Such groups may be left out, if they are
few: what is found then holds where runs succeed. Screening is as sound there, since trajectories
are independent. Sobol indices are then approximate: where a corner of the ranges is missing,
factors are no longer independent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...inputs import InputError
from ...inputs.progress import Progress, silent
from ..kernel.streams import stream_key
from ..machine.assumptions import in_one_unit
from ..run.assumptions import doubtful_facts
from ..run.scenario import Scenario
from . import designs
from .base import Base
from .designs import Distribution, Factor
from .engine import run_points
from .evaluate import ERROR, POINT, UNSETTLED, Metrics, Runs
from .levels import Levels, is_number, written
from .study import Study

CONFIDENCE = 0.95
ENOUGH_RUNS = 10  # to say of a part of a range that none fails there
LEFT_OUT_MAX = 0.1  # of all base points or trajectories
MORRIS_LEVELS = 4  # of a range; a step is 4 / (2 · 3) of it, as Morris recommends


@dataclass(frozen=True)
class Index:
    """Indices of one factor, with half widths of their intervals of 95%."""

    path: str
    first: float
    first_half: float
    total: float
    total_half: float


@dataclass(frozen=True)
class Sensitivity:
    """Of a ``metric``: its ``mean``, the bounds that hold 90% of the runs, and the indices of the
    factors by falling total. ``left_out``: base points of which a run failed; ``unsettled``: the
    warnings of runs that were too short to settle, by their number.
    """

    metric: str
    runs: int
    mean: float
    low: float
    high: float
    indices: tuple[Index, ...]
    left_out: int = 0
    unsettled: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Effect:
    """Of a step over two thirds of a factor's range, in the figure's unit: ``size``, the
    mean of its absolute value, with the half width of its interval of 95%; ``mean``, with its sign;
    ``deviation``: how much it differs with where the others stand (interactions, curvature). Of a
    factor whose values have no order a step is from any of them to any other: it has a size alone.
    """

    path: str
    size: float
    size_half: float
    mean: float | None
    deviation: float | None


@dataclass(frozen=True)
class Screening:
    """Of a ``metric``: its ``mean`` over the runs, and the factors' effects by falling size.
    ``left_out``: trajectories of which a run failed; ``unsettled``: as of ``Sensitivity``.
    """

    metric: str
    runs: int
    mean: float
    effects: tuple[Effect, ...]
    left_out: int = 0
    unsettled: Mapping[int, str] = field(default_factory=dict)


def fact_factors(base: Base) -> list[Factor]:
    """The uncertain facts of the base's machine that have a range, as uniform factors; raises
    InputError without any.
    """
    scenario = base.load()
    found = machine_facts(scenario)
    if not found:
        name = scenario.machine.name
        raise InputError(
            f"machine '{name}' has no uncertain facts with a range",
            expected="facts with 'doubtful: true', as 'numatwin machine import' writes them",
        )
    return found


def machine_facts(scenario: Scenario) -> list[Factor]:
    """The uncertain facts of its machine that have a range, as uniform factors, and its protocol of
    coherence where firmware chooses it.
    """
    found = []
    coherence = scenario.machine.description.coherence
    if coherence is not None and coherence.doubtful:
        found.append(Factor("machine.coherence.protocol", Levels(("snoop", "directory"), "")))
    for fact in doubtful_facts(scenario.machine):
        if not fact.ranged or fact.low is None or fact.high is None:
            continue
        (low,), (high,) = fact.low.settings.values(), fact.high.settings.values()
        ends = in_one_unit(low, high)
        if ends is not None and ends[0] < ends[1]:
            first, last, unit = ends
            spread = Distribution("uniform", first, last)
            found.append(Factor(f"machine.{fact.name}", Levels((first, last), unit), spread))
    return found


def sensitivity(
    study: Study,
    factors: Sequence[Factor],
    metric: str,
    *,
    base_points: int,
    seed: int = 1,  # SALib takes 0 for none
    jobs: int | None = None,
    leave_out_failed: bool = False,
    progress: Progress = silent,
) -> Sensitivity:
    """Runs N (k + 2) points, N = ``base_points`` (a power of two) of k factors.

    Raises InputError where a run fails or has no such figure; ``leave_out_failed``: where that
    concerns more than ``LEFT_OUT_MAX`` of the base points, which else are left out.
    """
    sample, analyze = _salib()
    problem = _problem(factors)
    parts = sample.sample(problem, base_points, calc_second_order=False, seed=seed)
    sampled = _Sample("saltelli", "base points", np.asarray(parts), len(factors) + 2)
    figures = sampled.figures(study, factors, metric, jobs, progress)
    kept = sampled.kept(figures, leave_out_failed)
    found = _analysed(metric, problem, figures[kept], analyze, seed)
    return replace(found, left_out=sampled.left_out(kept), unsettled=sampled.unsettled)


def screening(
    study: Study,
    factors: Sequence[Factor],
    metric: str,
    *,
    trajectories: int,
    seed: int = 1,
    jobs: int | None = None,
    leave_out_failed: bool = False,
    progress: Progress = silent,
) -> Screening:
    """Morris screening in T (k + 1) runs, T = ``trajectories`` of k factors; of failed runs see
    ``sensitivity``.
    """
    _salib()
    from SALib.analyze import morris as analyze
    from SALib.sample import morris as sample

    factors = [_sorted(factor) for factor in factors]
    problem = _problem(factors)
    parts = np.asarray(sample.sample(problem, trajectories, num_levels=MORRIS_LEVELS, seed=seed))
    size = len(factors) + 1
    sampled = _Sample("morris", "trajectories", _with_pairs(factors, parts, size, seed), size)
    figures = sampled.figures(study, factors, metric, jobs, progress)
    kept = sampled.kept(figures, leave_out_failed)
    found = _screened(metric, problem, parts[kept], figures[kept], analyze, seed)
    unordered = {factor.path for factor in factors if not factor.ordered}
    effects = tuple(
        replace(effect, mean=None, deviation=None) if effect.path in unordered else effect
        for effect in found.effects
    )
    found = replace(found, effects=effects)
    return replace(found, left_out=sampled.left_out(kept), unsettled=sampled.unsettled)


def _sorted(factor: Factor) -> Factor:
    """The factor with listed values by size, or by name: their order in the file is no matter."""
    levels = factor.levels
    values = sorted(levels.values, key=None if levels.numeric else lambda v: written(v, ""))
    return replace(factor, levels=replace(levels, values=tuple(values)))


def _with_pairs(factors: Sequence[Factor], parts: Any, size: int, seed: int) -> Any:
    """``parts`` (N, k) of trajectories of ``size`` runs, in which a factor whose values have no
    order goes from one of them to another, both drawn anew for each trajectory.
    """
    made = parts.copy()
    for k, factor in enumerate(factors):
        count = len(factor.levels.values)
        if factor.ordered or count < 2:
            continue
        rng = np.random.default_rng(stream_key(seed, 0, f"morris/{factor.path}"))
        for first in range(0, len(parts), size):
            before, after = rng.permutation(count)[:2]
            column = parts[first : first + size, k]
            level = np.where(column == column[0], before, after)
            made[first : first + size, k] = (level + 0.5) / count
    return made


def _screened(
    metric: str, problem: dict[str, Any], parts: Any, figures: Any, analyze: Any, seed: int
) -> Screening:
    found = analyze.analyze(
        problem, parts, figures, conf_level=CONFIDENCE, num_levels=MORRIS_LEVELS, seed=seed
    )
    # SALib's effects are slopes over the whole range; a step is a part of it.
    step = MORRIS_LEVELS / (2 * (MORRIS_LEVELS - 1))
    columns = (
        np.asarray(found[name]) * step for name in ("mu_star", "mu_star_conf", "mu", "sigma")
    )
    effects = [
        Effect(name, *map(float, values))
        for name, *values in zip(problem["names"], *columns, strict=True)
    ]
    effects.sort(key=lambda effect: -effect.size)
    return Screening(metric, len(figures), float(figures.mean()), tuple(effects))


def _problem(factors: Sequence[Factor]) -> dict[str, Any]:
    return {
        "num_vars": len(factors),
        "names": [factor.path for factor in factors],
        "bounds": [[0.0, 1.0]] * len(factors),
    }


def runs_of(study: Study, factors: Sequence[Factor], metric: str) -> Runs:
    """Runs of the study's scenario that differ in ``factors``."""
    return replace(
        study.runs,
        paths=tuple(factor.path for factor in factors),
        units=tuple(factor.unit for factor in factors),
        metrics=Metrics((metric,)),
    )


class _Sample:
    """Runs at ``parts`` (N, k) of the factors' probability, of a design of that ``kind``; ``size``
    of them after each other are a group: one of the ``groups``, in words.
    """

    def __init__(self, kind: str, groups: str, parts: Any, size: int) -> None:
        self.kind, self.groups, self.parts, self.size = kind, groups, parts, size
        self.count = len(parts) // size
        self._first: tuple[int, str, str] | None = None  # point, error, command
        self.unsettled: dict[int, str] = {}
        self._hint = self._failed = ""

    def figures(
        self,
        study: Study,
        factors: Sequence[Factor],
        metric: str,
        jobs: int | None,
        progress: Progress,
    ) -> Any:
        """(N,) the figure of each run; NaN where there is none. It ends early where so many fail
        that nothing can be said.
        """
        design = designs.sampled(self.kind, factors, self.parts)
        runs = runs_of(study, factors, metric)
        figures = np.full(design.count, np.nan)
        failed: set[int] = set()
        done = 0
        for rows in run_points(runs, design.points(), expected=design.count, jobs=jobs):
            for row in rows:
                point, value = row[POINT], row.get(metric)
                if ERROR not in row and is_number(value):
                    figures[point] = value
                    if UNSETTLED in row:
                        self.unsettled[point] = row[UNSETTLED]
                    continue
                failed.add(point)
                if self._first is None or point < self._first[0]:
                    why = row.get(ERROR) or f"the run has no figure '{metric}'"
                    self._first = point, why, runs.command(point, design.of(point))
            done += len(rows)
            if len({point // self.size for point in failed}) > LEFT_OUT_MAX * self.count:
                break
            progress(done / design.count)
        if failed:
            self._hint = _narrower(
                factors, self.parts, sorted(failed), np.isfinite(figures), design.of
            )
            self._failed = f"{len(failed):,} of {done:,} runs of the sample failed"
        return figures

    def kept(self, figures: Any, leave_out_failed: bool) -> Any:
        """(N,) whether a run's group is whole. Raises InputError where that is not so of all, or
        of too few.
        """
        whole = np.isfinite(figures).reshape(self.count, self.size).all(axis=1)
        if self._first is None:
            return np.repeat(whole, self.size)
        _, why, command = self._first
        few = (~whole).sum() <= LEFT_OUT_MAX * self.count
        if leave_out_failed and few:
            return np.repeat(whole, self.size)
        ways = [self._hint] if self._hint else ["ranges in which no run fails"]
        if few:
            ways.append(
                f"--leave-out-failed, without {(~whole).sum()} of {self.count} {self.groups}"
            )
        raise InputError(
            f"{self._failed}, the first: {why} ({command})", expected=", or ".join(ways)
        )

    def left_out(self, kept: Any) -> int:
        """How many groups are."""
        return int((~kept).sum()) // self.size


def _narrower(
    factors: Sequence[Factor],
    parts: Any,
    failed: list[int],
    fine: Any,
    values: Callable[[int], Sequence[Any]],
) -> str:
    """The longest part of one factor's range in which no run failed, if at least half of it, and
    enough runs were ``fine`` (N,) there."""
    best, words = 0.5, ""
    for index, factor in enumerate(factors):
        lowest, highest = (
            failed[int(pick(parts[failed, index]))] for pick in (np.argmin, np.argmax)
        )
        of_factor = parts[:, index]
        for size, point, side, inside in (
            (of_factor[lowest], lowest, "below", of_factor < of_factor[lowest]),
            (1.0 - of_factor[highest], highest, "above", of_factor > of_factor[highest]),
        ):
            value, ran = values(point)[index], int((fine & inside).sum())
            if size >= best and ran >= ENOUGH_RUNS and is_number(value):
                best = size
                words = f"none of {ran} failed with {factor.path} {side} {value:.4g} {factor.unit}"
    return f"narrower ranges: {words.rstrip()}" if words else ""


def _analysed(
    metric: str, problem: dict[str, Any], figures: Any, analyze: Any, seed: int
) -> Sensitivity:
    low, high = np.quantile(figures, (0.05, 0.95))
    mean = float(figures.mean())
    if figures.std() <= 1e-12 * abs(mean):  # nothing depends on anything
        indices = [Index(name, 0.0, 0.0, 0.0, 0.0) for name in problem["names"]]
    else:
        found = analyze.analyze(
            problem,
            (figures - mean) / figures.std(),  # SALib's estimator of S1 is better of a small mean
            calc_second_order=False,
            conf_level=CONFIDENCE,
            seed=seed,
        )
        columns = (found[name] for name in ("S1", "S1_conf", "ST", "ST_conf"))
        indices = [
            Index(name, *map(float, values))
            for name, *values in zip(problem["names"], *columns, strict=True)
        ]
        indices.sort(key=lambda index: -index.total)
    return Sensitivity(metric, len(figures), mean, float(low), float(high), tuple(indices))


def _salib() -> tuple[Any, Any]:
    try:
        from SALib.analyze import sobol as analyze
        from SALib.sample import sobol as sample
    except ImportError:
        raise InputError(
            "sensitivity needs SALib", expected="pip install 'numatwin[sensitivity]'"
        ) from None
    return sample, analyze
