"""The loaded-latency curve as three numbers: how latency rises with load, and how far.

Over the latency at no load, at load r (0 to 1, of the memory's peak bandwidth):

    1 + rise · r + queue · r / (1 − cap · r)

``rise``: what meets other requests in banks and buffers, in proportion to them; ``queue``: the wait
in queues, which grows as that of M/M/1 or M/D/1; ``cap`` below 1: cores have but so many requests
under way, so that it does not grow without bound.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

Floats = npt.NDArray[np.float64]

# Where the machine file gets points of the curve: the closer the steeper it is.
KNOTS = np.array(
    [1e-6, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.76, 0.82, 0.87, 0.91, 0.94, 0.96, 0.975, 0.985,
     0.99, 0.995, 1.0]
)  # fmt: skip


def curve(load: Floats, rise: float, queue: float, cap: float) -> Floats:
    """Latency at ``load`` over latency at none."""
    return np.asarray(1.0 + rise * load + queue * load / (1.0 - cap * load))


def fitted_curve(load: Floats, ratio: Floats) -> tuple[float, float, float]:
    """The numbers that come closest to a curve of points, to start from."""
    found = least_squares(
        lambda x: curve(load, *x) / ratio - 1.0,
        (0.4, 0.1, 0.9),
        bounds=([0.0, 0.0, 0.0], [20.0, 20.0, 0.999]),
    )
    rise, queue, cap = (float(x) for x in found.x)
    return rise, queue, cap
