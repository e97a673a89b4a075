"""Utilisation of a machine's parts in a run, for the Record of any plane."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...inputs.shared_work import once
from ...topologies.machine import Machine, kept_machines
from ..kernel.arrays import Floats
from ..kernel.sums import group_sums
from ..machine.costs import LINE_BYTES, CostModel
from ..machine.threads import Workers
from .outcome import Outcome, ResourceUse


@dataclass(frozen=True)
class _Part:
    """What is said of a machine's part beside its use: the fields of its ResourceUse, and where its
    traffic stands among those of its kind; -1 where it has none."""

    name: str
    kind: str
    traffic_at: int = -1
    capacity_Bps: float | None = None
    node: int | None = None
    ends: tuple[int | str, int | str] | None = None


class MachineUse:
    """Use of each node's cores and miss slots, of memories and links: one row, in this order.

    Only nodes with cores that ``workers`` may use have cores and misses in the row.
    """

    def __init__(self, machine: Machine, workers: Workers, costs: CostModel) -> None:
        self.machine, self.costs = machine, costs
        self._core_node = workers.core_node
        self._in_use = np.unique(workers.core_node)
        self._cores_of = np.bincount(workers.core_node, minlength=len(machine.nodes))
        self._kept = once(
            "machine use",
            (id(costs), self._in_use.tobytes()),
            lambda: (costs, *self._parts()),  # as costs are kept, no others have their id
            lambda made: kept_machines(machine),
        )
        self.names: list[str] = self._kept[1]

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

    def _parts(self) -> tuple[list[str], list[_Part | None]]:
        """The names of all parts, and what is said of each; None: nothing, as it has no memory."""
        machine, costs = self.machine, self.costs
        nodes, vertex_name = machine.nodes, machine.vertex_name
        parts: list[_Part | None] = []
        for kind in ("cores", "misses"):
            for k in self._in_use.tolist():
                name = f"{kind} of node {vertex_name(k)}"
                parts.append(_Part(name, kind, node=nodes[k].id))
        for k, node in enumerate(nodes):
            limit = None if np.isnan(costs.memory_Bps[k]) else float(costs.memory_Bps[k])
            parts.append(_Part(f"memory of node {node.id}", "memory", k, limit, node.id))
        for k, name in enumerate(machine.link_names):
            a, b = (vertex_name(v) for v in machine.links[k // 2].ends)
            ends = (a, b) if k % 2 == 0 else (b, a)
            parts.append(_Part(name, "link", k, float(costs.link_Bps[k]), ends=ends))
        names = [part.name for part in parts if part is not None]
        first = 2 * len(self._in_use)
        for k, node in enumerate(nodes):
            if node.memory_bytes == 0:
                parts[first + k] = None
        return names, parts

    def resource_uses(
        self, use: Floats, memory_Bps: Floats, link_Bps: Floats
    ) -> tuple[ResourceUse, ...]:
        """Of a row of use, and of the traffic of memories (n,) and links (2L,)."""
        traffic = {"memory": memory_Bps.tolist(), "link": link_Bps.tolist()}
        parts: list[_Part | None] = self._kept[2]
        return tuple(
            ResourceUse(
                part.name,
                part.kind,
                share,
                traffic[part.kind][part.traffic_at] if part.traffic_at >= 0 else None,
                part.capacity_Bps,
                part.node,
                part.ends,
            )
            for part, share in zip(parts, use.tolist(), strict=True)
            if part is not None
        )

    def outcome(
        self,
        done: Mapping[str, float],
        total_s: float,
        use: Floats,
        moved_bytes: tuple[Floats, Floats],
        active_cores: Floats,
        pair_bytes: Floats | None = None,
        **others: Any,
    ) -> Outcome:
        """Of a run of ``total_s`` in which so much was ``done``, with a row of mean use, what
        memories (n,) and links (2L,) moved, and what nodes drew from each home (n, n); ``others``:
        the other fields.
        """
        memory_Bps, link_Bps = (moved / total_s for moved in moved_bytes)
        uses = self.resource_uses(use, memory_Bps, link_Bps)
        if pair_bytes is not None:
            uses += tuple(transfer_uses(self.costs, pair_bytes / total_s))
        known = bool(self.machine.links) or len(self.machine.nodes) == 1
        links_Bps = float(link_Bps.sum()) if known else None
        return Outcome(
            throughput={name: amount / total_s for name, amount in done.items()},
            operations=done,
            bandwidth_Bps={"memory": float(memory_Bps.sum()), "links": links_Bps},
            resources=uses,
            energy_J=self.energy_J(active_cores, memory_Bps, link_Bps, total_s),
            **others,
        )

    def energy_J(
        self, active_cores: Floats, memory_Bps: Floats, link_Bps: Floats, total_s: float
    ) -> float | None:
        """Energy of all cores, memory and links; None where the machine does not say enough.

        ``active_cores`` (n,): how many cores of each node had a worker, on average over time.
        Workers poll: their cores are active, whether they find work or not.
        """
        watts = 0.0
        each = zip(self.machine.nodes, active_cores.tolist(), memory_Bps.tolist(), strict=True)
        for node, active, traffic in each:
            if node.cores:
                if node.core_active_W is None or node.core_idle_W is None:
                    return None
                watts += active * node.core_active_W + (node.cores - active) * node.core_idle_W
            if traffic > 0:
                if node.memory_energy_J_per_bit is None:
                    return None
                watts += 8.0 * traffic * node.memory_energy_J_per_bit
        of_links = link_Bps.tolist()
        for index, link in enumerate(self.machine.links):
            per_bit = link.energy_J_per_bit or 0.0
            watts += 8.0 * of_links[2 * index] * per_bit
            watts += 8.0 * of_links[2 * index + 1] * per_bit
        return watts * total_s


SHOWN_FROM, PAIRS_MAX = 0.5, 64


def transfer_uses(costs: CostModel, drawn_Bps: Floats) -> list[ResourceUse]:
    """Of what each node reads of each home per second, ``drawn_Bps`` (n, n): the initiators and
    pairs in use by half or more.
    """
    limits, nodes = costs.limits, costs.machine.nodes
    if not limits.limited or not drawn_Bps.any():
        return []
    lines = drawn_Bps / LINE_BYTES
    by_initiator, by_pair = (lines * limits.initiator_s).sum(axis=1), lines * limits.pair_s
    remote_Bps = (drawn_Bps * costs.others).sum(axis=1)
    found = [
        ResourceUse(
            f"reads under way from node {nodes[i].id}",
            "initiator",
            min(float(by_initiator[i]), 1.0),
            float(remote_Bps[i]),
            None,
            node=nodes[i].id,
        )
        for i in np.flatnonzero(by_initiator >= SHOWN_FROM).tolist()
    ]
    for flat in np.argsort(-by_pair, axis=None, kind="stable")[:PAIRS_MAX].tolist():
        i, j = divmod(flat, len(nodes))
        if by_pair[i, j] < SHOWN_FROM:
            break
        a, b = nodes[i].id, nodes[j].id
        found.append(
            ResourceUse(
                f"node {a} from node {b}",
                "pair",
                min(float(by_pair[i, j]), 1.0),
                float(drawn_Bps[i, j]),
                LINE_BYTES / float(limits.pair_s[i, j]),
                ends=(a, b),
            )
        )
    return found
