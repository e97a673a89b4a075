"""Why a flow is no faster: its binding resource, and what 10% more of each resource would bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..costs import Scales
from ..record import Gain, Why

if TYPE_CHECKING:
    from .flow import FlowPlane
    from .rates import Rates

MORE = 1.1
GAIN_MIN = 1e-4  # below, the iteration's own tolerance shows


def explain(plane: FlowPlane) -> dict[str, Why]:
    """Why, by operation, as things are at the plane's present time, transfers left out.

    All operations of a mix go together: what holds one holds all.
    """
    rates = plane.steady()
    before = float(rates.flows.sum())
    if before <= 0:
        return {}
    gains = []
    for name, scales in _what_ifs(plane).items():
        gain = plane.throughput(scales) / before - 1.0
        gains.append(Gain(name, gain if abs(gain) >= GAIN_MIN else 0.0))
    gains.sort(key=lambda gain: (-gain.gain_per_10pct, gain.resource))
    why = Why(_binding(plane, rates), tuple(gains), _times_ns(rates))
    return dict.fromkeys(plane.workload.operations, why)


def _what_ifs(plane: FlowPlane) -> dict[str, Scales]:
    machine, costs = plane.machine, plane.costs
    found = {
        "core speed": Scales(cores=MORE),
        "outstanding misses": Scales(misses=MORE),
        "memory bandwidth": Scales(memory=MORE),
        "last-level cache": Scales(cache=MORE),
        "speed of memory access (1 / latency)": Scales(latency=MORE),
    }
    for kind in dict.fromkeys(link.kind for link in machine.links):
        found[f"bandwidth of {kind} links"] = Scales(links=MORE, link_kind=kind)
    if not machine.links and costs.measured_pairs:
        found["bandwidth between pairs of nodes"] = Scales(pairs=MORE)
    return found


def _binding(plane: FlowPlane, rates: Rates) -> str:
    """The resource that holds the fastest flow, in words."""
    flow = int(rates.flows.argmax())
    at = int(rates.binding[flow])
    if at < 0:
        asked = plane.workload.description.clients
        capped = asked.kind == "open" or asked.think_time.value > 0
        return "what the clients ask for" if capped else "bandwidth between two nodes"
    kind, k = plane.solver.resources.describe(at)
    if kind == "links":
        return f"link {plane.machine.link_name(k)}"
    if kind == "memory":
        part = plane.solver.resources.memory
        full = rates.use[part] > 0.995
        which = np.flatnonzero(full)
        if len(which) > 1:
            return f"memory bandwidth of {len(which)} nodes"
        return f"memory bandwidth of node {plane.machine.nodes[k].id}"
    words = {
        "workers": "time of the workers",
        "cores": "instruction rate of the cores",
        "misses": "outstanding misses of the cores",
    }
    if kind not in words:
        return "bandwidth between two nodes"
    part = getattr(plane.solver.resources, kind)
    busy = rates.use[part] > 0.995
    if busy.mean() > 0.5:
        return f"{words[kind]} on all nodes" if busy.all() else f"{words[kind]} on most nodes"
    node = plane.machine.nodes[int(plane.workers.core_node[k])].id
    return f"{words[kind]} on node {node}"


def _times_ns(rates: Rates) -> dict[str, float]:
    """Time of one operation in a worker, by step of the worker's loop."""
    total = max(float(rates.flows.sum()), 1e-300)
    return {
        name: float(rates.flows @ takes_s.sum(axis=1)) / total * 1e9
        for name, takes_s in rates.steps.items()
    }
