"""What evidence says of a scenario's unknown conditions and uncertain facts (``numatwin infer``).

Evidence is a file of measured runs. All that the runs' predictions lean on is drawn together: a
Sobol set of the prior first, then sets from what the draws so far suggest (adaptive multiple
importance sampling: Cornuet et al., Scandinavian Journal of Statistics 39, 2012), which is normal
with the logarithms of all figures as linear functions of the draws. All draws count together, each
by its prior over the mixture that it came from. What the model is wrong by is part of the
likelihood (``posterior``).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import qmc

from ..inputs import DescriptionError, InputError
from ..inputs.fields import near
from ..inputs.progress import Progress, silent
from ..inputs.shared_work import SharedWork, shared
from ..sim.kernel.arrays import Flags, Floats
from ..sim.run.assumptions import varied
from ..sim.run.doubts import Doubt, doubts_of, merged
from ..sim.run.model_error import THROUGHPUT, TRAFFIC, Class, kind_of
from ..sim.run.scenario import Scenario, load_document, scenario_of_document
from ..sim.run.uncertainty import figure_of
from ..sim.run.what_if import Predictor
from ..sim.systems.registry import system_of
from .calibrate.engine_rows import ASSUMED_SPREAD, EngineRow, load_rows, run_of_row
from .calibrate.engine_rows import TRAFFIC as WAYS
from .posterior import (
    DEVIATIONS,
    EXACT,
    Known,
    covariance_of,
    effective,
    error_weights,
    log_likelihood,
    normalised,
    tempered,
)

DRAWS, DRAWS_MAX = 256, 2048
ENOUGH = 100.0  # effective draws
SEED = 1


@dataclass(frozen=True)
class Figure:
    """A figure of a run that was measured, or may be (``measured`` not a number). ``run``: its row,
    from 0, which is of ``scenario``. ``source``: what numatwin knows of its predictions from there
    is no evidence here.
    """

    label: str
    run: int
    path: tuple[str, ...]
    of: Class
    measured: float
    spread: float
    source: str = ""
    scenario: str = ""


@dataclass(frozen=True)
class Sample:
    """Draws of the unknowns: (N, D) normal ``scores``, (N, F) logarithms of all figures that they
    predict (a row of NaN where they cannot be run, -inf where a figure is 0), and the (N,)
    logarithm of how likely they were drawn.
    """

    scores: Floats
    logs: Floats
    proposed: Floats

    @property
    def prior(self) -> Floats:
        """(N,) logarithm of the prior's density, up to a constant."""
        return np.asarray(-0.5 * (self.scores**2).sum(1))


@dataclass(frozen=True)
class Inference:
    """``weights`` (N,) of the draws of ``doubts``; ``logs`` (N, F) predictions of ``figures``;
    ``refusal``: why a draw cannot be run, the first of them, '' where all can.
    """

    scenarios: tuple[str, ...]
    doubts: tuple[Doubt, ...]
    figures: tuple[Figure, ...]
    parts: Floats
    logs: Floats
    weights: Floats
    refusal: str = ""

    @cached_property
    def runs(self) -> Flags:
        """(N,) whether a draw can be run."""
        return np.asarray(~np.isnan(self.logs).all(1))

    @cached_property
    def effective(self) -> float:
        """The size of an unweighted sample that tells as much."""
        return effective(self.weights)


def infer(
    names: Sequence[str],
    file: Path,
    *,
    machine: str | None = None,
    settings: Sequence[str] = (),
    exact: bool = False,
    progress: Progress = silent,
) -> Inference:
    """What the runs in ``file`` say of the scenarios ``names``; raises InputError.

    ``exact``: the model is taken to be right to a percent.
    """
    bases = {name: load_document(name) for name in names}
    wholes = {
        name: scenario_of_document(base, settings, machine=machine) for name, base in bases.items()
    }
    runs, figures = list[Scenario](), list[Figure]()
    rows = load_rows(file, evidence=True)
    of_rows = [_scenario_of(row, wholes) for row in rows]
    labels = _labels(rows, of_rows)
    for row, name, label in zip(rows, of_rows, labels, strict=True):
        run = run_of_row(bases[name], settings, machine, wholes[name], row)
        figures += _figures(row, label, run, len(runs))
        runs.append(run)
    if all(np.isnan(figure.measured) for figure in figures):
        raise InputError("no figure was measured", str(file), expected="a throughput in a row")
    with shared(SharedWork()):
        problem = Problem(runs, figures, exact)
        sample = problem.sampled(progress)
    weights, parts = normalised(problem.log_weights(sample)), ndtr(sample.scores)
    of_all = tuple(wholes), problem.doubts, tuple(figures)
    return Inference(*of_all, parts, sample.logs, weights, problem.refusal)


def _scenario_of(row: EngineRow, wholes: dict[str, Scenario]) -> str:
    """The scenario of ``wholes`` that a row is a run of, on its machine."""
    named = {name: name for name in wholes} | {one.name: name for name, one in wholes.items()}
    if row.scenario not in named and (row.scenario or len(wholes) > 1):
        raise row.error(
            "scenario",
            "scenario: not one of those that are asked about",
            row.scenario or None,
            near(row.scenario, named) or f"one of {', '.join(wholes)}",
        )
    name = named[row.scenario] if row.scenario else next(iter(wholes))
    if row.machine and row.machine != wholes[name].machine.name:
        raise row.error(
            "machine", "machine: evidence of another one", row.machine, wholes[name].machine.name
        )
    return name


def _labels(rows: Sequence[EngineRow], scenarios: Sequence[str]) -> list[str]:
    """What was measured in each row, with its scenario and its number where others are alike."""
    several = len(set(scenarios)) > 1
    of = [f" ({Path(name).stem})" if several else "" for name in scenarios]
    found = [f"{row.label}{which}" for row, which in zip(rows, of, strict=True)]
    alike = Counter(found)
    return [f"{label} (row {k})" if alike[label] > 1 else label for k, label in enumerate(found, 1)]


def _figures(row: EngineRow, label: str, run: Scenario, index: int) -> list[Figure]:
    """Its throughput and its traffic, measured or not."""
    spread = ASSUMED_SPREAD if row.spread is None else row.spread
    operation = run.settings["workload"]["operations"][row.operation]
    planes = system_of(run.system).planes
    plane = "flow" if "flow" in planes else "event"
    kind, system = kind_of(operation), str(run.settings["system"]["kind"])
    traffic = dict(row.traffic)
    found = [
        Figure(
            label, index, ("throughput", row.operation),
            Class(system, plane, kind, THROUGHPUT), row.throughput, spread, row.source, run.name,
        )
    ]  # fmt: skip
    return found + [
        Figure(
            f"{label}: {column.replace('_', ' ')}", index, ("bandwidth_Bps", way),
            Class(system, plane, kind, TRAFFIC), traffic.get(way, np.nan), spread, row.source,
            run.name,
        )
        for column, way in WAYS.items()
    ]  # fmt: skip


class Problem:
    """The runs, what they lean on, and the figures that are known of them."""

    def __init__(self, runs: Sequence[Scenario], figures: Sequence[Figure], exact: bool) -> None:
        self.runs, self.figures, self.exact = runs, figures, exact
        self.of_runs = [doubts_of(run) for run in runs]
        streams = {doubt.stream: doubt for doubts in self.of_runs for doubt in doubts}
        if not streams:
            raise InputError("nothing is unknown here", expected="'unknown' in the scenario")
        self.doubts = tuple(streams.values())
        at = {stream: k for k, stream in enumerate(streams)}
        self.columns = [[at[doubt.stream] for doubt in doubts] for doubts in self.of_runs]
        self.predictors = [Predictor(run) for run in runs]
        measured = np.array([figure.measured for figure in figures])
        self.seen = np.flatnonzero(np.isfinite(measured))
        self.logs = np.log(measured[self.seen])
        self.spreads = np.array([figures[k].spread for k in self.seen.tolist()])
        self.classes = [(figures[k].of, figures[k].source) for k in self.seen.tolist()]
        self.refusal = ""
        for k in self.seen.tolist():
            if figure_of(self.predictors[figures[k].run].own, figures[k].path) is None:
                raise InputError(f"{figures[k].label}: measured, but no prediction tells it here")

    def predicted(self, parts: Floats) -> Floats:
        """(F,) logarithms of all figures with each doubt at its of ``parts`` (D,); all NaN where
        these cannot be run, of which the first tells the ``refusal``.
        """
        logs = np.full(len(self.figures), np.nan)
        moments = []
        for run, doubts, columns, predictor in zip(
            self.runs, self.of_runs, self.columns, self.predictors, strict=True
        ):
            try:
                moments.append(predictor(varied(run, merged(doubts, parts[columns]))))
            except (InputError, DescriptionError) as failure:
                self.refusal = self.refusal or f"{failure}"
                return logs
        for k, figure in enumerate(self.figures):
            value = figure_of(moments[figure.run], figure.path)
            if value is not None:
                logs[k] = np.log(value) if value else -np.inf
        return logs

    def known(self, logs: Floats) -> list[tuple[Known, Floats]]:
        """What was measured by class and source, with the predictions of all draws."""
        found = []
        for of, source in dict.fromkeys(self.classes):
            here = np.array([k for k, one in enumerate(self.classes) if one == (of, source)])
            weights = EXACT if self.exact else error_weights(of, source)
            one = Known(of, self.logs[here], self.spreads[here], weights)
            predicted = logs[:, self.seen[here]]
            found.append((one, np.nan_to_num(predicted, nan=99.0, neginf=-99.0)))
        return found

    def log_weights(self, sample: Sample) -> Floats:
        """(N,) of the draws; those that cannot be run have none."""
        likelihood = log_likelihood(self.known(sample.logs), len(sample.logs))
        likelihood[np.isnan(sample.logs).all(1)] = -np.inf
        return np.asarray(likelihood + sample.prior - sample.proposed)

    def sampled(self, tell: Progress) -> Sample:
        """Draws until enough of them count, or the most are made."""
        count = len(self.doubts)
        components = [(np.zeros(count), np.eye(count))]
        scores = np.zeros((0, count))
        logs = np.zeros((0, len(self.figures)))
        while True:
            new = self._drawn(*components[-1], len(components))
            scores = np.vstack([scores, new])
            for k, row in enumerate(new):
                logs = np.vstack([logs, self.predicted(ndtr(row))])
                tell((len(logs) if k + 1 == DRAWS else len(logs) - 1) / DRAWS_MAX)
            if np.isnan(logs).all():
                raise InputError(f"none of {len(logs)} draws can be run, such as: {self.refusal}")
            each = [_log_density(scores, *one) for one in components]
            sample = Sample(scores, logs, logsumexp(each, axis=0) - np.log(len(each)))
            log_weights = self.log_weights(sample)
            if effective(normalised(log_weights)) >= ENOUGH or len(logs) >= DRAWS_MAX:
                tell(1.0)
                return sample
            components.append(self._suggested(sample, log_weights))

    @staticmethod
    def _drawn(mean: Floats, covariance: Floats, seed: int) -> Floats:
        """(DRAWS, D) scores of a Sobol set."""
        parts = qmc.Sobol(len(mean), scramble=True, seed=SEED + seed).random(DRAWS)
        inside = np.clip(parts, 1e-9, 1.0 - 1e-9)
        return np.asarray(mean + ndtri(inside) @ np.linalg.cholesky(covariance).T)

    def _suggested(self, sample: Sample, log_weights: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of the posterior if figures were linear in the scores, as they are
        where the draws count; what that leaves is noise.
        """
        weights = tempered(log_weights, 2.0 * len(self.doubts))
        root = np.sqrt(weights)[:, None]
        logs = sample.logs[:, self.seen]
        good = np.isfinite(logs).all(1) & (weights > 0.0)
        if not good.any():
            return np.zeros(len(self.doubts)), np.eye(len(self.doubts))
        inputs = np.column_stack([np.ones(len(logs)), sample.scores])
        x, y = (root * inputs)[good], root[good] * logs[good]
        ridge = np.eye(x.shape[1]) * float(weights[good].sum()) * 1e-2
        ridge[0, 0] = 0.0
        slopes = np.linalg.solve(x.T @ x + ridge, x.T @ y)
        left = ((y - x @ slopes) ** 2).sum(0) / weights[good].sum()
        likely = 0.01
        if not self.exact:  # the median of what the model's error may be in the first class
            below = np.cumsum(error_weights(*self.classes[0]))
            likely = float(DEVIATIONS[int(np.searchsorted(below, 0.5))])
        noise = 1.0 / (self.spreads**2 + likely**2 + left)
        covariance = covariance_of(slopes[1:].T, noise, 1.0)
        mean = covariance @ (slopes[1:] @ (noise * (self.logs - slopes[0])))
        return mean, 1.5 * covariance


def _log_density(scores: Floats, mean: Floats, covariance: Floats) -> Floats:
    """(N,) of a normal distribution, up to the constant that all have."""
    root = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(root, (scores - mean).T)
    return np.asarray(-0.5 * (whitened**2).sum(0) - np.log(np.diag(root)).sum())
