"""Why ``numatwin calibrate`` searches for the posterior's mode, and does not weigh draws as
``numatwin infer`` does: what draws tell of the tutorial's server (docs/calibrate.md).

Facts that its measurements determine are drawn from the fit's own prior, a Sobol set first, then
sets from what the draws so far suggest, each weighed by its likelihood over the mixture that it
came from: the way of ``validate/inference.py``. Measurements of a percent leave of such a prior a
part so small that hardly any draw lies in it. One JSON object a line: how many of the draws count,
and the processor time of both ways.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

from numatwin.sim.kernel.arrays import Floats
from numatwin.topologies import load_machine
from numatwin.validate.calibrate.calibration import calibrated, held_out, read_source
from numatwin.validate.calibrate.fit import FAR, PRIOR
from numatwin.validate.calibrate.parameters import pair_classes
from numatwin.validate.calibrate.predictions import Candidate, predict
from numatwin.validate.posterior import covariance_of, effective, normalised, tempered

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
SETS, DRAWS = 8, 256  # as many as numatwin infer makes at most
WIDER = 1.5  # as there, what is suggested


def drawn(
    predicted: Callable[[Floats], Floats], logs: Floats, spreads: Floats, start: Floats
) -> float:
    """How many draws count; coordinates are about ``start``, with the fit's prior."""
    count = len(start)
    components = [(start, np.eye(count) * PRIOR**2)]
    at, found = np.zeros((0, count)), np.zeros((0, len(logs)))
    for number in range(SETS):
        mean, covariance = components[-1]
        parts = qmc.Sobol(count, scramble=True, seed=number + 1).random(DRAWS)
        new = mean + ndtri(np.clip(parts, 1e-9, 1 - 1e-9)) @ np.linalg.cholesky(covariance).T
        at = np.vstack([at, new])
        found = np.vstack([found, [predicted(row) for row in new]])
        proposed = logsumexp([density(at, *one) for one in components], axis=0)
        left = (np.nan_to_num(found, nan=99.0) - logs) / spreads
        soft = -2.0 * FAR**2 * (np.sqrt(1.0 + (left / FAR) ** 2) - 1.0)
        off = ((at - start) / PRIOR) ** 2
        log_weights = 0.5 * (soft.sum(1) - off.sum(1)) - proposed
        components.append(suggested(at - start, found, logs, spreads, log_weights, start))
    return effective(normalised(log_weights))


def density(at: Floats, mean: Floats, covariance: Floats) -> Floats:
    """(N,) logarithm of a normal distribution, up to the constant that all have."""
    root = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(root, (at - mean).T)
    return np.asarray(-0.5 * (whitened**2).sum(0) - np.log(np.diag(root)).sum())


def suggested(
    moved: Floats, found: Floats, logs: Floats, spreads: Floats, log_weights: Floats, start: Floats
) -> tuple[Floats, Floats]:
    """Mean and covariance, if figures were linear in the coordinates."""
    weights = tempered(log_weights, 2.0 * len(start))
    good = np.isfinite(found).all(1)
    root = np.sqrt(weights[good])[:, None]
    x = root * np.column_stack([np.ones(good.sum()), moved[good]])
    y = root * found[good]
    ridge = np.eye(x.shape[1]) * 1e-2 * float(weights[good].sum())
    ridge[0, 0] = 0.0
    slopes = np.linalg.solve(x.T @ x + ridge, x.T @ y)
    noise = 1.0 / (spreads**2 + ((y - x @ slopes) ** 2).sum(0) / weights[good].sum())
    covariance = covariance_of(slopes[1:].T, noise, PRIOR)
    return start + covariance @ (slopes[1:] @ (noise * (logs - slopes[0]))), WIDER * covariance


def main() -> None:
    machine = load_machine(EXAMPLES / "server-2s.yaml")
    source = read_source(EXAMPLES / "mlc-2s.txt", machine)
    fitted, _ = held_out([source], None, 0)
    began = time.process_time()
    fit = calibrated(machine, [source]).fit
    searched_s = time.process_time() - began
    facts = [estimate.parameter for estimate in fit.estimates.values()]
    classes = pair_classes(machine)

    def predicted(coordinates: Floats) -> Floats:
        ends = [(p.inside(max(p.low, 1e-12)), p.inside(p.high)) for p in facts]
        inside = [min(max(u, low), high) for u, (low, high) in zip(coordinates, ends, strict=True)]
        own = {p.key: p.outside(float(u)) for p, u in zip(facts, inside, strict=True)}
        candidate = Candidate(machine, classes, {**fit.known, **own})
        return np.log([predict(candidate, one) for one in fitted])

    spreads = np.array([one.sigma * fit.scatter.get(one.kind, 1.0) for one in fitted])
    logs = np.log([one.value for one in fitted])
    start = np.array([p.inside(p.start) for p in facts])
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        count = drawn(predicted, logs, spreads, start)
    drawn_s = time.process_time() - began
    name = f"{len(facts)} facts of {len(fitted)} figures"
    rows = [
        (f"draws that count of {SETS * DRAWS:,}, {name}", count, "1", "100 for intervals", None),
        (f"weighing draws, {name}", drawn_s, "CPU-s", "the search", drawn_s / searched_s),
    ]
    for what, value, unit, versus, ratio in rows:
        line = {"name": f"calibration_by_draws/{what}", "value": round(value, 2), "unit": unit}
        print(json.dumps({**line, "versus": versus, "ratio": ratio and round(ratio, 1)}))


if __name__ == "__main__":
    main()
