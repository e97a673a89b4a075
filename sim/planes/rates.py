"""Rates of flows at one moment, the loads that go with them, and the resources that they share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ..machine.costs import CostModel
from .transfer_flows import TransferFlows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Loads:
    """What waits depend on, and where to start from: load, 0 to 1, of memory controllers (n,) and
    directed links (2L,); the part of each link that control messages take (2L,).
    """

    memory: Floats
    links: Floats
    control: Floats

    def joined(self) -> Floats:
        """All loads in one array."""
        return np.concatenate([self.memory, self.links, self.control])

    def split(self, joined: Floats) -> Loads:
        """Loads from one array, as ``joined`` makes it."""
        n, links = len(self.memory), len(self.links)
        return Loads(joined[:n], joined[n : n + links], joined[n + links :])


@dataclass(frozen=True)
class Rates:
    """What goes on while nothing changes.

    ``flows`` (F,), ``transfers`` (T,): units per second. ``use`` (R,): of each resource, 0 to 1.
    ``binding`` (F,): the resource that holds each flow, -1 for its cap. ``steps``: by step of the
    workers' loop, the time in s that a unit takes in the workers of each core (C,); ``of_core``
    (C,): units per second that each core works for. ``memory_Bps`` (n,), ``link_Bps`` (2L,):
    traffic. ``pair_Bps`` (n, n): what each node draws from each home, transfers left out; empty
    where no pair is limited.
    """

    flows: Floats
    transfers: Floats
    use: Floats
    binding: Ints
    loads: Loads
    memory_Bps: Floats
    link_Bps: Floats
    steps: dict[str, Floats] = field(default_factory=dict)
    of_core: Floats = field(default_factory=lambda: np.zeros(0))
    pair_Bps: Floats = field(default_factory=lambda: np.zeros(0))
    transfer_flows: TransferFlows | None = None
    columns: Resources | None = None
    residual: float = 0.0
    """By how much loads that waits were computed from differ from those that came of it."""
    iterations: int = 0

    def with_transfers(self, transfers: Floats) -> Rates:
        """The same with slower ``transfers`` (T,), which use less."""
        flows, columns = self.transfer_flows, self.columns
        if flows is None or columns is None:
            return self
        slower = self.transfers - transfers
        less = flows.use_of(slower, columns.count)
        less[columns.links] += less[columns.control]
        use = np.maximum(self.use - less / columns.capacity, 0.0)
        return replace(
            self,
            transfers=transfers,
            use=use,
            memory_Bps=np.maximum(self.memory_Bps - flows.memory_Bps(slower), 0.0),
            link_Bps=np.maximum(self.link_Bps - less[columns.links], 0.0),
        )


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
