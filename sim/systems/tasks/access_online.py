"""Regressions of the run time by access path that learn from each scan that is run.

A scan that is run tells the time of the path that it took alone. A regression of these only would
be of the scans that its own path is chosen for, and lead astray elsewhere. So some scans take the
other path, and each counts with one over the probability of the path that it took (Horvitz and
Thompson, A Generalization of Sampling Without Replacement From a Finite Universe, JASA 47, 1952):
on average the regressions are then those of all scans by both paths. The n-th takes the other path
with the probability n^(-1/3), as in epoch-greedy (Langford and Zhang, NIPS 2007).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import cbrt

import numpy as np
import numpy.typing as npt

from .access_models import Line

Floats = npt.NDArray[np.float64]

EXPLORED_MAX = 0.5


@dataclass
class OnlineLine:
    """A linear regression that goes on with each observation: recursive least squares.

    ``scale`` (5,): what features are divided by, so that none outweighs the others.
    """

    scale: Floats
    ridge: float = 1e-3
    weights: Floats = field(init=False)
    _spread: Floats = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.scale) + 1
        self.weights = np.zeros(size)
        self._spread = np.eye(size) / self.ridge

    def seconds(self, features: Floats) -> float:
        """Of a scan with ``features`` (5,)."""
        return float(self._row(features) @ self.weights)

    def learn(self, features: Floats, seconds: float, weight: float = 1.0) -> None:
        """Of one scan with ``features`` (5,), which counts as ``weight`` of them."""
        row = self._row(features)
        towards = self._spread @ row
        gain = towards / (1.0 / weight + row @ towards)
        self.weights = self.weights + gain * (seconds - row @ self.weights)
        self._spread = self._spread - np.outer(gain, towards)

    def line(self) -> Line:
        """As a model has it."""
        weights = (self.weights[:-1] / self.scale).tolist()
        return Line(weights=tuple(weights), intercept=float(self.weights[-1]))

    def _row(self, features: Floats) -> Floats:
        return np.append(features / self.scale, 1.0)


@dataclass(frozen=True)
class Learned:
    """Regressions of both paths, and how they came about, as scans double.

    ``curve``: (scans until then; time that the choices since the last entry lose against the
    oracle, as a part of it; the same of the paths that were taken, with those for learning).
    """

    cpu: Line
    engine: Line
    curve: tuple[tuple[int, float, float], ...]


def explored(number: int) -> float:
    """The probability that scan ``number``, from 1 on, takes the path that was not chosen."""
    return min(EXPLORED_MAX, 1.0 / cbrt(number))


def learn_online(
    features: Floats, cpu_s: Floats, engine_s: Floats, first: int, seed: int
) -> Learned:
    """Runs scans (N,) with ``features`` (N, 5) one by one, in drawn order: the ``first`` by both
    paths, each further one by the path that is chosen, or for learning by the other.
    """
    random = np.random.default_rng([seed, 2])
    scale = np.maximum(np.abs(features).max(axis=0), 1e-300)
    cpu, engine = OnlineLine(scale), OnlineLine(scale)
    order, drawn = random.permutation(len(features)), random.random(len(features))
    curve: list[tuple[int, float, float]] = []
    chosen_s = taken_s = best_s = 0.0
    mark = 2 * first
    for number, row in enumerate(order.tolist(), 1):
        feature, times = features[row], (float(cpu_s[row]), float(engine_s[row]))
        if number <= first:
            cpu.learn(feature, times[0])
            engine.learn(feature, times[1])
            continue
        chosen = engine.seconds(feature) < cpu.seconds(feature)
        probability = explored(number)
        other = bool(drawn[number - 1] < probability)
        taken = chosen != other
        path = engine if taken else cpu
        path.learn(feature, times[taken], 1.0 / (probability if other else 1.0 - probability))
        chosen_s += times[chosen]
        taken_s += times[taken]
        best_s += min(times)
        if number == mark or number == len(order):
            curve.append((number, chosen_s / best_s - 1.0, taken_s / best_s - 1.0))
            chosen_s = taken_s = best_s = 0.0
            mark *= 2
    return Learned(cpu.line(), engine.line(), tuple(curve))
