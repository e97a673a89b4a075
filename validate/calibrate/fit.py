"""The fit: weighted, robust least squares within bounds, over what the measurements determine.

Residuals are differences of logarithms over the measurement's spread, so that each counts as far as
it is known; beyond some spreads it counts less and less (soft L1). All parameters are searched for
at once; those that the measurements leave open where they fit best (``identify.py``) go back to
what they were, and the others are searched for again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...inputs import InputError
from .identify import INSENSITIVE, WEAK, Undetermined, determined
from .intervals import Fit, finished, sigma_of, widths_of
from .observation import Observation
from .parameters import Key, Parameter
from .search import Predict, jacobian_of, search

Floats = npt.NDArray[np.float64]

WIDE = 0.7
WIDENED = 2  # rounds in which spreads follow residuals
# Of a measurement's spread: what a thousand such measurements leave unknown, and as much as planes
# leave of their searches for agreement.
SENSITIVITY_MIN = 0.02
# An interval that reaches so far either way, in the parameter's coordinate, tells nothing: a factor
# of 4.5, or three times what is large.
HALF_MAX = 1.5
USUAL = 200  # predictions of all figures: what a fit takes is known when it is done


class NothingDetermined(InputError):
    """No parameter is determined by the measurements."""


def fit(
    parameters: Sequence[Parameter],
    observations: Sequence[Observation],
    predict: Predict,
    progress: Callable[[float], None] | None = None,
) -> Fit:
    """Fits ``parameters`` to ``observations``; ``predict`` gets values by key.

    Raises NothingDetermined where no parameter is.
    """
    silent, predict = predict, _reporting(predict, len(observations), progress)
    known = {p.key: p.start for p in parameters}
    sigma = np.array([sigma_of(o, known, predict) for o in observations])
    # A factor of two away, too: some parameters act only where they bind.
    slopes = jacobian_of(parameters, observations, known, predict, step=WIDE) / sigma[:, None]
    kept, left = _moving(parameters, slopes)
    if not kept:
        raise NothingDetermined("no measurement depends on a parameter of the machine")
    known = _without(known, left, kept)
    while True:
        sigma = np.array([sigma_of(o, known, predict) for o in observations])
        known = search(kept, observations, known, predict, sigma, rough=True)
        slopes = jacobian_of(kept, observations, known, predict) / sigma[:, None]
        out = _undetermined(kept, slopes)
        if not out:
            known, widths = _widened(kept, observations, known, predict)
            found = finished(kept, left, observations, known, silent, widths)
            worst = max(found.estimates.values(), key=lambda estimate: estimate.half)
            if worst.half <= HALF_MAX:
                if progress is not None:
                    progress(1.0)
                return found
            # Its residuals leave less known of it than its spreads let hope.
            out = [Undetermined(worst.parameter, WEAK)]
        left += out
        kept = [p for p in kept if all(p is not one.parameter for one in left)]
        if not kept:
            raise NothingDetermined("no measurement depends on a parameter of the machine")
        # What was found together with them is not what fits best without.
        known = _without({**known, **{p.key: p.start for p in kept}}, out, kept)
        if not all(predict(known, o) > 0 for o in observations):  # the machine has none of its own
            raise InputError(
                f"contradiction: measurements of '{out[-1].parameter.name}' differ too much"
            )


def _reporting(predict: Predict, size: int, progress: Callable[[float], None] | None) -> Predict:
    """``predict``, which reports ``progress`` after each ``size`` predictions."""
    count = 0

    def counted(values: Mapping[Key, float], observation: Observation) -> float:
        nonlocal count
        count += 1
        if progress is not None and count % size == 0:
            progress(1.0 - math.exp(-count / (size * USUAL)))
        return predict(values, observation)

    return counted


def _moving(
    parameters: Sequence[Parameter], slopes: Floats
) -> tuple[list[Parameter], list[Undetermined]]:
    """Those that move any prediction by what its measurement would show, and the others."""
    moving = np.abs(slopes).max(axis=0) > SENSITIVITY_MIN
    pairs = list(zip(parameters, moving.tolist(), strict=True))
    return [p for p, it in pairs if it], [Undetermined(p, INSENSITIVE) for p, it in pairs if not it]


def _undetermined(kept: Sequence[Parameter], slopes: Floats) -> list[Undetermined]:
    moved, out = _moving(kept, slopes)
    here = [k for k, p in enumerate(kept) if p in moved]
    return out + determined(moved, slopes[:, here])[1]


def _widened(
    kept: Sequence[Parameter],
    observations: Sequence[Observation],
    known: dict[Key, float],
    predict: Predict,
) -> tuple[dict[Key, float], dict[str, float]]:
    """The best values where spreads are as wide as residuals tell; and how much, by kind."""
    widths: dict[str, float] = dict.fromkeys((o.kind for o in observations), 1.0)
    for _ in range(WIDENED):
        widths = widths_of(kept, observations, known, predict, widths)
        sigma = np.array([widths[o.kind] * sigma_of(o, known, predict) for o in observations])
        known = search(kept, observations, known, predict, sigma)
    return known, widths


def _without(
    known: Mapping[Key, float], dropped: Sequence[Undetermined], kept: Sequence[Parameter]
) -> dict[Key, float]:
    """``known`` without what is left alone, for which the machine's own value stands.

    The curve is one thing: what is not known of it is what it began with.
    """
    any_curve = any(p.key[0] == "curve" for p in kept)
    starts = {estimate.parameter.key: estimate.parameter.start for estimate in dropped}
    return {
        key: starts.get(key, value)
        for key, value in known.items()
        if (any_curve if key[0] == "curve" else key not in starts)
    }
