"""numatwin's compiled kernel (C++20): the max-min flow solver."""

import numpy as np
from numpy.typing import NDArray

def solve_max_min(
    capacity: NDArray[np.float64],
    row_ptr: NDArray[np.int64],
    resource: NDArray[np.int64],
    coefficient: NDArray[np.float64],
    cap: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Share resources among flows, max-min fair: (rate[F], binding[F], use[R]).

    Flow f uses coefficient[k] * rate[f] of resource[k], for k in row_ptr[f]:row_ptr[f + 1]; a
    resource that appears twice adds up. All rate / weight rise together; a flow stops when one of
    its resources is full (binding: that resource's index) or at its cap (binding: -1). Ties go to
    caps first, then to the lowest index.

    Shapes: capacity [R], row_ptr [F + 1], resource and coefficient [NNZ], cap and weight [F].
    Units are the caller's: cap and rate share one, capacity is coefficient * rate. A capacity may
    be 0 (then its users rest) or infinite; a cap may be 0 or infinite; a weight is above 0.
    The result is exact but for rounding: no resource is overused by more than 1e-12 of itself.
    Releases the GIL; float64 and int64 arrays are read without a copy.

    Raises ValueError, naming the first wrong value, for shapes and values out of range and for a
    flow with neither a finite cap nor a resource of finite capacity.
    """
