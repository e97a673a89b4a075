"""Copies between workers as flows: rows of coefficients for the solver, beside the workload's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..costs import LINE_BYTES
from ..demands import TransferDemand

if TYPE_CHECKING:
    from .rates import RateSolver

Floats = npt.NDArray[np.float64]


class TransferFlows:
    """T copies as sparse rows, of which some entries change with the waits.

    A row: worker, core and miss slots of the source, the same of the target, memory of both, the
    pair; then the links. ``control`` (T, 2L): bytes of control messages per unit.
    """

    FIXED = 9

    def __init__(self, solver: RateSolver, demand: TransferDemand) -> None:
        self.solver, self.demand = solver, demand
        columns, node = solver.resources, solver.core_node
        self.count = len(demand.source)
        self.a, self.b = node[demand.source], node[demand.target]
        pairs, which = np.unique(np.stack([self.b, self.a], axis=1), axis=0, return_inverse=True)
        which = which.reshape(-1)
        self.pair_capacity = solver.costs.pair_Bps[pairs[:, 0], pairs[:, 1]]
        wires = np.array([solver.wire_of_line(int(b), int(a)) for b, a in pairs])
        self.control = wires[which, 1] * demand.lines[:, None]
        used = [np.flatnonzero(data) for data in wires[:, 0]]
        self.counts = np.array([self.FIXED + len(used[k]) for k in which], dtype=np.int64)
        self.first = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        ends = np.stack([demand.source] * 3 + [demand.target] * 3 + [self.a, self.b, which], axis=1)
        ends += [
            *(part.start for part in (columns.workers, columns.cores, columns.misses) * 2),
            columns.memory.start,
            columns.memory.start,
            columns.count,
        ]
        fixed = np.zeros((self.count, self.FIXED))
        fixed[:, 1], fixed[:, 4] = demand.source_s, demand.target_s
        fixed[:, 6] = demand.source_lines * LINE_BYTES
        fixed[:, 7] = 2 * demand.written_lines * LINE_BYTES
        fixed[:, 8] = demand.lines * LINE_BYTES
        resource, value = [], []
        for t, k in enumerate(which):
            resource += [ends[t], used[k] + columns.links.start]
            value += [fixed[t], wires[k, 0, used[k]] * demand.lines[t]]
        self.resource = np.concatenate(resource).astype(np.int64)
        self.value = np.concatenate(value)
        busy = np.bincount(np.concatenate([demand.source, demand.target]), minlength=len(node))
        self.sharers = np.maximum(busy[demand.source], busy[demand.target])
        self.weight = np.ones(self.count)

    def update(self, latency_s: Floats) -> None:
        """Miss slots, and weights: a core's time is shared evenly among what it does."""
        stream, d, threads = self.solver.costs.streaming_misses, self.demand, self.solver.threads
        local = np.diag(latency_s)
        source_s = d.source_lines * local[self.a] / stream[self.a]
        across_s = d.lines * latency_s[self.b, self.a] + d.written_lines * local[self.b]
        target_s = across_s / stream[self.b]
        at_source = np.maximum(d.source_s, source_s * threads[d.source])
        at_target = np.maximum(d.target_s, target_s * threads[d.target])
        self.value[self.first], self.value[self.first + 3] = at_source, at_target
        self.value[self.first + 2], self.value[self.first + 5] = source_s, target_s
        self.weight = 1.0 / (np.maximum(np.maximum(at_source, at_target), 1e-30) * self.sharers)
