"""Which parameters the measurements determine, and which only together with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .parameters import Parameter

Floats = npt.NDArray[np.float64]

# A parameter is determined where its standard error is below this: of its value, or of its scale.
ERROR_MAX = 0.35
# Of a direction that is not determined: parameters with at least this part in it.
PART = 0.2
KNOWN_MIN = 1e-9  # in place of nothing, so that numbers stay finite


@dataclass(frozen=True)
class Undetermined:
    """A parameter that is left alone, and why."""

    parameter: Parameter
    reason: str


INSENSITIVE = "no measurement depends on it"
WEAK = "measurements hardly depend on it"


def determined(
    active: Sequence[Parameter], jacobian: Floats
) -> tuple[list[Parameter], list[Undetermined]]:
    """The parameters among ``active`` that can be distinguished, and those that are left alone.

    ``jacobian`` (M, P): of residuals in spreads, over coordinates. Its singular values tell how
    well each direction is known; of the worst one, the parameter that moves predictions least is
    taken out, again and again, until all others are known well enough.
    """
    kept, left = list(range(len(active))), []
    while kept:
        part = jacobian[:, kept]
        size = np.linalg.norm(part, axis=0)
        known, directions = _directions(part)
        # The last is the worst: its standard error, and that of each coordinate by it.
        worst = np.abs(directions[-1])
        by_worst = worst / known[-1]
        error = errors_of(part)
        if (error <= ERROR_MAX).all():
            break
        if (by_worst > 0.5 * ERROR_MAX).any():
            concerned = np.flatnonzero(worst >= PART * worst.max())
        else:
            concerned = np.array([int(np.argmax(error))])
        out = int(concerned[np.argmin(size[concerned])])
        others = [active[kept[k]].name for k in concerned if k != out]
        reason = f"known only together with {', '.join(others)}" if others else WEAK
        left.append(Undetermined(active[kept[out]], reason))
        kept.pop(out)
    return [active[k] for k in kept], left


def errors_of(jacobian: Floats) -> Floats:
    """(P,) standard errors of the coordinates: the root of the diagonal of (JᵀJ)⁻¹."""
    known, directions = _directions(jacobian)
    return np.asarray(np.sqrt(((directions / known[:, None]) ** 2).sum(axis=0)))


def _directions(jacobian: Floats) -> tuple[Floats, Floats]:
    """How well each direction is known, (P,), falling, and the directions, a row each.

    By the triangle of a QR decomposition, which has the same of both and but P rows.
    """
    singular, directions = np.linalg.svd(np.linalg.qr(jacobian, mode="r"), full_matrices=True)[1:]
    known = np.full(jacobian.shape[1], KNOWN_MIN)
    known[: len(singular)] = np.maximum(singular, KNOWN_MIN)
    return known, directions
