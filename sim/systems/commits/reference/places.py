"""Who takes part in transactions: clients, and nodes that serve them."""

from __future__ import annotations

from ....machine.reference.message_path import Place, Servers
from ..parameters import CommitParameters
from ..workload import TransactionDraw
from .cluster import Cluster
from .record import Record


class Client(Place):
    """A client's thread, its random draws, and its copy of the snapshot."""

    def __init__(
        self, number: int, cluster: Cluster, p: CommitParameters, draw: TransactionDraw
    ) -> None:
        factor = next((s.factor for s in p.stragglers if s.client == number), 1)
        adapter = cluster.adapters[p.client_machine[number]]
        super().__init__(number, adapter, Servers(cluster.env), factor)
        self.draw = draw
        self.transaction = self.ended = -1
        self.began_ps = 0
        self.snapshot = 0
        self.copy_uses = 0
        self.dies_at: str | None = None


class Node(Place):
    """A server: records, a transaction manager or the timestamp service, or several of them."""

    def __init__(self, number: int, cluster: Cluster, machine: int, threads: int) -> None:
        super().__init__(number, cluster.adapters[machine], Servers(cluster.env, threads))
        self.machine = machine
        self.records: dict[int, Record] = {}
        self.forgot = False
        self.is_back = self.empty = False
        """Where its replica took over: whether it comes back, and without its memory."""
        self.turn = 0
        self.fenced_clients: set[int] = set()
        self.installed: dict[int, tuple[int, list[int]]] = {}
        """By client, where fencing undoes: its newest timestamp here, and its records."""

    def record(self, key: int) -> Record:
        """A record that this node holds; without versions where it came back empty."""
        return self.records.setdefault(key, Record([-1] if self.forgot else [0]))

    def forget(self) -> None:
        """Its memory is lost."""
        self.records, self.forgot = {}, True
