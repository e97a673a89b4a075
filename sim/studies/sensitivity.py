"""Which factors, or which doubtful facts of the machine, a figure depends on.

Sobol indices: the part of a figure's variance that a factor explains alone (first order), and with
all that it does together with others (total); estimated by SALib from Saltelli's design, with
intervals by bootstrap (Saltelli et al., Variance based sensitivity analysis of model output,
Computer Physics Communications 181, 2010).

Morris screening: the mean effect of a step of a factor over two thirds of its range, wherever the
others stand, in far fewer runs (Morris, Factorial sampling plans for preliminary computational
experiments, Technometrics 33, 1991; its mean of absolute effects: Campolongo et al., Environmental
Modelling and Software 22, 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...inputs import InputError
from ..run.scenario import Scenario
from . import designs
from .base import Base
from .engine import run_points
from .evaluate import ERROR, POINT
from .factors import Distribution, Factor
from .levels import Levels, in_unit, is_number, split_number
from .metrics import Metrics
from .study import Study

CONFIDENCE = 0.95
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
    factors by falling total.
    """

    metric: str
    runs: int
    mean: float
    low: float
    high: float
    indices: tuple[Index, ...]


@dataclass(frozen=True)
class Effect:
    """Of a step over two thirds of a factor's range, in the figure's unit: ``size``, the
    mean of its absolute value, with the half width of its interval of 95%; ``mean``, with its sign;
    ``deviation``: how much it differs with where the others stand (interactions, curvature).
    """

    path: str
    size: float
    size_half: float
    mean: float
    deviation: float


@dataclass(frozen=True)
class Screening:
    """Of a ``metric``: its ``mean`` over the runs, and the factors' effects by falling size."""

    metric: str
    runs: int
    mean: float
    effects: tuple[Effect, ...]


def fact_factors(base: Base) -> list[Factor]:
    """The doubtful facts of the base's machine that have a range, as uniform factors; raises
    InputError without any.
    """
    scenario = base.load()
    found = machine_facts(scenario)
    if not found:
        name = scenario.machine.name
        raise InputError(f"machine '{name}' has no doubtful facts with a range")
    return found


def machine_facts(scenario: Scenario) -> list[Factor]:
    """The doubtful facts of its machine that have a range, as uniform factors."""
    found = []
    for path in scenario.machine.doubtful:
        fact = _at(scenario.machine.plain, path)
        ends = fact.get("range") if isinstance(fact, Mapping) else None
        if not ends:
            continue
        (low, unit), (high, other) = (_number(end) for end in ends)
        scaled = in_unit(high, other, unit)
        if scaled is not None and low < scaled:
            spread = Distribution("uniform", low, scaled)
            found.append(Factor(f"machine.{path}", Levels((low, scaled), unit), spread))
    return found


def sensitivity(
    study: Study,
    factors: Sequence[Factor],
    metric: str,
    *,
    base_points: int,
    seed: int = 1,  # SALib takes 0 for none
    jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Sensitivity:
    """Runs N (k + 2) points, N = ``base_points`` (a power of two) of k factors; raises InputError
    where a run fails or has no such figure.
    """
    sample, analyze = _salib()
    problem = _problem(factors)
    parts = sample.sample(problem, base_points, calc_second_order=False, seed=seed)
    figures = _figures(study, factors, metric, "saltelli", np.asarray(parts), jobs, progress)
    return _analysed(metric, problem, figures, analyze, seed)


def screening(
    study: Study,
    factors: Sequence[Factor],
    metric: str,
    *,
    trajectories: int,
    seed: int = 1,
    jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Screening:
    """Morris screening in T (k + 1) runs, T = ``trajectories`` of k factors; raises InputError
    where a run fails or has no such figure.
    """
    _salib()
    from SALib.analyze import morris as analyze
    from SALib.sample import morris as sample

    problem = _problem(factors)
    parts = np.asarray(sample.sample(problem, trajectories, num_levels=MORRIS_LEVELS, seed=seed))
    figures = _figures(study, factors, metric, "morris", parts, jobs, progress)
    return _screened(metric, problem, parts, figures, analyze, seed)


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


def _figures(
    study: Study,
    factors: Sequence[Factor],
    metric: str,
    kind: str,
    parts: Any,
    jobs: int | None,
    progress: Callable[[float], None] | None,
) -> Any:
    """The figure at each of ``parts`` (N, k) of the factors' probability."""
    design = designs.sampled(kind, factors, parts)
    runs = replace(
        study.runs,
        paths=tuple(factor.path for factor in factors),
        units=tuple(factor.unit for factor in factors),
        metrics=Metrics((metric,)),
    )
    figures = np.full(design.count, np.nan)
    done = 0
    for rows in run_points(runs, design.points(), expected=design.count, jobs=jobs):
        for row in rows:
            value = row.get(metric)
            if ERROR in row or not is_number(value):
                why = row.get(ERROR) or f"the run has no figure '{metric}'"
                again = runs.command(row[POINT], design.of(row[POINT]))
                raise InputError(f"a run of the sample failed: {why} ({again})")
            figures[row[POINT]] = value
        done += len(rows)
        if progress is not None:
            progress(done / design.count)
    return figures


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


def _number(text: Any) -> tuple[float, str]:
    found = split_number(str(text))
    return (float("nan"), "") if found is None else found


def _at(plain: Any, path: str) -> Any:
    """What stands at a path of names and positions, joined by dots; None where nothing does."""
    parts = path.split(".")
    while parts:
        if isinstance(plain, list):
            plain, parts = plain[int(parts[0])], parts[1:]
            continue
        if not isinstance(plain, Mapping):
            return None
        size = next((k for k in range(len(parts), 0, -1) if ".".join(parts[:k]) in plain), None)
        if size is None:
            return None
        plain, parts = plain[".".join(parts[:size])], parts[size:]
    return plain
