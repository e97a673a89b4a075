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
STEPS_MAX = 200


@dataclass(frozen=True)
class Kinds:
    """A prediction, and by parameter the kinds of measurements that depend on it."""

    predict: Predict
    kinds: Mapping[Key, set[str]]

    def __call__(self, values: Mapping[Key, float], of: Observation) -> float:
        """The prediction itself."""
        return self.predict(values, of)


def moved_by(
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


def jacobian_of(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    values: Mapping[Key, float],
    predict: Kinds,
) -> Floats:
    """(M, P) slopes of the predictions' logarithms over coordinates, by central differences where
    bounds allow.
    """
    slopes = np.zeros((len(observations), len(active)))
    for k, p in enumerate(active):
        up, step_up = moved_by(values, p, STEP)
        down, step_down = moved_by(values, p, -STEP)
        if step_up == step_down:  # at a bound
            down, step_down = dict(values), 0.0
        here = [m for m, o in enumerate(observations) if o.kind in predict.kinds[p.key]]
        above = np.log([predict(up, observations[m]) for m in here])
        below = np.log([predict(down, observations[m]) for m in here])
        slopes[here, k] = (above - below) / (step_up - step_down)
    return slopes


def search(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: Kinds,
    sigma: Floats,
    steps_max: int = STEPS_MAX,
) -> dict[Key, float]:
    """The best values of ``active``; what has no measurement in common is searched apart."""
    found = dict(known)
    for block in blocks_of(active, predict.kinds):
        kinds = set().union(*(predict.kinds[p.key] for p in block))
        here = [m for m, o in enumerate(observations) if o.kind in kinds]
        ones = [observations[m] for m in here]
        found |= _search_block(block, ones, found, predict, sigma[here], steps_max)
    return {p.key: found[p.key] for p in active}


def blocks_of(active: Sequence[Parameter], kinds: Mapping[Key, set[str]]) -> list[list[Parameter]]:
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
    predict: Kinds,
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
        return np.asarray(jacobian_of(active, observations, values_at(x), predict) / sigma[:, None])

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
