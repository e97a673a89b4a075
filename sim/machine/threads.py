"""Workers pinned to cores: where they are, and which of them share a core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...topologies.machine import Machine

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Workers:
    """A workers, pinned for life, in the order of their nodes, so that neighbours share a node.

    ``node`` (A,): position of each worker's node in the machine; ``core`` (A,): position of its
    core among the C cores in use; ``core_node`` (C,): position of each such core's node.
    """

    node: Ints
    core: Ints
    core_node: Ints

    @property
    def count(self) -> int:
        """A, the number of workers."""
        return len(self.node)

    @property
    def cores(self) -> int:
        """C, the number of cores in use."""
        return len(self.core_node)


def pin_workers(machine: Machine, nodes: Ints) -> Workers:
    """Workers on the nodes at positions ``nodes`` (A,), in rising order.

    The workers of a node are dealt to its cores in turn.
    """
    core_of: list[int] = []
    core_node: list[int] = []
    for position, count in zip(*np.unique(nodes, return_counts=True), strict=True):
        cores = min(int(count), machine.nodes[position].cores)
        core_of += [len(core_node) + k % cores for k in range(count)]
        core_node += [int(position)] * cores
    return Workers(nodes, np.array(core_of, dtype=np.int64), np.array(core_node, dtype=np.int64))
