"""What evidence makes of draws from a prior: their weights, and what is predicted by these.

Each draw of the unknowns predicts all figures. Its likelihood is that of the logarithms of measured
over predicted: a figure's own spread, and what the model is off by in its class, whose deviation is
unknown (``model_error``) and, of rates, partly the same for all figures of the class (``COMMON``):
rates that are all below their predictions lower the prediction of another one, too. Ratios have no
such common direction: which of two is the first is arbitrary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, logsumexp, ndtr

from ..sim.kernel.arrays import Floats as Floats
from ..sim.run.model_error import DEGREES, SCALES, THROUGHPUT, TRAFFIC, Class, known_error

COMMON = 0.5  # of the variance of the model's error in a class of rates
RATES = (THROUGHPUT, TRAFFIC)
# Student's errors are normal ones whose deviation is drawn, too.
DEVIATIONS = np.geomspace(0.01, 10.0, 60)
EXACT = np.eye(1, len(DEVIATIONS))[0]
"""Weights of ``DEVIATIONS`` of a model that is right to a percent."""
SCORES = np.linspace(-8.0, 8.0, 801)


def error_weights(of: Class, but_source: str | None = None) -> Floats:
    """(K,) weights of ``DEVIATIONS`` of the model's error by all evidence but that of a source: its
    scale, times the root of the degrees of freedom over a chi-squared number of as many.
    """
    ends = np.append(np.sqrt(DEVIATIONS[1:] * DEVIATIONS[:-1]), np.inf)
    below = chdtrc(DEGREES, DEGREES * (SCALES[:, None] / ends) ** 2)
    each = np.diff(below, axis=1, prepend=0.0)
    return np.asarray(known_error(of, but_source).weights @ each)


@dataclass(frozen=True)
class Known:
    """Figures of a class that are known: (M,) ``logs`` of what was measured, their ``spreads``
    (relative deviations), and the (K,) ``weights`` of ``DEVIATIONS`` before this evidence.
    """

    of: Class
    logs: Floats
    spreads: Floats
    weights: Floats

    def fitted(self, predicted: Floats) -> tuple[Floats, Floats, Floats]:
        """Of (N, M) logarithms of predictions: the (N, K) logarithms of their likelihood with each
        deviation, its weight included; and of a further figure of the class the (N, K) mean and
        variance of the model's error.
        """
        left = self.logs - predicted
        variance = DEVIATIONS**2
        part = COMMON if self.of.figure in RATES else 0.0
        own = 1.0 / (self.spreads**2 + (1.0 - part) * variance[:, None])  # (K, M)
        common = part * variance
        total = common * own.sum(1)
        pulled = left @ own.T  # (N, K)
        squares = left**2 @ own.T - common / (1.0 + total) * pulled**2
        scale = np.log(own).sum(1) - np.log1p(total)
        with np.errstate(divide="ignore"):
            log_likelihood = np.log(self.weights) + 0.5 * (scale - squares)
        mean = common / (1.0 + total) * pulled
        rest = (1.0 - part) * variance + common / (1.0 + total)
        return log_likelihood, mean, np.broadcast_to(rest, mean.shape)


def log_likelihood(known: Sequence[tuple[Known, Floats]], draws: int) -> Floats:
    """(draws,) of all classes of figures, each with its (draws, M) predictions."""
    found = np.zeros(draws)
    for one, predicted in known:
        found += logsumexp(one.fitted(predicted)[0], axis=1)
    return found


def normalised(log_weights: Floats) -> Floats:
    """(N,) weights that sum to 1; equal ones where none can be."""
    if not np.isfinite(log_weights).any():
        return np.full(len(log_weights), 1.0 / len(log_weights))
    weights = np.exp(log_weights - np.max(log_weights))
    return np.asarray(weights / weights.sum())


def effective(weights: Floats) -> float:
    """The size of an unweighted sample that tells as much (Kish)."""
    return float(1.0 / (weights**2).sum())


def tempered(log_weights: Floats, wanted: float) -> Floats:
    """Weights of so many effective draws: those of the posterior, the root of them, and so on."""
    power = 1.0
    while power > 1e-3:
        weights = normalised(power * log_weights)
        if effective(weights) >= min(wanted, 0.5 * len(weights)):
            return weights
        power *= 0.7
    return np.full(len(log_weights), 1.0 / len(log_weights))


def covariance_of(slopes: Floats, weights: Floats, prior: float) -> Floats:
    """(D, D) of unknowns of prior deviation ``prior``, by (M, D) slopes of figures about it; the
    (M,) ``weights`` are one over their variances.
    """
    known = np.eye(slopes.shape[1]) / prior**2 + slopes.T @ (weights[:, None] * slopes)
    return np.asarray(np.linalg.inv(known))


def quantiles(values: Floats, weights: Floats, parts: Sequence[float]) -> list[float]:
    """Of weighted values (N,), at ``parts`` of their probability."""
    order = np.argsort(values)
    middle = np.cumsum(weights[order]) - 0.5 * weights[order]
    return [float(v) for v in np.interp(parts, middle, values[order])]


def mixed_quantiles(
    means: Floats, variances: Floats, weights: Floats, parts: Sequence[float]
) -> list[float]:
    """Of a mixture of normal distributions, whose arrays are of one shape."""
    keep = weights > 1e-9
    mean, deviation, weight = means[keep], np.sqrt(variances[keep]), weights[keep]
    middle, width = float(weight @ mean) / float(weight.sum()), float(deviation.max())
    reach = max(width, float(np.ptp(mean)) / 6.0, 1e-6)
    at = middle + reach * SCORES
    below = np.array([float(weight @ ndtr((x - mean) / deviation)) for x in at])
    return [float(v) for v in np.interp(parts, below / below[-1], at)]


def predictive(
    predicted: Floats,
    log_weights: Floats,
    error: Floats,
    known: tuple[Known, Floats] | None,
    parts: Sequence[float],
) -> list[float]:
    """Quantiles of the logarithm of a figure whose (N,) logarithms are ``predicted``, by draws of
    ``log_weights`` that hold the likelihood of all known figures. ``error``: (K,) weights of
    deviations before evidence; ``known``: of its own class what is known, and its predictions.
    """
    if known is None:
        share = normalised(log_weights)[:, None] * error[None, :]
        means = np.broadcast_to(predicted[:, None], share.shape)
        return mixed_quantiles(means, np.broadcast_to(DEVIATIONS**2, share.shape), share, parts)
    likelihood, mean, variance = known[0].fitted(known[1])
    share = np.exp(likelihood - logsumexp(likelihood, axis=1, keepdims=True))
    share = share * normalised(log_weights)[:, None]
    return mixed_quantiles(predicted[:, None] + mean, variance, share, parts)
