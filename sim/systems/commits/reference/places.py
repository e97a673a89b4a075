"""Who takes part in transactions: clients, and nodes that serve them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....machine.reference.message_path import Place, Servers
from ..history import CONFLICT, LOCKED
from ..parameters import CommitParameters
from ..workload import TransactionDraw
from .cluster import Cluster


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


GRANTED = -1  # a vote or the result of a CAS, else the cause of an abort
GONE = -2  # of a CAS: its server is out


@dataclass
class Record:
    """One record: its versions, the newest first, and who holds its lock since when."""

    versions: list[int] = field(default_factory=lambda: [0])
    owner: int | None = None
    locked_ps: int = 0

    def visible(self, rid: int) -> int:
        """The newest version that a snapshot sees, or -1 where it is no longer kept."""
        return next((cid for cid in self.versions if cid <= rid), -1)

    def undo(self, keep: int) -> None:
        """The newest version goes."""
        self.versions = [*self.versions[1:], -1][:keep]

    def install(self, cid: int, keep: int) -> None:
        """A new version, which unlocks; the oldest goes where there are more than ``keep``."""
        self.versions = [cid, *self.versions[: keep - 1]]
        self.owner = None


def compare_and_lock(
    record: Record, client: int, expected: int, now_ps: int
) -> tuple[int, int, int]:
    """One CAS: (GRANTED or why not, the lock's owner, its time)."""
    if record.owner is not None:
        return LOCKED, record.owner, record.locked_ps
    if record.versions[0] != expected:
        return CONFLICT, -1, 0
    record.owner, record.locked_ps = client, now_ps
    return GRANTED, client, now_ps


def free(record: Record, owner: int) -> bool:
    """Unlocks if that owner holds it; whether it did."""
    if record.owner != owner:
        return False
    record.owner = None
    return True
