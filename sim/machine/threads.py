"""Workers: threads of the operating system, with the core of each, and who shares it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...inputs.shared_work import once
from ...topologies.machine import Machine
from ..kernel.arrays import Floats, Ints


@dataclass(frozen=True)
class Workers:
    """Where A workers are at a time, in an order in which neighbours share a node at the start.

    ``core`` (A,): position of each worker's core among the C cores that workers may use;
    ``core_node`` (C,): position of each such core's node in the machine. A core may have several
    workers, or none. Who moves workers hands on the Workers that ``moved`` returns; who needs to
    know where a worker is asks for them again.
    """

    core: Ints
    core_node: Ints

    @cached_property
    def node(self) -> Ints:
        """(A,) position of each worker's node."""
        return self.core_node[self.core]

    @property
    def count(self) -> int:
        """A, the number of workers."""
        return len(self.core)

    @property
    def cores(self) -> int:
        """C, the number of cores that workers may use."""
        return len(self.core_node)

    @cached_property
    def on_cores(self) -> Floats:
        """(C,) how many workers each core has."""
        return np.bincount(self.core, minlength=self.cores).astype(np.float64)

    def active_cores(self, nodes: int) -> Ints:
        """(n,) how many cores of each of the ``nodes`` have a worker."""
        return np.bincount(self.core_node[np.unique(self.core)], minlength=nodes)

    def moved(self, workers: Sequence[int] | Ints, cores: Sequence[int] | Ints) -> "Workers":
        """The same with ``workers`` on ``cores``, both by position. Raises IndexError beyond."""
        core, found = np.array(cores, dtype=np.int64), self.core.copy()
        if len(core) and not (core.min() >= 0 and core.max() < self.cores):
            raise IndexError(f"cores: expected positions below {self.cores}, found {core.tolist()}")
        found[np.array(workers, dtype=np.int64)] = core
        return replace(self, core=found)


def place_workers(machine: Machine, nodes: Ints) -> Workers:
    """Workers on the nodes at positions ``nodes`` (A,), in rising order.

    The workers of a node are dealt to its cores in turn; they may use no more cores than that.
    """
    cores_of = tuple(node.cores for node in machine.nodes)
    return once("workers", (nodes.tobytes(), cores_of), lambda: _placed(cores_of, nodes))


def _placed(cores_of: Sequence[int], nodes: Ints) -> Workers:
    core_of: list[int] = []
    core_node: list[int] = []
    for position, count in zip(*np.unique(nodes, return_counts=True), strict=True):
        cores = min(int(count), cores_of[position])
        core_of += [len(core_node) + k % cores for k in range(count)]
        core_node += [int(position)] * cores
    return Workers(np.array(core_of, dtype=np.int64), np.array(core_node, dtype=np.int64))
