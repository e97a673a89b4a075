"""What both commit protocols share: clients in a closed loop, records, timestamps, counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field

from ....machine.reference.message_path import Place, Process, Servers
from ..history import ABORT, BEGIN, CAUSES, DIED, OUTCOME, READ
from ..parameters import CommitParameters, Death
from ..result import CommitResult, Latencies
from ..workload import TransactionDraw, server_of
from .cluster import Cluster


@dataclass
class Record:
    """One record: its versions, the newest first, and who holds its lock since when."""

    versions: list[int] = field(default_factory=lambda: [0])
    owner: int | None = None
    locked_ps: int = 0

    def visible(self, rid: int) -> int:
        """The newest version that a snapshot sees, or -1 where it is no longer kept."""
        return next((cid for cid in self.versions if cid <= rid), -1)

    def install(self, cid: int, keep: int) -> None:
        """A new version, which unlocks; the oldest goes where there are more than ``keep``."""
        self.versions = [cid, *self.versions[: keep - 1]]
        self.owner = None


class Client(Place):
    """A client's thread, its random draws, and its copy of the snapshot."""

    def __init__(
        self, number: int, cluster: Cluster, p: CommitParameters, draw: TransactionDraw
    ) -> None:
        factor = next((s.factor for s in p.stragglers if s.client == number), 1)
        adapter = cluster.adapters[p.client_machine[number]]
        super().__init__(number, adapter, Servers(cluster.env), factor)
        self.draw = draw
        self.transaction = -1
        self.began_ps = 0
        self.snapshot = 0
        self.copy_uses = 0


class Node(Place):
    """A server: records, a transaction manager or the timestamp service, or several of them."""

    def __init__(self, number: int, cluster: Cluster, machine: int, threads: int) -> None:
        super().__init__(number, cluster.adapters[machine], Servers(cluster.env, threads))
        self.records: dict[int, Record] = {}
        self.fenced_clients: set[int] = set()

    def record(self, key: int) -> Record:
        """A record that this node holds."""
        return self.records.setdefault(key, Record())


class CommitModel(ABC):
    """A cluster whose clients run transactions; a subclass says how one commits."""

    def __init__(self, parameters: CommitParameters, seed: int = 0, replication: int = 0) -> None:
        self.p = p = parameters
        self.cluster = Cluster(p.machines, p.costs, p.message_types, p.processors)
        self.env = self.cluster.env
        clients = len(p.client_machine)
        self.clients = [
            Client(c, self.cluster, p, TransactionDraw(p, c, seed, replication))
            for c in range(clients)
        ]
        self.nodes = [
            Node(clients + n, self.cluster, node.machine, node.threads)
            for n, node in enumerate(p.nodes)
        ]
        self.storage = [self.nodes[n] for n in p.storage]
        self.own_storage = [self.nodes[n] for n in p.own_storage]
        self.timestamps = self.nodes[p.timestamps]
        self.commits = 0
        self.given_up = 0
        self.aborts = Counter(dict.fromkeys(CAUSES, 0))
        self.latencies_ps: list[int] = []
        for death in p.deaths:
            self.env.timeout(death.at_ps, death).callbacks.append(self._die)
        self.starts = {
            client: self.env.timeout(at_ps) for client, at_ps in enumerate(p.start_ps) if at_ps
        }
        for client in self.clients:
            self.env.process(self.run_client(client))

    # The protocol.

    @abstractmethod
    def fetch_snapshot(self, client: Client) -> Process:
        """Asks the timestamp service for the highest committed timestamp, and returns it."""

    @abstractmethod
    def transact(self, client: Client, reads: list[int], inserts: list[int]) -> Process:
        """Reads and commits on ``client.snapshot``; returns whether it committed."""

    # The closed loop.

    def run_client(self, client: Client) -> Process:
        """Transactions one after another, each tried again ``retries`` times where it aborts."""
        if client.number in self.starts:
            yield self.starts[client.number]
            if client.stopped:
                yield self.cluster.never
        while True:
            reads, inserts = client.draw.records()
            client.began_ps = self.env.now
            for tries in range(self.p.retries + 1):
                if tries:
                    yield from self.cluster.pause(client, self.p.backoff_ps)
                client.transaction += 1
                yield from self.begin(client)
                if (yield from self.transact(client, reads, inserts)):
                    break
            else:
                self.given_up += 1
            yield from self.cluster.pause(client, client.draw.think_ps())

    def begin(self, client: Client) -> Process:
        """A snapshot, fetched or from the client's copy."""
        if client.copy_uses == 0:
            client.snapshot = yield from self.fetch_snapshot(client)
            client.copy_uses = self.p.snapshot_every
        client.copy_uses -= 1
        self.log(BEGIN, client, client.snapshot)

    def log_reads(self, client: Client, reads: list[int], seen: list[int]) -> bool:
        """Logs the versions read; whether none of them was dropped."""
        for key, cid in zip(reads, seen, strict=True):
            self.log(READ, client, key, cid)
        return min(seen) >= 0

    def end_committed(self, client: Client, cid: int) -> bool:
        """The client knows that it committed."""
        self.log(OUTCOME, client, cid)
        self.commits += 1
        self.latencies_ps.append(self.env.now - client.began_ps)
        return True

    def end_aborted(self, client: Client, cause: int) -> bool:
        """The client knows that it did not, and drops its copy of the snapshot."""
        self.log(ABORT, client, cause)
        self.aborts[CAUSES[cause]] += 1
        client.copy_uses = 0
        self.cluster.give_way(client)
        return False

    # Records.

    def holder(self, key: int) -> Node:
        """The storage server of a record."""
        return self.storage[server_of(self.p, key)]

    def thread_of(self, server: Node, client: int) -> Node:
        """The node that takes the messages of a client's transactions for a storage server."""
        if not self.own_storage:
            return server
        return self.own_storage[self.storage.index(server) * len(self.clients) + client]

    def log(self, kind: int, client: Client, a: int, b: int = 0) -> None:
        """A row about the client's present transaction."""
        self.cluster.log(kind, client.number, client.transaction, a, b)

    def _die(self, event: object) -> None:
        death: Death = event.value  # type: ignore[attr-defined]
        client = self.clients[death.client]
        if not client.stopped:
            client.stopped = True
            self.log(DIED, client, 0)

    # Running, and what was seen.

    def run(self, until_ps: int) -> None:
        """Goes on to that time; what happens just then comes after."""
        self.env.run(until_ps)

    @property
    def now_ps(self) -> int:
        """The time reached."""
        return self.env.now

    def trace(self) -> list[tuple[int, int, int, int, int, int]]:
        """All that happened so far: see ../history.py."""
        return self.cluster.trace

    def result(self) -> CommitResult:
        """Counts and busy times up to now."""
        return CommitResult(
            time_ps=self.now_ps,
            commits=self.commits,
            given_up=self.given_up,
            aborts=dict(self.aborts),
            messages={name: self.cluster.sent[name] for name in self.p.message_types},
            outgoing_busy_ps=self.cluster.outgoing_busy_ps(),
            incoming_busy_ps=self.cluster.incoming_busy_ps(),
            node_busy_ps=tuple(map(self.cluster.busy_ps, self.nodes)),
            client_busy_ps=sum(map(self.cluster.busy_ps, self.clients)),
            latency_ps=Latencies.of(self.latencies_ps),
        )
