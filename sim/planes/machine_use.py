"""Utilisation of a machine's parts in a run, for the Record of any plane."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...topologies.machine import Machine
from ..kernel.sums import group_sums
from ..machine.costs import CostModel
from ..machine.threads import Workers
from .outcome import ResourceUse

Floats = npt.NDArray[np.float64]


class MachineUse:
    """Use of each node's cores and miss slots, of memories and links: one row, in this order.

    Only nodes with cores that ``workers`` may use have cores and misses in the row.
    """

    def __init__(self, machine: Machine, workers: Workers, costs: CostModel) -> None:
        self.machine, self.costs = machine, costs
        self._core_node = workers.core_node
        self._in_use = np.unique(workers.core_node)
        self._cores_of = np.bincount(workers.core_node, minlength=len(machine.nodes))
        self.names = self._names()

    def row(self, cores: Floats, misses: Floats, memory: Floats, links: Floats) -> Floats:
        """One row from the use (0 to 1) of the C cores, their miss slots (C,), memories (n,) and
        links (2L,).
        """
        node, n = self._core_node, len(self.machine.nodes)
        means = [
            group_sums(node, part, n)[self._in_use] / self._cores_of[self._in_use]
            for part in (cores, misses)
        ]
        return np.concatenate([*means, memory, links])

    def _names(self) -> list[str]:
        nodes, name = self.machine.nodes, self.machine.vertex_name
        links = [self.machine.link_name(k) for k in range(2 * len(self.machine.links))]
        return [
            *(f"cores of node {name(int(k))}" for k in self._in_use),
            *(f"misses of node {name(int(k))}" for k in self._in_use),
            *(f"memory of node {node.id}" for node in nodes),
            *links,
        ]

    def resource_uses(
        self, use: Floats, memory_Bps: Floats, link_Bps: Floats
    ) -> tuple[ResourceUse, ...]:
        """Of a row of use, and of the traffic of memories (n,) and links (2L,)."""
        machine, names = self.machine, self.names
        found = []
        for k, (name, share) in enumerate(zip(names, use.tolist(), strict=True)):
            in_use, n = len(self._in_use), len(machine.nodes)
            if k < 2 * in_use:
                node = machine.nodes[int(self._in_use[k % in_use])].id
                kind = "cores" if k < in_use else "misses"
                found.append(ResourceUse(name, kind, share, node=node))
            elif k < 2 * in_use + n:
                at = k - 2 * in_use
                limit = _known(self.costs.memory_Bps[at])
                if machine.nodes[at].memory_bytes != 0:
                    found.append(
                        ResourceUse(
                            name,
                            "memory",
                            share,
                            float(memory_Bps[at]),
                            limit,
                            machine.nodes[at].id,
                        )
                    )
            else:
                at = k - 2 * in_use - n
                ends = [machine.vertex_name(v) for v in machine.links[at // 2].ends]
                a, b = ends if at % 2 == 0 else reversed(ends)
                limit = float(self.costs.link_Bps[at])
                found.append(
                    ResourceUse(name, "link", share, float(link_Bps[at]), limit, ends=(a, b))
                )
        return tuple(found)

    def energy_J(
        self, active_cores: Floats, memory_Bps: Floats, link_Bps: Floats, total_s: float
    ) -> float | None:
        """Energy of all cores, memory and links; None where the machine does not say enough.

        ``active_cores`` (n,): how many cores of each node had a worker, on average over time.
        Workers poll: their cores are active, whether they find work or not.
        """
        watts = 0.0
        for k, node in enumerate(self.machine.nodes):
            if node.cores:
                if node.core_active_W is None or node.core_idle_W is None:
                    return None
                active = float(active_cores[k])
                watts += active * node.core_active_W + (node.cores - active) * node.core_idle_W
            if memory_Bps[k] > 0:
                if node.memory_energy_J_per_bit is None:
                    return None
                watts += 8.0 * float(memory_Bps[k]) * node.memory_energy_J_per_bit
        for at, traffic in enumerate(link_Bps.tolist()):
            per_bit = self.machine.links[at // 2].energy_J_per_bit
            watts += 8.0 * traffic * (per_bit or 0.0)
        return watts * total_s


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
