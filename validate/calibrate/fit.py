"""The fit: weighted, robust least squares within bounds, over what the measurements determine.

Residuals are differences of logarithms over the measurement's spread, so that each counts as far as
it is known; beyond some spreads it counts less and less (soft L1). Parameters that the measurements
leave open are taken out before (``identify.py``), and stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...inputs import InputError
from .identify import ERROR_MAX, INSENSITIVE, WEAK, Undetermined, determined, errors_of, is_bound
from .intervals import Estimate, Fit, finished, sigma_of, widths_of
from .observation import Observation
from .parameters import CURVE, Key, Parameter
from .search import Predict, SensitivePrediction, blocks_of, jacobian_of, moved_by, search

__all__ = ["Estimate", "Fit", "fit"]

ReportPart = Callable[[float], None]

ROUNDS_MAX = 6
SENSITIVITY_MIN = 1e-5
# Of a run: such a part of the measurement's spread. What a factor of two moves by less, a thousand
# such measurements leave unknown; and planes leave as much of their searches for agreement.
SENSITIVITY_OF_SPREAD = 0.02
# From where a parameter that was left alone is tried once more.
RETRIES = (1.0, 5.0)
RETRY_STEPS = 25
# Enough to see whether it is determined; if so, all are searched for again.
RETRY_TOLERANCE = 1e-5
# A search that begins with a standard error so many times too large does not end with a small one.
START_ERROR_FACTOR = 10.0
# An interval that reaches so far either way, in the parameter's coordinate, tells nothing: a factor
# of 4.5, or three times what is large.
HALF_MAX = 1.5
WIDENED = 2  # rounds in which spreads follow residuals


def fit(
    parameters: Sequence[Parameter],
    observations: Sequence[Observation],
    prediction: Predict,
    progress: ReportPart | None = None,
) -> Fit:
    """Fits ``parameters`` to ``observations``; ``prediction`` gets values by key.

    Raises InputError where no parameter depends on any of them.
    """
    report = progress or (lambda part: None)
    values = {p.key: p.start for p in parameters}
    sensitive = _sensitivity(
        parameters, observations, values, prediction, lambda part: report(0.3 * part)
    )
    predict = SensitivePrediction(prediction, sensitive)
    insensitive = [Undetermined(p, INSENSITIVE) for p in parameters if p.key not in sensitive]
    active = [p for p in parameters if p.key in sensitive]
    if not active:
        raise InputError("no measurement depends on a parameter of the machine")
    active, left, known = _settled(
        active, observations, predict, lambda part: report(0.3 + 0.3 * part)
    )
    tried = list(reversed(left))
    for index, candidate in enumerate(tried):
        again = _taken_in(candidate.parameter, active, observations, known, predict)
        if again is not None:
            active, known = [*active, candidate.parameter], again
            left.remove(candidate)
        report(0.6 + 0.3 * (index + 1) / len(tried))
    while True:
        known, widths = _widened(active, observations, known, predict)
        result = finished(active, [*left, *insensitive], observations, known, predict, widths)
        worst = max(result.estimates.values(), key=lambda estimate: estimate.half)
        if worst.half <= HALF_MAX or len(active) == 1:
            report(1.0)
            return result
        # Its residuals leave less known of it than its spreads let hope.
        left.append(Undetermined(worst.parameter, WEAK))
        active = [p for p in active if p is not worst.parameter]
        known = _without(known, left[-1:], active)
        if not all(predict(known, o) > 0 for o in observations):  # the machine has none of its own
            raise InputError(
                f"contradiction: measurements of '{worst.parameter.name}' differ too much"
            )


def _settled(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    predict: SensitivePrediction,
    report: ReportPart,
) -> tuple[list[Parameter], list[Undetermined], dict[Key, float]]:
    """The parameters that are determined where they fit best, those that are not, and the values.

    Rounds of both, until neither changes; and until nothing is seen to depend on more than before.
    """
    kept, left = list(active), list[Undetermined]()
    known = {p.key: p.start for p in kept}
    for round_number in range(ROUNDS_MAX):
        sigma = np.array([sigma_of(o, known, predict) for o in observations])
        jacobian = jacobian_of(kept, observations, known, predict) / sigma[:, None]
        kept, dropped = determined(kept, jacobian)
        left += dropped
        known = _without(known, dropped, kept)
        found = search(kept, observations, known, predict, sigma)
        moved = max(
            abs(p.inside(found[p.key]) - p.inside(known[p.key])) if p.key in known else 1.0
            for p in kept
        )
        known |= found
        report((round_number + 1) / ROUNDS_MAX)
        if dropped or moved >= 1e-4:
            continue
        here = _sensitivity(kept, observations, known, predict)
        more = {key: groups - predict.groups[key] for key, groups in here.items()}
        if not any(more.values()):
            break
        for key, groups in more.items():
            predict.groups[key].update(groups)
    return kept, left, known


def _widened(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: dict[Key, float],
    predict: SensitivePrediction,
) -> tuple[dict[Key, float], dict[str, float]]:
    """The best values where spreads are as wide as residuals tell; and how much, by kind."""
    widths: dict[str, float] = dict.fromkeys((o.kind for o in observations), 1.0)
    for _ in range(WIDENED):
        widths = widths_of(active, observations, known, predict, widths)
        sigma = np.array([widths[o.kind] * sigma_of(o, known, predict) for o in observations])
        known = known | search(active, observations, known, predict, sigma)
    return known, widths


def _without(
    known: Mapping[Key, float], dropped: Sequence[Undetermined], active: Sequence[Parameter]
) -> dict[Key, float]:
    """``known`` without what is left alone, for which the machine's own value stands.

    The curve is one thing: what is not known of it is what it began with.
    """
    any_curve = any(p.key[0] == "curve" for p in active)
    starts = {estimate.parameter.key: estimate.parameter.start for estimate in dropped}
    return {
        key: starts.get(key, value)
        for key, value in known.items()
        if (any_curve if key[0] == "curve" else key not in starts)
    }


def _sensitivity(
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    values: Mapping[Key, float],
    predict: Predict,
    report: ReportPart | None = None,
) -> dict[Key, set[str]]:
    """By parameter, the groups of which a prediction depends on it, here or a factor of two away.

    Some act only where they bind.
    """
    before = [predict(values, o) for o in observations]
    found: dict[Key, set[str]] = {}
    for index, p in enumerate(active):
        if report is not None:
            report(index / len(active))
        for sign in (1.0, -1.0):
            moved, _ = moved_by(values, p, 0.7 * sign)
            for o, b in zip(observations, before, strict=True):
                if o.kind.core and not p.core:
                    continue
                if o.group not in found.get(p.key, ()):
                    other = predict(moved, o)
                    least = SENSITIVITY_OF_SPREAD * o.sigma if o.kind.run else SENSITIVITY_MIN
                    if not (math.isclose(other, b, rel_tol=least) or other != other):
                        found.setdefault(p.key, set()).add(o.group)
    return found


def _taken_in(
    p: Parameter,
    active: Sequence[Parameter],
    observations: Sequence[Observation],
    known: Mapping[Key, float],
    predict: SensitivePrediction,
) -> dict[Key, float] | None:
    """The values with ``p`` fitted too, where it is determined at what is found; else None.

    What it began with may have been so far off that nothing depended on it there.
    """
    trial = next(block for block in blocks_of([*active, p], predict.groups) if p in block)
    groups = set().union(*(predict.groups[parameter.key] for parameter in trial))
    ones = [o for o in observations if o.group in groups]
    for factor in RETRIES:
        start = min(max(p.start * factor, p.low), p.high) if p.log else p.start
        begun = {**known, p.key: start}
        if p.key[0] == "curve" and not all(("curve", part) in begun for part in CURVE):
            return None
        sigma = np.array([sigma_of(o, begun, predict) for o in ones])
        jacobian = jacobian_of(trial, ones, begun, predict) / sigma[:, None]
        if is_bound(jacobian):
            continue  # to others, whatever its value
        if errors_of(jacobian)[trial.index(p)] > START_ERROR_FACTOR * ERROR_MAX:
            continue
        found = begun | search(trial, ones, begun, predict, sigma, RETRY_STEPS, RETRY_TOLERANCE)
        jacobian = jacobian_of(trial, ones, found, predict) / sigma[:, None]
        # Something depended on it there: from farther away the search would end where this one did.
        return None if determined(trial, jacobian)[1] else found
    return None
