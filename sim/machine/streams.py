"""Reads of cores from memory: lines under way and bandwidth, each from the other by Little's law.

A line is under way for as long as it really takes: its latency under the load that the reads make.
``streaming_misses``, ``outstanding_misses`` and ``reorder_window`` of a machine file count such
lines, and all planes divide them by that latency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from .link_traffic import LINE_BYTES

if TYPE_CHECKING:
    from .costs import CostModel


def lines_under_way(
    costs: CostModel, node: int, home: int, read_Bps: float, written: float = 0.0
) -> float:
    """Lines that cores of a node have under way where they alone draw ``read_Bps`` from a home, and
    write back ``written`` lines for each one. Waits before links are left out.
    """
    load = read_Bps * costs.line_times(1.0, written) / costs.memory_Bps
    # Memory whose bandwidth is unknown is not limited.
    wait_s = costs.memory_wait_s(np.nan_to_num(np.minimum(load, 1.0)))[home]
    return float(read_Bps / LINE_BYTES * (costs.idle_s[node, home] + wait_s))


def streamed_Bps(
    costs: CostModel, node: int, home: int, threads: float, written: float = 0.0
) -> float:
    """What so many cores of a node that stream read from a home where nobody else does."""
    slots = threads * float(costs.streaming_misses[node])
    least = threads * LINE_BYTES / float(costs.streamed_s[node, home])
    held = _held_Bps(costs, node, home, slots, written)
    return min(_most_Bps(costs, node, home, written), max(held, least))


def random_Bps(costs: CostModel, node: int, home: int) -> float:
    """What a core that reads lines at random, none of which waits for another, reads from a home
    where nobody else does.
    """
    return _held_Bps(costs, node, home, float(costs.misses[node] / costs.cores[node]))


def _held_Bps(costs: CostModel, node: int, home: int, slots: float, written: float = 0.0) -> float:
    """What a node reads from a home with so many lines under way, up to what memory or the way
    there delivers.
    """

    def free(read_Bps: float) -> float:
        return slots - lines_under_way(costs, node, home, read_Bps, written)

    without_load = LINE_BYTES * slots / float(costs.idle_s[node, home])
    high = min(_most_Bps(costs, node, home, written), without_load)
    return high if free(high) >= 0 else float(brentq(free, 0.0, high, rtol=1e-12))


def _most_Bps(costs: CostModel, node: int, home: int, written: float) -> float:
    """What memory or the way there delivers of reads, with ``written`` lines for each one."""
    memory_Bps = costs.memory_Bps[home] / costs.line_times(1.0, written)[home]
    pair_Bps = np.inf if node == home else costs.machine.bandwidth_Bps[node, home]
    return float(np.fmin(np.fmin(memory_Bps, pair_Bps), np.inf))
