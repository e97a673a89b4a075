"""What pieces of work share, and what they demand of it: the structs of ``shared_service``."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from .interconnect import Routes
from .memory_controller import LoadCurve


class MemoryUse(NamedTuple):
    """Lines of one node's memory that a unit reads, ``slots`` at a time, and writes."""

    home: int
    read: float
    written: float = 0.0
    slots: float = 1.0


class PieceDemand(NamedTuple):
    """What a unit takes: instructions (``separate_ps`` overlap with nothing), and memory."""

    instructions_ps: float = 0.0
    separate_ps: float = 0.0
    memory: Sequence[MemoryUse] = ()


class ServiceMachine(NamedTuple):
    """n nodes, C cores, 2L directed links.

    ``read_ps``, ``write_ps`` (n,): of a line at the controller, 0: not limited; ``latency_ps``
    (n * n,): of a line of node j's memory on node i, without load; ``core_node``, ``core_threads``
    (C,): how many pieces run on a core at most; ``data_ps``, ``request_ps`` (2L,): wire time;
    ``smt_throughput``: of a core that runs several threads, over that of one thread; ``entries``
    (n,): lines under way at a node's home agents, none or 0: not limited; ``directory_in_memory``:
    its updates are writes.
    """

    read_ps: Sequence[float]
    write_ps: Sequence[float]
    latency_ps: Sequence[float]
    curve: LoadCurve
    core_node: Sequence[int]
    core_threads: Sequence[int]
    data_ps: Sequence[int] = ()
    request_ps: Sequence[int] = ()
    routes: Routes = Routes((), (), 0)
    smt_throughput: float = 1.0
    entries: Sequence[float] = ()
    directory_in_memory: bool = False


def settled_ratio(curve: LoadCurve, under_way: float) -> float:
    """Latency over that without load, where load times this is ``under_way``; at most that at full
    load."""
    x, y, k = curve.load, curve.ratio, 1
    while k + 1 < len(x) and x[k] * y[k] < under_way:
        k += 1
    slope = (y[k] - y[k - 1]) / (x[k] - x[k - 1])
    base = y[k - 1] - slope * x[k - 1]
    # On base + slope * x: slope * x^2 + base * x = under_way.
    root = sqrt(max(0.0, base * base + 4 * slope * under_way))
    load = 2 * under_way / (base + root) if base > 0 else (root - base) / (2 * slope)
    return base + slope * min(load, 1.0)
