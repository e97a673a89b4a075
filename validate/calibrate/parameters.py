"""What can be fitted of a machine: its low-level parameters, and which pairs of nodes share one.

The loaded-latency curve is three of them: how latency rises with load, and how far. Over the
latency at no load, at load r (0 to 1, of the memory's peak bandwidth):

    1 + rise · r + queue · r / (1 − cap · r)

``rise``: what meets other requests in banks and buffers, in proportion to them; ``queue``: the wait
in queues, which grows as that of M/M/1 or M/D/1; ``cap`` below 1: cores have but so many requests
under way, so that it does not grow without bound.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import least_squares

from ...inputs.grouping import by_key
from ...sim.kernel.arrays import Flags, Floats
from ...sim.machine.costs import CostModel
from ...sim.machine.defaults import (
    ASSUMED_OUTSTANDING_MISSES,
    ASSUMED_STREAMING_MISSES,
    ASSUMED_WRITE_TURNAROUND,
)
from ...topologies.machine import Machine, Node
from ...topologies.pair_tables import kind_counts
from ...topologies.schema_types import WRITE_TURNAROUND_MIN

Key = tuple[str, ...]

CURVE = ("rise", "queue", "cap")
# A normal distribution has 90% within 3.29 standard deviations.
_LOW, _HIGH = ASSUMED_WRITE_TURNAROUND.between
ASSUMED_TURNAROUND = ASSUMED_WRITE_TURNAROUND, (_HIGH - _LOW) / 3.29
# Where the machine file gets points of the curve: the closer the steeper it is.
KNOTS = np.array(
    [1e-6, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.76, 0.82, 0.87, 0.91, 0.94, 0.96, 0.975, 0.985,
     0.99, 0.995, 1.0]
)  # fmt: skip
LINE_KEY: Key = ("line",)
ATOMIC_KEY: Key = ("atomic",)
LATENCY_START_S, BANDWIDTH_START_BPS, CACHE_START_S = 100e-9, 10e9, 10e-9


@dataclass(frozen=True)
class PairClass:
    """Pairs of nodes that differ by chance only: (n, n) ``mask``, row initiator."""

    name: str
    mask: Flags
    local: bool


@dataclass(frozen=True)
class Parameter:
    """One number of a machine: ``key`` says which, ``name`` says so in words.

    ``log``: it is positive and of any size, so that its logarithm is fitted, and its spread is
    relative; else steps of ``scale`` count as large. ``doubt``: standard deviation of an assumed
    start, in that coordinate. ``core``: it is of core times alone, and a run sees it in the times
    that it makes.
    """

    key: Key
    name: str
    unit: str
    start: float
    low: float
    high: float
    log: bool = True
    scale: float = 1.0
    doubt: float = 0.0
    core: bool = False

    def inside(self, value: float) -> float:
        """The coordinate in which it is fitted."""
        return math.log(value) if self.log else value / self.scale

    def outside(self, coordinate: float) -> float:
        """The value at a coordinate."""
        return math.exp(coordinate) if self.log else coordinate * self.scale


def curve(load: Floats, rise: float, queue: float, cap: float) -> Floats:
    """Latency at ``load`` over latency at none."""
    return np.asarray(1.0 + rise * load + queue * load / (1.0 - cap * load))


def pair_classes(machine: Machine) -> tuple[PairClass, ...]:
    """The classes of all pairs of nodes with CPUs and nodes with memory.

    Of a machine file with distance classes these count. Else nodes' own pairs are distinguished by
    the type of the node; others by both types and by the route's links or by the firmware's
    distances (SLIT), where there are any; where neither distinguishes them, a pair has a class of
    its own, there and back.
    """
    types, n = node_types(machine), len(machine.nodes)
    counts = kind_counts(machine.routes, machine.links)
    pairs_of = product(range(n), [j for j in range(n) if machine.nodes[j].memory_bytes != 0])
    found = by_key((_key(machine, types, counts, i, j), (i, j)) for i, j in pairs_of)
    one_local = sum(key[0] == "local" for key in found) == 1
    classes = []
    for key, pairs in found.items():
        mask = np.zeros((n, n), dtype=np.bool_)
        mask[tuple(np.array(pairs).T)] = True
        i, j = pairs[0]
        ends, hops = f"{machine.nodes[i].id} and {machine.nodes[j].id}", machine.hops[i, j]
        names = {
            "class": str(key[-1]),
            "local": "local" if one_local else f"local of {key[-1]}",
            "slit": f"distance {key[-1]}",
            "route": f"{hops:g} hop{'s' if hops != 1 else ''}, as {ends}",
            "pair": f"between {ends}",
        }
        classes.append(PairClass(names[str(key[0])], mask, i == j))
    return tuple(classes)


def node_types(machine: Machine) -> tuple[str, ...]:
    """(n,) the type of each node."""
    types = machine.description.type_of_node()
    return tuple(types[node.id] for node in machine.nodes)


def _key(
    machine: Machine, types: Sequence[str], counts: Mapping[str, Floats], i: int, j: int
) -> tuple[object, ...]:
    of_class = int(machine.distance_class[i, j])
    if of_class >= 0:
        return ("class", of_class, machine.description.distance_classes[of_class].name)
    if i == j:
        return ("local", types[i])
    ends = tuple(sorted((types[i], types[j])))
    if machine.links:
        route = tuple((kind, float(count[i, j])) for kind, count in counts.items())
        return ("route", ends, route)
    if machine.slit is not None:
        return ("slit", ends, f"{machine.slit[i, j]:g}")
    return ("pair", tuple(sorted((i, j))))


def parameters_of(machine: Machine, classes: tuple[PairClass, ...]) -> list[Parameter]:
    """Those of memory, caches and words, with the machine's own values to start from where it has
    any.
    """
    costs = CostModel(machine)
    found = [*_pair_parameters(machine, classes, costs), *_curve_parameters(machine, costs)]
    kinds = node_types(machine)
    for name in dict.fromkeys(kinds):
        suffix = f" of {name}" if len(set(kinds)) > 1 else ""
        found += _node_parameters(machine.nodes[kinds.index(name)], name, suffix)
    words = machine.description.processes
    if words is not None:
        start = words.word_add.value
        found.append(Parameter(ATOMIC_KEY, "an atomic operation", "s", start, 1e-11, 1e-5))
    if words is not None and words.line is not None:
        start = words.line.value
        found.append(Parameter(LINE_KEY, "a line from core to core", "s", start, 1e-10, 1e-4))
    return found


def _pair_parameters(
    machine: Machine, classes: tuple[PairClass, ...], costs: CostModel
) -> Iterator[Parameter]:
    for pair_class in classes:
        name = pair_class.name
        latency_ns = _mean(machine.latency_ns[pair_class.mask])
        start = LATENCY_START_S if latency_ns is None else latency_ns * 1e-9
        yield Parameter(("latency", name), f"latency {name}", "s", start, 1e-10, 1e-4)
        bandwidth = machine.bandwidth_Bps[pair_class.mask]
        if pair_class.local:
            bandwidth = costs.memory_Bps[pair_class.mask.any(axis=0)]
        start = _mean(bandwidth) or BANDWIDTH_START_BPS
        yield Parameter(("bandwidth", name), f"bandwidth {name}", "B/s", start, 1e6, 1e13)


def _curve_parameters(machine: Machine, costs: CostModel) -> Iterator[Parameter]:
    own = machine.loaded_latency
    idle_s = float(np.nanmin(costs.latency_s))
    base_s = min(ns for _, ns in own) * 1e-9 if len(own) >= 3 else idle_s
    yield Parameter(("curve", "base"), "latency under load, at none", "s", base_s, 1e-10, 1e-4)
    load, ratio = costs.loaded_latency
    start = least_squares(
        lambda x: curve(load, *x) / ratio - 1.0,
        (0.4, 0.1, 0.9),
        bounds=([0.0, 0.0, 0.0], [20.0, 20.0, 0.999]),
    ).x.tolist()
    for name, own_start, high, scale in zip(
        CURVE, start, (20.0, 20.0, 0.9995), (0.5, 0.1, 0.05), strict=True
    ):
        words = f"loaded latency: {name}"
        yield Parameter(("curve", name), words, "1", own_start, 0.0, high, log=False, scale=scale)


def _node_parameters(node: Node, name: str, suffix: str) -> Iterator[Parameter]:
    for cache in node.caches:
        key, words = ("cache", name, str(cache.level)), f"latency of the L{cache.level} cache"
        start = cache.latency_ns * 1e-9 if cache.latency_ns else CACHE_START_S
        yield Parameter(key, f"{words}{suffix}", "s", start, 1e-11, 1e-6)
    if node.cores:
        start = node.outstanding_misses or ASSUMED_OUTSTANDING_MISSES
        yield Parameter(("misses", name), f"outstanding misses{suffix}", "1", start, 1.0, 1e3)
        start = node.streaming_misses or ASSUMED_STREAMING_MISSES
        yield Parameter(("streaming", name), f"streaming misses{suffix}", "1", start, 1.0, 1e4)
    if node.memory_bytes != 0:
        own = node.write_turnaround
        start, doubt = (own, 0.0) if own is not None else ASSUMED_TURNAROUND
        yield Parameter(
            ("turnaround", name), f"write turnaround{suffix}", "1", start,
            WRITE_TURNAROUND_MIN, 20.0, log=False, doubt=doubt,
        )  # fmt: skip


def _mean(values: Floats) -> float | None:
    """Of those that are known; None without one."""
    known = values[np.isfinite(values)]
    return float(np.exp(np.log(known).mean())) if len(known) else None
