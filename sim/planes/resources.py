"""The resources of a machine that flows share, by position."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..machine.costs import CostModel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Resources:
    """The R resources of a machine whose cores at ``core_node`` (C,) are in use, by position.

    Time of the workers of a core (as many seconds per second as it runs ``threads`` (C,)), time
    that the core executes, time of its miss slots; time of memory controllers, in bytes that they
    would read in it per second; bytes per second of data and of control messages on directed links;
    units per second that clients ask for, time of the most contended cache line; pairs of nodes
    that transfers go between follow.
    """

    def __init__(self, costs: CostModel, core_node: Ints, threads: Floats) -> None:
        c, n, links = len(core_node), len(costs.machine.nodes), len(costs.link_Bps)
        self.workers = slice(0, c)
        self.cores = slice(c, 2 * c)
        self.misses = slice(2 * c, 3 * c)
        self.memory = slice(3 * c, 3 * c + n)
        self.links = slice(3 * c + n, 3 * c + n + links)
        self.control = slice(self.links.stop, self.links.stop + links)
        self.clients = self.control.stop
        self.line = self.clients + 1
        self.count = self.line + 1
        memory_Bps = np.where(np.isnan(costs.memory_Bps), np.inf, costs.memory_Bps)
        self.capacity = np.concatenate(
            [threads, np.ones(2 * c), memory_Bps, costs.link_Bps, costs.link_Bps, [np.inf, 1.0]]
        )

    def describe(self, position: int) -> tuple[str, int]:
        """Kind (``workers``, ``cores``, ``misses``, ``memory``, ``links``, ``clients``, ``line``,
        ``pairs``), and position within it.
        """
        if position in (self.clients, self.line):
            return "clients" if position == self.clients else "line", 0
        for kind in ("workers", "cores", "misses", "memory", "links", "control"):
            part = getattr(self, kind)
            if part.start <= position < part.stop:
                return "links" if kind == "control" else kind, position - part.start
        return "pairs", position - self.count
