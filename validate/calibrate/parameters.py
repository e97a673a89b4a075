"""What can be fitted of a machine: its low-level parameters, and which pairs of nodes share one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...sim.machine.costs import CostModel
from ...sim.machine.defaults import (
    ASSUMED_OUTSTANDING_MISSES,
    ASSUMED_STREAMING_MISSES,
    ASSUMED_WRITE_TURNAROUND,
)
from ...topologies.machine import Machine
from ...topologies.pair_tables import kind_counts
from ...topologies.schema_types import WRITE_TURNAROUND_MIN
from .curve import fitted_curve

Mask = npt.NDArray[np.bool_]
Key = tuple[str, ...]

CURVE = ("rise", "queue", "cap")
# Of the assumed one: timings alone leave a factor of 1.7, and a controller may write half as many
# lines before it turns, or twice as many.
WRITE_TURNAROUND_DOUBT = 0.15
LATENCY_START_S, BANDWIDTH_START_BPS, CACHE_START_S = 100e-9, 10e9, 10e-9


@dataclass(frozen=True)
class PairClass:
    """Pairs of nodes that differ by chance only: (n, n) ``mask``, row initiator."""

    name: str
    mask: Mask
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


def pair_classes(machine: Machine) -> tuple[PairClass, ...]:
    """The classes of all pairs of nodes with CPUs and nodes with memory.

    Of a machine file with distance classes these count. Else nodes' own pairs are distinguished by
    the type of the node; others by both types and by the route's links or by the firmware's
    distances (SLIT), where there are any; where neither distinguishes them, a pair has a class of
    its own, there and back.
    """
    types = _types(machine)
    n = len(machine.nodes)
    counts = kind_counts(machine.routes, machine.links)
    found: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for i in range(n):
        for j in range(n):
            if machine.nodes[j].memory_bytes != 0:
                found.setdefault(_key(machine, types, counts, i, j), []).append((i, j))
    classes = []
    for key, pairs in found.items():
        mask = np.zeros((n, n), dtype=np.bool_)
        mask[tuple(np.array(pairs).T)] = True
        local = pairs[0][0] == pairs[0][1]
        classes.append(PairClass(_name(machine, key, pairs, local, found), mask, local))
    return tuple(classes)


def _types(machine: Machine) -> dict[int, str]:
    found = {}
    for group in machine.description.nodes:
        first, last = group.id_range()
        found.update(dict.fromkeys(range(first, last + 1), group.type))
    return found


def node_types(machine: Machine) -> tuple[str, ...]:
    """(n,) the type of each node."""
    types = _types(machine)
    return tuple(types[node.id] for node in machine.nodes)


def _key(
    machine: Machine,
    types: Mapping[int, str],
    counts: Mapping[str, npt.NDArray[np.float64]],
    i: int,
    j: int,
) -> tuple[object, ...]:
    of_class = int(machine.distance_class[i, j])
    if of_class >= 0:
        return ("class", of_class)
    a, b = machine.nodes[i], machine.nodes[j]
    if i == j:
        return ("local", types[a.id])
    ends = tuple(sorted((types[a.id], types[b.id])))
    if machine.links:
        route = tuple((kind, float(count[i, j])) for kind, count in counts.items())
        return ("route", ends, route)
    if machine.slit is not None:
        return ("slit", ends, float(machine.slit[i, j]))
    return ("pair", tuple(sorted((a.id, b.id))))


def _name(
    machine: Machine,
    key: tuple[object, ...],
    pairs: list[tuple[int, int]],
    local: bool,
    found: Mapping[tuple[object, ...], object],
) -> str:
    if key[0] == "class":
        return machine.description.distance_classes[int(str(key[1]))].name
    if local:
        alone = sum(other[0] == "local" for other in found) == 1
        return "local" if alone else f"local of {key[1]}"
    if key[0] == "slit":
        return f"distance {key[2]:g}"
    if key[0] == "route":
        hops = machine.hops[pairs[0]]
        return f"{hops:g} hop{'s' if hops != 1 else ''}, as {_ends(machine, pairs[0])}"
    return f"between {_ends(machine, pairs[0])}"


def _ends(machine: Machine, pair: tuple[int, int]) -> str:
    return " and ".join(str(machine.nodes[k].id) for k in pair)


def parameters_of(machine: Machine, classes: tuple[PairClass, ...]) -> list[Parameter]:
    """Those of memory and caches, with the machine's own values to start from where it has any."""
    costs = CostModel(machine)
    found = [*_pair_parameters(machine, classes, costs), *_curve_parameters(machine, costs)]
    for name in dict.fromkeys(node_types(machine)):
        found += _node_parameters(machine, name)
    return found


def _pair_parameters(
    machine: Machine, classes: tuple[PairClass, ...], costs: CostModel
) -> list[Parameter]:
    found = []
    for pair_class in classes:
        latency = _mean(machine.latency_ns[pair_class.mask]) or LATENCY_START_S * 1e9
        bandwidth = machine.bandwidth_Bps[pair_class.mask]
        if pair_class.local:
            bandwidth = costs.memory_Bps[pair_class.mask.any(axis=0)]
        found += [
            Parameter(
                ("latency", pair_class.name),
                f"latency {pair_class.name}",
                "s",
                latency * 1e-9,
                1e-10,
                1e-4,
            ),
            Parameter(
                ("bandwidth", pair_class.name),
                f"bandwidth {pair_class.name}",
                "B/s",
                _mean(bandwidth) or BANDWIDTH_START_BPS,
                1e6,
                1e13,
            ),
        ]
    return found


def _curve_parameters(machine: Machine, costs: CostModel) -> list[Parameter]:
    rise, queue, cap = fitted_curve(*costs.loaded_latency)
    own = machine.loaded_latency
    idle_s = float(np.nanmin(costs.latency_s))
    base_s = min(ns for _, ns in own) * 1e-9 if len(own) >= 3 else idle_s
    return [
        Parameter(("curve", "base"), "latency under load, at none", "s", base_s, 1e-10, 1e-4),
        Parameter(
            ("curve", "rise"), "loaded latency: rise", "1", rise, 0.0, 20.0, log=False, scale=0.5
        ),
        Parameter(
            ("curve", "queue"), "loaded latency: queue", "1", queue, 0.0, 20.0, log=False, scale=0.1
        ),
        Parameter(
            ("curve", "cap"), "loaded latency: cap", "1", cap, 0.0, 0.9995, log=False, scale=0.05
        ),
    ]


def _node_parameters(machine: Machine, name: str) -> list[Parameter]:
    nodes = [
        node for node, kind in zip(machine.nodes, node_types(machine), strict=True) if kind == name
    ]
    node = nodes[0]
    several = len(set(node_types(machine))) > 1
    suffix = f" of {name}" if several else ""
    found = [
        Parameter(
            ("cache", name, str(cache.level)),
            f"latency of the L{cache.level} cache{suffix}",
            "s",
            cache.latency_ns * 1e-9 if cache.latency_ns else CACHE_START_S,
            1e-11,
            1e-6,
        )
        for cache in node.caches
    ]
    if node.cores:
        found += [
            Parameter(
                ("misses", name),
                f"outstanding misses{suffix}",
                "1",
                node.outstanding_misses or ASSUMED_OUTSTANDING_MISSES,
                1.0,
                1e3,
            ),
            Parameter(
                ("streaming", name),
                f"streaming misses{suffix}",
                "1",
                node.streaming_misses or ASSUMED_STREAMING_MISSES,
                1.0,
                1e4,
            ),
        ]
    if node.memory_bytes != 0:
        found.append(
            Parameter(
                ("turnaround", name),
                f"write turnaround{suffix}",
                "1",
                ASSUMED_WRITE_TURNAROUND
                if node.write_turnaround is None
                else node.write_turnaround,
                WRITE_TURNAROUND_MIN,
                20.0,
                log=False,
                doubt=WRITE_TURNAROUND_DOUBT if node.write_turnaround is None else 0.0,
            )
        )
    return found


def _mean(values: npt.NDArray[np.float64]) -> float | None:
    """Of those that are known; None without one."""
    known = values[np.isfinite(values)]
    return float(np.exp(np.log(known).mean())) if len(known) else None
