"""What pieces of work demand of a machine that they share, as ``kernel/service_machine.hpp``."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from ..._kernel import ServiceMachine
from ..costs import LINK_LOAD_MAX


class MemoryUse(NamedTuple):
    """Lines of one node's memory that a unit reads, ``slots`` at a time, and writes."""

    home: int
    read: float
    written: float = 0.0
    slots: float = 1.0


class Loop(NamedTuple):
    """A loop over the entries of a unit. Within it, instructions and misses overlap."""

    instructions_ps: float
    memory: Sequence[MemoryUse] = ()


class PieceDemand(NamedTuple):
    """What a unit takes: instructions (``separate_ps`` overlap with nothing), and memory. Where it
    has several ``loops``, one after the other, these have all of its instructions and memory.
    ``held``: of the machine's limits, each that it holds for a part of ``separate_ps``, and for how
    long."""

    instructions_ps: float = 0.0
    separate_ps: float = 0.0
    memory: Sequence[MemoryUse] = ()
    loops: Sequence[Loop] = ()
    held: Sequence[tuple[int, float]] = ()


def settled_link_wait(line: float, latency: float, load: float, waited: float) -> float:
    """How long a line waits before a link (M/D/1) with this load, at most ``LINK_LOAD_MAX`` of it,
    where lines waited so long: such that as many are under way as now, with that latency besides.
    """
    under_way = load * (latency + waited)
    beyond = latency - under_way
    if not under_way > 0:
        return 0.0
    root = sqrt(beyond * beyond + 2 * line * under_way)
    found = min(2 * under_way / (latency + under_way + root), LINK_LOAD_MAX)
    return line * found / (2 * (1 - found))


def settled_ratio(service_machine: ServiceMachine, under_way: float) -> float:
    """Latency over that without load, where load times this is ``under_way``; at most that at full
    load."""
    x, y, k = service_machine.load, service_machine.load_ratio, 1
    while k + 1 < len(x) and x[k] * y[k] < under_way:
        k += 1
    slope = (y[k] - y[k - 1]) / (x[k] - x[k - 1])
    base = y[k - 1] - slope * x[k - 1]
    # On base + slope * x: slope * x^2 + base * x = under_way.
    root = sqrt(max(0.0, base * base + 4 * slope * under_way))
    load = 2 * under_way / (base + root) if base > 0 else (root - base) / (2 * slope)
    return base + slope * min(load, 1.0)
