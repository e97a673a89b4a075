"""The search: least squares within bounds over logarithms of residuals, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from .observation import Observation
from .parameters import Key, Parameter

Floats = npt.NDArray[np.float64]
Predict = Callable[[Mapping[Key, float], Observation], float]

STEP = 1e-4  # of a coordinate, for derivatives; coordinates are about 1 wide
FAR = 2.0  # spreads; beyond them a residual counts less
STEPS_MAX, TOLERANCE = 200, 1e-10


@dataclass(frozen=True)
class SensitivePrediction:
    """A prediction, and by parameter the groups of measurements that depend on it."""

    predict: Predict
    groups: Mapping[Key, set[str]]

    def __call__(self, values: Mapping[Key, float], observation: Observation) -> float:
        """The prediction itself."""
        return self.predict(values, observation)


def moved_by(
    values: Mapping[Key, float], p: Parameter, step: float
) -> tuple[dict[Key, float], float]:
    """The values with one coordinate moved, away from a bound that is in the way; and by what."""
    inside = p.inside(values[p.key])
    low = p.inside(p.low) if p.low > 0 or not p.log else -math.inf
    high = p.inside(p.high)
    target = min(max(inside + step, low), high)
    if abs(target - inside) < 0.5 * abs(step):
        target = min(max(inside - step, low), high)
    return {**values, p.key: p.outside(target)}, target - inside


def jacobian_of(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    values: Mapping[Key, float],
    predict: SensitivePrediction,
    *,
    central: bool = True,
) -> Floats:
    """(M, P) slopes of the predictions' logarithms over coordinates, by central differences where
    bounds allow, or else by one-sided ones: half as many predictions, where these stand already.
    """
    slopes = np.zeros((len(observations), len(active)))
    for k, p in enumerate(active):
        up, step_up = moved_by(values, p, STEP)
        down, step_down = moved_by(values, p, -STEP)
        if step_up == step_down or not central:  # at a bound
            down, step_down = dict(values), 0.0
        here = [m for m, o in enumerate(observations) if o.group in predict.groups[p.key]]
        above = np.log([predict(up, observations[m]) for m in here])
        below = np.log([predict(down, observations[m]) for m in here])
        slopes[here, k] = (above - below) / (step_up - step_down)
    return slopes


def search(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: SensitivePrediction,
    sigma: Floats,
    steps_max: int = STEPS_MAX,
    tolerance: float = TOLERANCE,
) -> dict[Key, float]:
    """The best values of ``active``; what has no measurement in common is searched separately.

    It ends where a step gains less than the ``tolerance`` of the sum of squares.
    """
    found = dict(known)
    for block in blocks_of(active, predict.groups):
        groups = set().union(*(predict.groups[p.key] for p in block))
        here = [m for m, o in enumerate(observations) if o.group in groups]
        ones = [observations[m] for m in here]
        found |= _search_block(block, ones, found, predict, sigma[here], steps_max, tolerance)
    return {p.key: found[p.key] for p in active}


def blocks_of(active: Sequence[Parameter], groups: Mapping[Key, set[str]]) -> list[list[Parameter]]:
    """Parameters that share groups of measurements, directly or through others."""
    blocks: list[tuple[list[Parameter], set[str]]] = []
    for p in active:
        joined, group = [p], set(groups[p.key])
        separate = []
        for block, others in blocks:
            if group & others:
                joined, group = [*block, *joined], group | others
            else:
                separate.append((block, others))
        blocks = [*separate, (joined, group)]
    return [block for block, _ in blocks]


def _search_block(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: SensitivePrediction,
    sigma: Floats,
    steps_max: int,
    tolerance: float,
) -> dict[Key, float]:
    measured = np.log([o.value for o in observations])

    def values_at(x: Floats) -> dict[Key, float]:
        return {**known, **{p.key: p.outside(float(u)) for p, u in zip(active, x, strict=True)}}

    def residuals(x: Floats) -> Floats:
        values = values_at(x)
        predicted = np.array([predict(values, o) for o in observations])
        return np.asarray((np.log(predicted) - measured) / sigma)

    def jacobian(x: Floats) -> Floats:
        slopes = jacobian_of(active, observations, values_at(x), predict, central=False)
        return np.asarray(slopes / sigma[:, None])

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
        ftol=tolerance,
        max_nfev=steps_max,
    )
    return {p.key: p.outside(float(u)) for p, u in zip(active, found.x, strict=True)}
