"""The bottleneck of a flow, and the gain from 10% more of each resource."""

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from ...topologies.machine import Machine
from ..machine.costs import CostModel, Scales
from .outcome import Why, by_gain
from .rate_solver import RateSolver
from .rates import Rates

MORE = 1.1
WORKERS = "time of the workers"
BETWEEN_NODES, DIES = "lines under way between nodes", "bandwidth of dies"
GAIN_MIN = 3e-4  # below, the search's own tolerance shows


class Explained(Protocol):
    """A plane that can be asked what if."""

    machine: Machine
    costs: CostModel
    solver: RateSolver

    def steady(self) -> Rates:
        """Rates at its present time, transfers left out."""

    def throughput(self, scales: Scales) -> float:
        """Units of work per second likewise, with parts of the machine that much better."""


def explain(plane: Explained, operations: Iterable[str], with_gains: bool = True) -> dict[str, Why]:
    """Why, for each of ``operations``, as things are at the plane's present time.

    All operations of a mix go together: what holds one holds all. Gains take a search each.
    """
    rates = plane.steady()
    before = float(rates.flows.sum())
    if before <= 0:
        return {}
    scaled = what_ifs(plane.machine, plane.costs) if with_gains else {}
    gains = {name: plane.throughput(scales) / before - 1.0 for name, scales in scaled.items()}
    binding = _binding(plane, rates)
    if binding == BETWEEN_NODES and gains.get(DIES, 0.0) > gains.get(BETWEEN_NODES, 0.0):
        binding = DIES  # both cap flows
    why = Why(binding, by_gain(gains, GAIN_MIN), _times_ns(rates))
    return dict.fromkeys(operations, why)


def what_ifs(machine: Machine, costs: CostModel) -> dict[str, Scales]:
    """Machines with 10% more of one resource, by its name in words."""
    found = {
        "core speed": Scales(cores=MORE),
        costs.misses_name: Scales(misses=MORE),
        "memory bandwidth": Scales(memory=MORE),
        "last-level cache": Scales(cache=MORE),
        "speed of memory access (1 / latency)": Scales(latency=MORE),
    }
    kinds = list(dict.fromkeys(link.kind for link in machine.links))
    for kind in kinds:
        found[f"bandwidth of {kind} links"] = Scales(links=MORE, link_kind=kind)
    if len(kinds) > 1:
        found["bandwidth of all links"] = Scales(links=MORE)
    if costs.limits.limited:
        found[BETWEEN_NODES] = Scales(pairs=MORE)
    if any(node.die_Bps is not None for node in machine.nodes):
        found[DIES] = Scales(dies=MORE)
    return found


def _binding(plane: Explained, rates: Rates) -> str:
    """The resource that holds most of the work, in words."""
    resources, machine = plane.solver.resources, plane.machine
    weight: dict[tuple[str, str | None], float] = {}
    example: dict[tuple[str, str | None], int] = {}
    for resource, rate in zip(rates.binding.tolist(), rates.flows.tolist(), strict=True):
        kind, k = resources.describe(resource) if resource >= 0 else ("cap", 0)
        limit = (kind, machine.links[k // 2].kind if kind == "links" else None)
        weight[limit] = weight.get(limit, 0.0) + rate
        example.setdefault(limit, k)
    kind, link_kind = max(weight, key=lambda limit: weight[limit])
    k = example[kind, link_kind]
    if kind == "clients":
        return "what the clients ask for"
    if kind == "line":
        return "one cache line that all write to, or one lock"
    if kind == "links":
        return f"{link_kind} links, such as {machine.link_name(k)}"
    if kind in ("cap", "pairs"):
        return BETWEEN_NODES
    part = getattr(resources, kind)
    node_of = np.arange(len(machine.nodes)) if kind == "memory" else plane.solver.core_node
    full = np.unique(node_of[rates.use[part] > 0.995])
    used = np.unique(node_of[rates.use[part] > 0])
    words = {
        "workers": WORKERS,
        "cores": "instruction rate of the cores",
        "misses": "outstanding misses of the cores",
        "memory": "memory bandwidth",
    }[kind]
    if len(full) <= 1 < len(machine.nodes):
        return f"{words} of node {machine.nodes[int(node_of[k])].id}"
    if len(full) == len(used):
        return f"{words} of all nodes"
    if len(used) == len(np.unique(node_of)):
        return f"{words} of {len(full)} of {len(used)} nodes"
    return f"{words} of {len(full)} of the {len(used)} nodes in use"


def _times_ns(rates: Rates) -> dict[str, float]:
    """Time of one operation in a worker, by step of the worker's loop."""
    total = max(float(rates.flows.sum()), 1e-300)
    return {
        name: float(rates.of_core @ takes_s) / total * 1e9 for name, takes_s in rates.steps.items()
    }
