"""A fit of a few costs to runs, each prediction of which takes as long as a run of the flow plane.

All costs are searched for at once, from what the system counts with. What is not determined where
they fit best, by the singular values of the Jacobian there, goes back to its start, and the others
are searched for again. Intervals are those of ``intervals.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

import numpy as np

from ...inputs import InputError
from .identify import INSENSITIVE, WEAK, Undetermined, determined
from .intervals import Fit, finished, sigma_of, widths_of
from .observation import Observation
from .parameters import Key, Parameter
from .search import Predict, SensitivePrediction, jacobian_of, search

# Of the sum of squares: what a step gains less than is not searched for any longer.
ROUGH, FINE = 1e-3, 1e-6
STEPS_MAX = 40
SENSITIVITY_MIN = 1e-6
# See fit.HALF_MAX: an interval that tells nothing.
HALF_MAX = 1.5
# Rates that differ by this from those of default costs are of something else.
ANOTHER_SCALE = 20.0


def fit_few(
    parameters: Sequence[Parameter],
    observations: Sequence[Observation],
    predict: Predict,
    seen: Callable[[Observation], frozenset[Key]],
    progress: Callable[[float], None] | None = None,
) -> Fit:
    """``parameters`` fitted to ``observations``, all of one kind; ``seen``: the parameters that a
    run meets. Raises InputError where the observations determine none.
    """
    tell = progress or (lambda part: None)
    groups = {p.key: {o.group for o in observations if p.key in seen(o)} for p in parameters}
    sensitive = SensitivePrediction(predict, groups)
    starts = {p.key: p.start for p in parameters}
    sigma = np.array([sigma_of(o, starts, predict) for o in observations])
    known = starts | search(parameters, observations, starts, sensitive, sigma, STEPS_MAX, ROUGH)
    tell(0.5)
    kept, left = list(parameters), list[Undetermined]()
    while kept:
        jacobian = jacobian_of(kept, observations, known, sensitive) / sigma[:, None]
        moving = np.abs(jacobian).max(axis=0) > SENSITIVITY_MIN
        out = [Undetermined(p, INSENSITIVE) for p, it in zip(kept, moving, strict=True) if not it]
        kept = [p for p, it in zip(kept, moving, strict=True) if it]
        kept, unclear = determined(kept, jacobian[:, moving])
        out += unclear
        left += out
        known |= {parameter.parameter.key: parameter.parameter.start for parameter in out}
        if not kept:
            break
        tell(0.5 + 0.4 * len(left) / len(parameters))
        known |= search(kept, observations, known, sensitive, sigma, STEPS_MAX, FINE)
        if out:
            continue
        widths: dict[str, float] = dict.fromkeys((o.kind for o in observations), 1.0)
        widths = widths_of(kept, observations, known, sensitive, widths)
        found = finished(kept, left, observations, known, sensitive, widths)
        worst = max(found.estimates.values(), key=lambda estimate: estimate.half)
        if worst.half <= HALF_MAX:
            tell(1.0)
            return found
        left.append(Undetermined(worst.parameter, WEAK))
        kept = [p for p in kept if p is not worst.parameter]
        known[worst.parameter.key] = worst.parameter.start
    file, faster = observations[0].origin.file, _times_faster(observations, starts, predict)
    if not 1.0 / ANOTHER_SCALE < faster < ANOTHER_SCALE:
        raise InputError(
            f"measured rates are {faster:.3g} times those of the scenario at default costs",
            file,
            expected="rates that some costs can explain",
            hint="are operations, units and threads those of the scenario?",
        )
    raise InputError(
        f"the {len(observations)} rows for the fit determine none of "
        f"{', '.join(p.name for p in parameters)}",
        file,
        expected="more rows, of other sizes and numbers of threads",
    )


def _times_faster(
    observations: Sequence[Observation], starts: Mapping[Key, float], predict: Predict
) -> float:
    """How many times as fast the median row is as it should be."""
    return median(observation.value / predict(starts, observation) for observation in observations)
