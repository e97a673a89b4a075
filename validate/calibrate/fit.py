"""The fit: weighted, robust least squares within bounds, over what the measurements determine.

Residuals are differences of logarithms over the measurement's spread, so that each counts as far as
it is known; beyond some spreads it counts less and less (soft L1). Parameters that the measurements
leave open are taken out before (``identify.py``), and stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from scipy.stats import t as student

from ...inputs import InputError
from .identify import UNTOLD, Undetermined, determined, is_bound
from .observation import CORE_KINDS, Observation
from .parameters import CURVE, Key, Parameter

Floats = npt.NDArray[np.float64]
Predict = Callable[[Mapping[Key, float], Observation], float]

STEP = 1e-4  # of a coordinate, for derivatives; coordinates are about 1 wide
FAR = 2.0  # spreads; beyond them a residual counts less
ROUNDS_MAX = 6
CONFIDENCE = 0.95
# Degrees of freedom of a spread that stands for itself, as no residual is wider than it says.
SPREAD_FREEDOM = 30.0
BOUND_NEAR = 1e-6
TOLD_MIN = 1e-5  # less is what planes leave of their search for rates
# From where a parameter that was left alone is tried once more.
RETRIES = (1.0, 5.0)
WIDENED = 2  # rounds in which spreads follow residuals
NORMAL = 1.4826  # standard deviation of normal residuals over the median of their sizes
RETRY_STEPS, STEPS_MAX = 25, 200


@dataclass(frozen=True)
class Estimate:
    """A fitted parameter: its value, and the interval that holds the truth with 95% confidence."""

    parameter: Parameter
    value: float
    low: float
    high: float
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

    def predicted(self, of: Observation) -> tuple[float, float, float]:
        """The figure that the fit predicts, and the interval in which one such lies with 95%
        confidence, as far as parameters and the model's misfit tell: the spread of its own
        measurement is not in it.
        """
        value = self._predict(self.values, of)
        if not value > 0:
            return value, value, value
        excess = self.scatter.get(of.kind, 1.0) ** 2 - 1.0
        more = excess * sigma_of(of, self.values, self._predict) ** 2
        for p in self.assumed:
            moved, step = _moved({p.key: p.start}, p, STEP)
            other = self._predict({**self.values, **moved}, of)
            more += ((math.log(other / value)) / step * p.doubt) ** 2
        half = self.half_width(lambda values: math.log(self._predict(values, of)), more)
        return value, value * math.exp(-half), value * math.exp(half)

    def slopes(self, of: Observation) -> Floats:
        """Of the logarithm of what is predicted, over the coordinates of ``estimates``."""
        return self._slopes_of(lambda values: math.log(self._predict(values, of)))

    def half_width(self, of: Callable[[Mapping[Key, float]], float], more: float = 0.0) -> float:
        """Half of the 95% interval of any function of the values, with a further variance."""
        return _half_width(self._slopes_of(of), self.parts, more)

    def _slopes_of(self, of: Callable[[Mapping[Key, float]], float]) -> Floats:
        at, slopes = of(self.values), []
        for estimate in self.estimates.values():
            moved, step = _moved(self.values, estimate.parameter, STEP)
            slopes.append((of(moved) - at) / step)
        return np.array(slopes)


def sigma_of(of: Observation, values: Mapping[Key, float], predict: Predict) -> float:
    """Spread of the figure, with that of the load at which it was measured (effective variance)."""
    if not of.load_spread:
        return of.sigma
    bounds = []
    for factor in (math.exp(-of.load_spread), math.exp(of.load_spread)):
        moved = Observation(
            of.kind, of.label, of.value, of.unit, of.origin, of.spread,
            {**of.at, "load": of.at["load"] * factor},
        )  # fmt: skip
        bounds.append(math.log(predict(values, moved)))
    # On one side a load beyond the peak tells nothing.
    return math.hypot(of.sigma, max(abs(b - math.log(predict(values, of))) for b in bounds))


def fit(
    parameters: Sequence[Parameter],
    observations: Sequence[Observation],
    prediction: Predict,
    progress: Callable[[float], None] | None = None,
) -> Fit:
    """Fits ``parameters`` to ``observations``; ``prediction`` gets values by key.

    Raises InputError where no parameter depends on any of them.
    """
    active = list(parameters)
    values = {p.key: p.start for p in active}
    told = _told_of(active, observations, values, prediction)
    predict = _Kinds(prediction, told)
    untold = [Undetermined(p, UNTOLD) for p in active if p.key not in told]
    active = [p for p in active if p.key in told]
    if not active:
        raise InputError("no measurement tells of a parameter of the machine")
    left: list[Undetermined] = []
    known = {p.key: p.start for p in active}
    for at in range(ROUNDS_MAX):
        sigma = np.array([sigma_of(o, known, predict) for o in observations])
        jacobian = _jacobian(active, observations, known, predict) / sigma[:, None]
        active, dropped = determined(active, jacobian)
        left += dropped
        known = _without(known, dropped, active)
        found = _search(active, observations, known, predict, sigma)
        moved = max(
            abs(p.inside(found[p.key]) - p.inside(known[p.key])) if p.key in known else 1.0
            for p in active
        )
        known |= found
        if progress is not None:
            progress((at + 1) / ROUNDS_MAX)
        if not dropped and moved < 1e-4:
            break
    for one in reversed(left[:]):
        again = _taken_in(one.parameter, active, observations, known, predict)
        if again is not None:
            active, known = [*active, one.parameter], again
            left.remove(one)
    widths = dict.fromkeys((o.kind for o in observations), 1.0)
    for _ in range(WIDENED):
        widths = _widths(active, observations, known, predict, widths)
        sigma = np.array([widths[o.kind] * sigma_of(o, known, predict) for o in observations])
        known |= _search(active, observations, known, predict, sigma)
    return _finished(active, [*left, *untold], observations, known, predict, widths)


def _widths(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: _Kinds,
    widths: Mapping[str, float],
) -> dict[str, float]:
    """By kind, how many of their spreads its residuals are wide, at least 1: by their median size,
    which outliers hardly move. Where spreads were told too small, all figures would be outliers.
    """
    sigma = np.array([sigma_of(o, known, predict) for o in observations])
    predicted = np.array([predict(known, o) for o in observations])
    size = np.abs(np.log(predicted) - np.log([o.value for o in observations])) / sigma
    wide = sigma * np.array([widths[o.kind] for o in observations])
    jacobian = _jacobian(active, observations, known, predict) / wide[:, None]
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


def _taken_in(
    p: Parameter,
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: _Kinds,
) -> dict[Key, float] | None:
    """The values with ``p`` fitted too, where it is determined at what is found; else None.

    What it began with may have been so far off that nothing depended on it there.
    """
    trial = next(block for block in _blocks([*active, p], predict.kinds) if p in block)
    kinds = set().union(*(predict.kinds[one.key] for one in trial))
    ones = [o for o in observations if o.kind in kinds]
    for factor in RETRIES:
        start = min(max(p.start * factor, p.low), p.high) if p.log else p.start
        begun = {**known, p.key: start}
        if p.key[0] == "curve" and not all(("curve", part) in begun for part in CURVE):
            return None
        sigma = np.array([sigma_of(o, begun, predict) for o in ones])
        if is_bound(_jacobian(trial, ones, begun, predict) / sigma[:, None]):
            continue  # to others, whatever its value
        found = begun | _search(trial, ones, begun, predict, sigma, RETRY_STEPS)
        jacobian = _jacobian(trial, ones, found, predict) / sigma[:, None]
        if not determined(trial, jacobian)[1]:
            return found
    return None


@dataclass(frozen=True)
class _Kinds:
    """A prediction, and by parameter the kinds of measurements that depend on it."""

    predict: Predict
    kinds: Mapping[Key, set[str]]

    def __call__(self, values: Mapping[Key, float], of: Observation) -> float:
        return self.predict(values, of)


def _without(
    known: Mapping[Key, float], dropped: Sequence[Undetermined], active: Sequence[Parameter]
) -> dict[Key, float]:
    """``known`` without what is left alone, for which the machine's own value stands.

    The curve is one thing: what is not known of it is what it began with.
    """
    any_curve = any(p.key[0] == "curve" for p in active)
    starts = {one.parameter.key: one.parameter.start for one in dropped}
    return {
        key: starts.get(key, value)
        for key, value in known.items()
        if (any_curve if key[0] == "curve" else key not in starts)
    }


def _told_of(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    values: Mapping[Key, float],
    predict: Predict,
) -> dict[Key, set[str]]:
    """By parameter, the kinds of which a prediction depends on it, here or a factor of two away.

    Some act only where they bind.
    """
    before = [predict(values, o) for o in observations]
    found: dict[Key, set[str]] = {}
    for p in active:
        for way in (1.0, -1.0):
            moved, _ = _moved(values, p, 0.7 * way)
            for o, b in zip(observations, before, strict=True):
                if o.kind in CORE_KINDS and p.key[0] not in ("loop", "core"):
                    continue
                if o.kind not in found.get(p.key, ()):
                    other = predict(moved, o)
                    if not (math.isclose(other, b, rel_tol=TOLD_MIN) or other != other):
                        found.setdefault(p.key, set()).add(o.kind)
    return found


def _moved(
    values: Mapping[Key, float], p: Parameter, step: float
) -> tuple[dict[Key, float], float]:
    """The values with one coordinate moved, away from a bound that is in the way; and by what."""
    at = p.inside(values[p.key])
    low = p.inside(p.low) if p.low > 0 or not p.log else -math.inf
    high = p.inside(p.high)
    target = min(max(at + step, low), high)
    if abs(target - at) < 0.5 * abs(step):
        target = min(max(at - step, low), high)
    return {**values, p.key: p.outside(target)}, target - at


def _jacobian(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    values: Mapping[Key, float],
    predict: _Kinds,
) -> Floats:
    """(M, P) slopes of the predictions' logarithms over coordinates, by central differences where
    bounds allow.
    """
    slopes = np.zeros((len(observations), len(active)))
    for k, p in enumerate(active):
        up, step_up = _moved(values, p, STEP)
        down, step_down = _moved(values, p, -STEP)
        if step_up == step_down:  # at a bound
            down, step_down = dict(values), 0.0
        here = [m for m, o in enumerate(observations) if o.kind in predict.kinds[p.key]]
        above = np.log([predict(up, observations[m]) for m in here])
        below = np.log([predict(down, observations[m]) for m in here])
        slopes[here, k] = (above - below) / (step_up - step_down)
    return slopes


def _search(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: _Kinds,
    sigma: Floats,
    steps_max: int = STEPS_MAX,
) -> dict[Key, float]:
    """The best values of ``active``; what has no measurement in common is searched apart."""
    found = dict(known)
    for block in _blocks(active, predict.kinds):
        kinds = set().union(*(predict.kinds[p.key] for p in block))
        here = [m for m, o in enumerate(observations) if o.kind in kinds]
        ones = [observations[m] for m in here]
        found |= _search_block(block, ones, found, predict, sigma[here], steps_max)
    return {p.key: found[p.key] for p in active}


def _blocks(active: Sequence[Parameter], kinds: Mapping[Key, set[str]]) -> list[list[Parameter]]:
    """Parameters that share kinds of measurements, directly or through others."""
    blocks: list[tuple[list[Parameter], set[str]]] = []
    for p in active:
        joined, of = [p], set(kinds[p.key])
        apart = []
        for block, others in blocks:
            if of & others:
                joined, of = [*block, *joined], of | others
            else:
                apart.append((block, others))
        blocks = [*apart, (joined, of)]
    return [block for block, _ in blocks]


def _search_block(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: _Kinds,
    sigma: Floats,
    steps_max: int,
) -> dict[Key, float]:
    measured = np.log([o.value for o in observations])

    def values_at(x: Floats) -> dict[Key, float]:
        return {**known, **{p.key: p.outside(float(u)) for p, u in zip(active, x, strict=True)}}

    def residuals(x: Floats) -> Floats:
        values = values_at(x)
        predicted = np.array([predict(values, o) for o in observations])
        return np.asarray((np.log(predicted) - measured) / sigma)

    def jacobian(x: Floats) -> Floats:
        return np.asarray(_jacobian(active, observations, values_at(x), predict) / sigma[:, None])

    low = np.array([p.inside(p.low) for p in active])
    high = np.array([p.inside(p.high) for p in active])
    room = 1e-9 * (high - low)
    start = np.clip([p.inside(known[p.key]) for p in active], low + room, high - room)
    found = least_squares(
        residuals,
        start,
        jac=jacobian,
        bounds=(low, high),
        loss="soft_l1",
        f_scale=FAR,
        x_scale="jac",
        xtol=1e-8,
        ftol=1e-10,
        max_nfev=steps_max,
    )
    return {p.key: p.outside(float(u)) for p, u in zip(active, found.x, strict=True)}


def _finished(
    active: Sequence[Parameter],
    left: Sequence[Undetermined],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: _Kinds,
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
    jacobian = _jacobian(active, observations, known, predict) / sigma[:, None]
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
        as_told = found <= 1.0 and widths[kind] <= 1.0
        scatter[kind] = widths[kind] * max(found, 1.0)
        influence = inverse @ (weighted[here] * max(found, 1.0)).T
        parts.append((influence @ influence.T, SPREAD_FREEDOM if as_told else freedom))
    estimates = {}
    for k, p in enumerate(active):
        half = _half_width(np.eye(len(active))[k], parts)
        at = p.inside(values[p.key])
        low, high = p.inside(p.low) if p.low > 0 or not p.log else -math.inf, p.inside(p.high)
        estimates[p.key] = Estimate(
            p,
            values[p.key],
            max(p.outside(at - half), p.low),
            min(p.outside(at + half), p.high),
            min(at - low, high - at) < BOUND_NEAR,
        )
    assumed = tuple(one.parameter for one in left if one.parameter.doubt)
    return Fit(
        estimates, tuple(left), scatter, tuple(parts), assumed, known,
        lambda of_values, of: predict({**known, **of_values}, of),
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
