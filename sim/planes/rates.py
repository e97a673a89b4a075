"""Rates of flows at one moment, and the loads that go with them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from .resources import Resources
from .transfer_flows import TransferFlows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Loads:
    """What waits depend on, and where to start from: load, 0 to 1, of memory controllers (n,) and
    directed links (2L,); the part of each link that control messages take (2L,). ``makers`` (n,):
    each node's share in making messages, where a search found it.
    """

    memory: Floats
    links: Floats
    control: Floats
    makers: Floats | None = None

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
