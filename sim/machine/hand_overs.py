"""Costs of cache lines that move from core to core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# What was measured as nothing is still a time.
TIME_MIN_S = 1e-12


@dataclass(frozen=True)
class HandOvers:
    """Lines between cores; arrays are in node order.

    ``line_s`` (n, n): latency of a line that a core of j hands over to one of i. ``write_slots``,
    ``read_slots`` (n,): lines that one core gets from others at a time when it streams them, to
    write them and to read them. ``additive``: whether what the lines take comes on top of
    instructions; else the two overlap. ``own_cached``: whether what a thread hands over to itself
    stays in its cache and costs nothing.
    """

    line_s: Floats
    write_slots: Floats
    read_slots: Floats
    additive: bool = False
    own_cached: bool = False
