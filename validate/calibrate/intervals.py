"""The result of a fit: intervals of parameters and of predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from ...inputs import Quantity
from .identify import Undetermined
from .observation import Observation
from .parameters import Key, Parameter
from .search import FAR, STEP, Predict, jacobian_of, moved_by

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
# Degrees of freedom of a spread that stands for itself, as no residual is wider than it says.
SPREAD_FREEDOM = 30.0
BOUND_NEAR = 1e-6
DIGITS = 4
NORMAL = 1.4826  # standard deviation of normal residuals over the median of their sizes


@dataclass(frozen=True)
class Estimate:
    """A fitted parameter: its value, and the interval that holds the truth with 95% confidence.

    ``half``: of the interval, in the parameter's coordinate.
    """

    parameter: Parameter
    value: float
    low: float
    high: float
    half: float
    at_bound: bool


@dataclass(frozen=True)
class Fit:
    """``estimates`` by key, ``left`` what was not determined; ``scatter``: by kind, how many of
    their spreads the residuals are wide (at least 1).
    """

    estimates: Mapping[Key, Estimate]
    left: tuple[Undetermined, ...]
    scatter: Mapping[str, float]
    parts: tuple[tuple[Floats, float], ...]
    """By kind of measurement: its part of the covariance of the coordinates of ``estimates``, in
    their order, and its degrees of freedom."""
    assumed: tuple[Parameter, ...]
    """Parameters of which neither the machine nor a measurement tells."""
    known: Mapping[Key, float]
    """The values of what was fitted, and of what else the curve needs."""
    _predict: Predict

    @property
    def values(self) -> dict[Key, float]:
        """The fitted values."""
        return {key: estimate.value for key, estimate in self.estimates.items()}

    def predicted(self, ones: Sequence[Observation]) -> list[tuple[float, float, float]]:
        """The figures that the fit predicts, and the intervals in which such ones lie with 95%
        confidence, as far as parameters and the model's misfit tell: the spread of their own
        measurements is not in it.
        """
        values = self.values
        logs = self._logs(values, ones)
        more = np.zeros(len(ones))
        for p in self.assumed:
            moved, step = moved_by({p.key: p.start}, p, STEP)
            more += ((self._logs({**values, **moved}, ones) - logs) / step * p.doubt) ** 2
        found = []
        for observation, slopes, doubt in zip(ones, self.slopes(ones), more, strict=True):
            value = self._predict(values, observation)
            half = 0.0
            if value > 0:
                excess = self.scatter.get(observation.kind, 1.0) ** 2 - 1.0
                misfit = excess * sigma_of(observation, values, self._predict) ** 2
                half = _half_width(slopes, self.parts, misfit + float(doubt))
            found.append((value, value * math.exp(-half), value * math.exp(half)))
        return found

    def slopes(self, ones: Sequence[Observation]) -> Floats:
        """(M, P) of the logarithms of what is predicted, over the coordinates of ``estimates``.

        One machine after the other, and of each all figures: to make one takes long.
        """
        logs = self._logs(self.values, ones)
        found = np.zeros((len(ones), len(self.estimates)))
        for k, estimate in enumerate(self.estimates.values()):
            moved, step = moved_by(self.values, estimate.parameter, STEP)
            found[:, k] = (self._logs(moved, ones) - logs) / step
        return found

    def _logs(self, values: Mapping[Key, float], ones: Sequence[Observation]) -> Floats:
        """(M,) logarithms of what is predicted; NaN where it is not above 0."""
        found = np.array(
            [self._predict(values, observation) for observation in ones], dtype=np.float64
        )
        return np.log(found, where=found > 0, out=np.full(len(ones), np.nan))

    def half_width(
        self, figure: Callable[[Mapping[Key, float]], float], more: float = 0.0
    ) -> float:
        """Half of the 95% interval of any function of the values, with a further variance."""
        return _half_width(self._slopes_of(figure), self.parts, more)

    def _slopes_of(self, figure: Callable[[Mapping[Key, float]], float]) -> Floats:
        value, slopes = figure(self.values), []
        for estimate in self.estimates.values():
            moved, step = moved_by(self.values, estimate.parameter, STEP)
            slopes.append((figure(moved) - value) / step)
        return np.array(slopes)


def sigma_of(observation: Observation, values: Mapping[Key, float], predict: Predict) -> float:
    """Spread of the figure, with that of the load at which it was measured (effective variance)."""
    if not observation.load_spread:
        return observation.sigma
    bounds = []
    for factor in (math.exp(-observation.load_spread), math.exp(observation.load_spread)):
        moved = Observation(
            observation.kind, observation.label, observation.value,
            observation.unit, observation.origin, observation.spread,
            {**observation.at, "load": observation.at["load"] * factor},
        )  # fmt: skip
        bounds.append(math.log(predict(values, moved)))
    # On one side a load beyond the peak tells nothing.
    return math.hypot(
        observation.sigma, max(abs(b - math.log(predict(values, observation))) for b in bounds)
    )


def widths_of(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: Predict,
    widths: Mapping[str, float],
) -> dict[str, float]:
    """By kind, how many of their spreads its residuals are wide, at least 1: by their median size,
    which outliers hardly move. Where spreads were stated too small, all figures would be outliers.
    """
    sigma = np.array([sigma_of(o, known, predict) for o in observations])
    predicted = np.array([predict(known, o) for o in observations])
    size = np.abs(np.log(predicted) - np.log([o.value for o in observations])) / sigma
    wide = sigma * np.array([widths[o.kind] for o in observations])
    jacobian = jacobian_of(active, observations, known, predict) / wide[:, None]
    inverse = np.linalg.pinv(jacobian.T @ jacobian)
    leverage = np.einsum("ij,jk,ik->i", jacobian, inverse, jacobian)
    kinds = np.array([o.kind for o in observations])
    found = {}
    for kind in widths:
        here = kinds == kind
        freedom = float(here.sum() - leverage[here].sum())
        part = math.sqrt(here.sum() / freedom) if freedom >= 0.5 else 0.0
        found[kind] = max(1.0, NORMAL * float(np.median(size[here])) * part)
    return found


def finished(
    active: Sequence[Parameter],
    left: Sequence[Undetermined],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: Predict,
    widths: Mapping[str, float],
) -> Fit:
    """Intervals from the covariance: (JᵀWJ)⁻¹, with the scatter of each kind's residuals.

    A kind whose residuals are wider than its spreads say has them widened (Birge). Its degrees of
    freedom are its figures less what the parameters take of them; those of a parameter follow from
    the kinds that determine it (Welch and Satterthwaite).
    """
    values = {p.key: known[p.key] for p in active}
    sigma = np.array([widths[o.kind] * sigma_of(o, known, predict) for o in observations])
    predicted = np.array([predict(known, o) for o in observations])
    residual = (np.log(predicted) - np.log([o.value for o in observations])) / sigma
    weight = 1.0 / np.sqrt(1.0 + (residual / FAR) ** 2)  # the slope of soft L1
    jacobian = jacobian_of(active, observations, known, predict) / sigma[:, None]
    weighted = jacobian * weight[:, None]
    inverse = np.linalg.pinv(jacobian.T @ weighted)
    leverage = np.einsum("ij,jk,ik->i", jacobian, inverse, weighted)
    kinds = np.array([o.kind for o in observations])
    scatter: dict[str, float] = {}
    parts: list[tuple[Floats, float]] = []
    for kind in dict.fromkeys(kinds.tolist()):
        here = kinds == kind
        freedom = float(here.sum() - leverage[here].sum())
        found = 1.0
        if freedom >= 0.5:
            found = math.sqrt(float((weight * residual**2)[here].sum()) / freedom)
        as_stated = found <= 1.0 and widths[kind] <= 1.0
        scatter[kind] = widths[kind] * max(found, 1.0)
        influence = inverse @ (weighted[here] * max(found, 1.0)).T
        parts.append((influence @ influence.T, SPREAD_FREEDOM if as_stated else freedom))
    estimates = {}
    for k, p in enumerate(active):
        half = _half_width(np.eye(len(active))[k], parts)
        inside = p.inside(values[p.key])
        low, high = p.inside(p.low) if p.low > 0 or not p.log else -math.inf, p.inside(p.high)
        estimates[p.key] = Estimate(
            p,
            values[p.key],
            max(p.outside(max(inside - half, low)), p.low),
            min(p.outside(min(inside + half, high)), p.high),
            half,
            min(inside - low, high - inside) < BOUND_NEAR,
        )
    assumed = tuple(left_out.parameter for left_out in left if left_out.parameter.doubt)
    return Fit(
        estimates, tuple(left), scatter, tuple(parts), assumed, known,
        lambda of_values, observation: predict({**known, **of_values}, observation),
    )  # fmt: skip


def _half_width(slopes: Floats, parts: Sequence[tuple[Floats, float]], more: float = 0.0) -> float:
    """Half of the 95% interval, by Student's t; its degrees of freedom by Satterthwaite."""
    found = [(float(slopes @ part @ slopes), freedom) for part, freedom in parts]
    found.append((more, SPREAD_FREEDOM))
    variance = sum(part for part, _ in found)
    if variance <= 0:
        return 0.0
    freedom = variance**2 / sum(part**2 / freedom for part, freedom in found)
    return _quantile(freedom) * math.sqrt(variance)


def _quantile(freedom: float) -> float:
    return float(student.ppf(0.5 + CONFIDENCE / 2, max(freedom, 1.0)))


def fitted_quantities(fit: Fit, source: Mapping[Key, str]) -> dict[Key, Quantity]:
    """The estimates as a machine file has them: value, range (95%), source with its date."""
    found: dict[Key, Quantity] = {}
    for key, estimate in fit.estimates.items():
        value, low, high = (rounded(x) for x in (estimate.value, estimate.low, estimate.high))
        if key[0] == "curve" or estimate.parameter.core:
            continue
        if value > 0 or key[0] == "turnaround":
            low = max(low, 1e-6 * value)  # what a file holds is not below 0
            found[key] = Quantity(value, min(low, value), max(high, value), source[key])
    return found


def rounded(value: float) -> float:
    """To as many digits as a machine file has of what was fitted."""
    return float(f"{value:.{DIGITS}g}")
