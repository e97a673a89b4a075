"""The search: least squares within bounds over logarithms of residuals, and what they slope by.

A wide prior about its start holds a parameter that the measurements leave open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from .observation import Observation
from .parameters import Key, Parameter

Floats = npt.NDArray[np.float64]
Predict = Callable[[Mapping[Key, float], Observation], float]

STEP = 1e-4  # of a coordinate, for derivatives; coordinates are about 1 wide
PRIOR = 2.0  # deviation of a coordinate from its start
FAR = 2.0  # spreads; beyond them a residual counts less
LOST = 50.0  # spreads, of the median: where all residuals are so far off, none is an outlier
STEPS_MAX, ROUGH, TOLERANCE = 200, 1e-2, 1e-7  # of the sum of squares, what a step gains


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
    predict: Predict,
    *,
    step: float = STEP,
    central: bool = True,
) -> Floats:
    """(M, P) slopes of the predictions' logarithms over coordinates, by central differences where
    bounds allow, or else by one-sided ones: half as many predictions, where these stand already.
    What tells of core times says nothing of other facts, which could be bent to meet it.
    """
    slopes = np.zeros((len(observations), len(active)))
    for k, p in enumerate(active):
        up, step_up = moved_by(values, p, step)
        down, step_down = moved_by(values, p, -step)
        if step_up == step_down or not central:  # at a bound
            down, step_down = dict(values), 0.0
        here = [m for m, o in enumerate(observations) if o.kind.core == p.core]
        above = np.log([predict(up, observations[m]) for m in here])
        below = np.log([predict(down, observations[m]) for m in here])
        slopes[here, k] = (above - below) / (step_up - step_down)
    return slopes


def search(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: Predict,
    sigma: Floats,
    *,
    rough: bool = False,
) -> dict[Key, float]:
    """``known`` with the best values of ``active``, those of core times last.

    ``rough``: nearly so, in few steps; outliers count as much as other figures.
    """
    found = dict(known)
    for core in (False, True):
        block = [p for p in active if p.core == core]
        here = [m for m, o in enumerate(observations) if o.kind.core == core]
        if block and here:
            ones, spreads = [observations[m] for m in here], sigma[here]
            found |= _Problem(block, ones, found, predict, spreads).solved(rough)
    return found


class _Problem:
    """Residuals of ``active`` coordinates, in spreads, and their slopes."""

    def __init__(
        self,
        active: Sequence[Parameter],
        observations: Sequence[Observation],
        known: Mapping[Key, float],
        predict: Predict,
        sigma: Floats,
    ) -> None:
        self.active, self.observations, self.known = active, observations, known
        self.predict, self.sigma = predict, sigma
        self.measured = np.log([o.value for o in observations])
        self.starts = np.array([p.inside(p.start) for p in active])

    def values_at(self, x: Floats) -> dict[Key, float]:
        own = {p.key: p.outside(float(u)) for p, u in zip(self.active, x, strict=True)}
        return {**self.known, **own}

    def residuals(self, x: Floats) -> Floats:
        values = self.values_at(x)
        predicted = np.log([self.predict(values, o) for o in self.observations])
        return np.append((predicted - self.measured) / self.sigma, (x - self.starts) / PRIOR)

    def slopes(self, x: Floats) -> Floats:
        values = self.values_at(x)
        slopes = jacobian_of(self.active, self.observations, values, self.predict, central=False)
        return np.vstack([slopes / self.sigma[:, None], np.eye(len(x)) / PRIOR])

    def solved(self, rough: bool) -> dict[Key, float]:
        """The best values; of core times the better of two ends, as runs have several optima."""
        start = np.array([p.inside(self.known[p.key]) for p in self.active])
        if not rough:
            return self.values_at(self._least(start, "soft_l1", TOLERANCE))
        losses = ["linear"]
        if self.active[0].core and np.median(np.abs(self.residuals(start))) < LOST:
            losses.append("soft_l1")
        ends = [self._least(start, loss, ROUGH) for loss in losses]
        return self.values_at(min(ends, key=self._cost) if len(ends) > 1 else ends[0])

    def _cost(self, x: Floats) -> float:
        """What soft L1 makes of the residuals."""
        return float(np.sqrt(1.0 + (self.residuals(x) / FAR) ** 2).sum())

    def _least(self, start: Floats, loss: str, tolerance: float) -> Floats:
        low = np.array([p.inside(p.low) for p in self.active])
        high = np.array([p.inside(p.high) for p in self.active])
        room = 1e-9 * (high - low)
        found = least_squares(
            self.residuals,
            np.clip(start, low + room, high - room),
            jac=self.slopes,
            bounds=(low, high),
            loss=loss,
            f_scale=FAR,
            x_scale="jac",
            xtol=1e-6,
            ftol=tolerance,
            max_nfev=STEPS_MAX,
        )
        return np.asarray(found.x)
