"""What both commit protocols share: clients in a closed loop, records, timestamps, counts."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from functools import partial
from inspect import isgenerator
from typing import Any

import numpy as np
import simpy

from ...._kernel import PathFault
from ....kernel.histogram import Histogram
from ....kernel.streams import stream
from ....machine.reference.clock import run_until
from ....machine.reference.message_path import LostError, PathFaults, Place, Process
from ..history import (
    ABORT,
    BEGIN,
    CAUSES,
    DIED,
    FAILED_OVER,
    OUTCOME,
    READ,
    REJOINED,
    RETURNED,
    STOPPED,
)
from ..parameters import LOSSES, CommitParameters, Death, Stop
from ..result import CommitResult
from ..workload import TransactionDraw, server_of
from .places import Client, Cluster, Node, Record

OUT = object()  # what came of asking a server that is out


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
        self.events = 0
        self.findings: list[str] = []  # its history is not checked
        self.out: set[int] = set()  # machines whose storage servers are out
        self.rejoins: list[tuple[int, int]] = []
        self.drains: Node | None = None  # for which nothing begins until all has ended
        self.waiting: list[simpy.Event] = []
        self.absent = self.degraded_total_ps = self.degraded_since_ps = 0
        self.given_up = 0
        self.aborts = Counter(dict.fromkeys(CAUSES, 0))
        self.latencies_ps: list[int] = []
        for death in p.deaths:
            self.env.timeout(death.at_ps, death).callbacks.append(self._die)
        self.cluster.paths = PathFaults(p.transport, stream(seed, replication, LOSSES))
        for fault in p.path_faults:
            self.env.timeout(fault.from_ps, fault).callbacks.append(self._path_fails)
            self.env.timeout(fault.until_ps, fault).callbacks.append(self._path_is_well)
        for stop in p.stops:
            self.env.timeout(stop.at_ps, stop).callbacks.append(self._stop)
            if stop.returns_ps is not None:
                self.env.timeout(stop.returns_ps, stop).callbacks.append(self._return)
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
            if self.p.rest_ps is not None and self.env.now >= self.p.rest_ps:
                yield self.cluster.never
            reads, inserts = client.draw.records()
            client.began_ps = self.env.now
            for tries in range(self.p.retries + 1):
                if tries:
                    yield from self.cluster.pause(client, self.p.backoff_ps)
                while self.drains is not None:
                    self.waiting.append(self.env.event())
                    yield self.waiting[-1]
                    if client.stopped:
                        yield self.cluster.never
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
        client.ended = client.transaction
        self.look_whether_quiet()
        self.latencies_ps.append(self.env.now - client.began_ps)
        return True

    def end_aborted(self, client: Client, cause: int) -> bool:
        """The client knows that it did not, and drops its copy of the snapshot."""
        self.log(ABORT, client, cause)
        client.ended = client.transaction
        self.look_whether_quiet()
        self.aborts[CAUSES[cause]] += 1
        client.copy_uses = 0
        self.cluster.give_way(client)
        return False

    # Records.

    def copies(self, key: int) -> list[Node]:
        """The storage servers that have a record, its own first."""
        own, servers = server_of(self.p, key), len(self.storage)
        return [self.storage[(own + copy) % servers] for copy in range(1 + self.p.replicas)]

    def holders(self, key: int) -> list[Node]:
        """Those that answer for it."""
        return [node for node in self.copies(key) if not self.is_out(node)]

    def holder(self, key: int) -> Node:
        """The storage server that a record is read from."""
        return self.holders(key)[0]

    def thread_of(self, server: Node, client: int) -> Node:
        """The node that takes the messages of a client's transactions for a storage server."""
        if not self.own_storage:
            return server
        return self.own_storage[self.storage.index(server) * len(self.clients) + client]

    def log(self, kind: int, client: Client, a: int, b: int = 0) -> None:
        """A row about the client's present transaction."""
        self.cluster.log(kind, client.number, client.transaction, a, b)

    # Faults.

    def time_at(self, place: Place) -> int:
        """What the clock of its machine says."""
        now_ps, machine = self.env.now, self.cluster.adapters.index(place.adapter)
        of_machine = (fault for fault in self.p.clock_faults if fault.machine == machine)
        on = (fault for fault in of_machine if fault.from_ps <= now_ps < fault.until_ps)
        off_ps = (f.ahead_ps + (now_ps - f.from_ps) // 10**6 * f.drift_ppm for f in on)
        return now_ps + sum(off_ps)

    def _die(self, event: Any) -> None:
        death: Death = event.value
        client = self.clients[death.client]
        if death.step is None:
            self.die(client)
        client.dies_at = death.step

    def die(self, client: Client, cause: int = DIED) -> None:
        """For good."""
        if not client.stopped:
            client.stop()
            self.log(cause, client, 0)
            self.look_whether_quiet()

    def reaches(self, client: Client, step: str) -> None:
        """It dies here where it was to do so."""
        if client.dies_at == step:
            self.die(client)

    def _path_fails(self, event: Any) -> None:
        fault: PathFault = event.value
        self.cluster.paths.active.append(fault)

    def _path_is_well(self, event: Any) -> None:
        self.cluster.paths.active = [f for f in self.cluster.paths.active if f is not event.value]

    def _stop(self, event: Any) -> None:
        stop: Stop = event.value
        for node in self._on(stop.machine):
            if self.p.replicas and node in self.storage:
                node.turn, node.is_back = node.turn + 1, False
                self._end_drain(node)
                if node.stopped:
                    continue
                self._count_degraded(1)
            node.stop()
            node.threads.drop()
            self.cluster.log(STOPPED, node.number, 0, 0)
            if self.p.replicas and node in self.storage:
                self._look_after(node)

    def _return(self, event: Any) -> None:
        stop: Stop = event.value
        for node in self._on(stop.machine):
            if self.p.replicas and node in self.storage:
                node.turn, node.is_back = node.turn + 1, True
                node.empty = node.empty or stop.empty
                # Nobody waits for it, or nobody would if it came back empty: it is copied to first.
                if self.is_out(node):
                    self._begin_copy(node)
                if self.is_out(node) or node.empty:
                    continue
                self._count_degraded(-1)
            node.start()
            if stop.empty:
                node.forget()
            self.cluster.log(RETURNED, node.number, 0, 0)
        self.returned(stop.machine)
        self.look_whether_quiet()

    def _look_after(self, node: Node) -> None:
        """Whether it is still stopped after the time that others wait for it."""
        assert self.p.failover_ps is not None
        waited = self.env.timeout(self.p.failover_ps, (node, node.life))
        waited.callbacks.append(self._fail_over)

    def _fail_over(self, event: Any) -> None:
        """Out, if those that have its records and whose records it has are there."""
        node, life = event.value
        if node.life != life:
            return
        if any(other.stopped for other in self.neighbours(node)):
            return self._look_after(node)
        self.out.add(node.machine)
        self.cluster.log(FAILED_OVER, node.number, 0, 0)
        if node.is_back:
            self._begin_copy(node)

    def neighbours(self, node: Node) -> list[Node]:
        """The storage servers after it and before it."""
        place, servers = self.storage.index(node), len(self.storage)
        return [self.storage[(place + step) % servers] for step in (1, servers - 1)]

    def _begin_copy(self, node: Node) -> None:
        copied = self.env.timeout(self._missed(node) * self.p.copy_ps, (node, node.turn))
        copied.callbacks.append(self._rejoin)

    def _missed(self, node: Node) -> int:
        """How many of its records changed while it was out; all, where it has none of them."""
        server, servers = self.storage.index(node), len(self.storage)
        if node.empty:
            owns = (server, (server - 1) % servers)
            return sum(len(range(own, self.p.records, servers)) for own in owns)
        return sum(
            record.versions[0] != node.record(key).versions[0]
            for other in dict.fromkeys(self.neighbours(node))
            for key, record in other.records.items()
            if node in self.copies(key)
        )

    def _rejoin(self, event: Any) -> None:
        """It has its records: once all that is under way has ended it answers with the others."""
        node, turn = event.value
        if node.turn != turn:
            return
        if self.drains is not None:
            assert self.p.failover_ps is not None
            again = self.env.timeout(self.p.failover_ps, event.value)
            return again.callbacks.append(self._rejoin)
        self.drains = node
        self.look_whether_quiet()

    def look_whether_quiet(self) -> None:
        """Whether nothing is under way that began before a server drains."""
        node = self.drains
        busy = any(not c.stopped and c.ended < c.transaction for c in self.clients)
        if node is None or busy or not self.quiet():
            return
        if any(other.stopped for other in self.neighbours(node)):
            return
        self._copy_records(node)
        node.empty = False
        self.out.discard(node.machine)
        node.start()
        self.cluster.log(REJOINED, node.number, 0, 0)
        self.rejoins.append((self.env.now, node.machine))
        self._count_degraded(-1)
        self._end_drain(node)

    @abstractmethod
    def quiet(self) -> bool:
        """Whether nothing is under way but what clients do."""

    def _end_drain(self, node: Node) -> None:
        if self.drains is node:
            self.drains = None
            for wakes in self.waiting:
                wakes.succeed()
            self.waiting.clear()

    def _copy_records(self, node: Node) -> None:
        """What the others have."""
        keys = {key for other in (node, *self.neighbours(node)) for key in other.records}
        for key in keys:
            both = self.copies(key)
            if node in both:
                (other,) = (place for place in both if place is not node)
                node.records[key] = Record([*other.record(key).versions])

    def _count_degraded(self, change: int) -> None:
        self.degraded_total_ps, self.degraded_since_ps = self.degraded_ps, self.env.now
        self.absent += change

    @property
    def degraded_ps(self) -> int:
        """For how long a storage server was stopped or out, where records have replicas."""
        now_ps = self.env.now if self.absent else self.degraded_since_ps
        return self.degraded_total_ps + now_ps - self.degraded_since_ps

    def is_out(self, place: Place) -> bool:
        """Of a storage server that failed over."""
        return isinstance(place, Node) and place.machine in self.out

    def _on(self, machine: int) -> list[Node]:
        each = zip(self.nodes, self.p.nodes, strict=True)
        return [node for node, described in each if described.machine == machine]

    def returned(self, machine: int) -> None:
        """The nodes of a machine are back: goes on with what they had begun, if anything."""
        assert machine < self.p.machines

    def gone(self, asker: Place, life: int) -> bool:
        """Whether who asked in that life of its does not wait any more."""
        return asker.number < len(self.clients) and asker.life != life

    def insist(self, asker: Place, other: Place, attempt: Callable[[], Process]) -> Process:
        """Attempts it again, a while later, where one of the two stopped before it was done.

        Returns OUT where the other one is out by then.
        """
        life, tries = asker.life, 0
        while True:
            try:
                return (yield from attempt())
            except LostError:
                waits = True
            while waits:
                yield from self._goes_on(asker, other, life)
                yield self.env.timeout(self.cluster.paths.wait_ps(tries))
                tries += 1
                if self.is_out(other):
                    yield from self._goes_on(asker, other, life)
                    return OUT
                waits = asker.stopped or other.stopped
            yield from self._goes_on(asker, other, life)

    def _goes_on(self, asker: Place, other: Place, life: int) -> Process:
        """Unless one of the two is gone for good."""
        dead = other.number < len(self.clients) and other.stopped
        if not self.p.faulty or dead or self.gone(asker, life):
            yield self.cluster.never

    def call(
        self,
        kinds: tuple[str, str],
        asker: Place,
        server: Place,
        effect: Callable[[], Any],
        items: int = 0,
        work_ps: int = 0,
        posted: bool = False,
        out: Callable[[], Any] | None = None,
    ) -> Process:
        """A request and its answer, what ``effect`` returned; that comes about once.

        A server remembers what it has answered. ``posted``: the first request was. ``out``: done
        instead where the server is out; else the effect is that on its memory, which nobody reads.
        """
        life, results = asker.life, list[Any]()
        request, answer = kinds
        message = request, asker, server, items, work_ps
        send = self.posted(*message) if posted else partial(self.cluster.message, *message)

        def attempt() -> Process:
            yield from send()
            if self.stale(asker, life):
                yield self.cluster.never
            if not results:
                found = effect()
                results.append((yield from found) if isgenerator(found) else found)
            yield from self.cluster.message(answer, server, asker)
            if self.stale(asker, life):
                yield self.cluster.never
            return results[0]

        found = yield from self.insist(asker, server, attempt)
        if found is not OUT:
            return found
        if results and out is None:
            return results[0]
        found = (out or effect)()
        return (yield from found) if isgenerator(found) else found

    def posted(
        self, kind: str, asker: Place, other: Place, items: int = 0, work_ps: int = 0
    ) -> Callable[[], Process]:
        """What sends a message, the first time one that was posted."""
        ways = iter((self.cluster.carry,))
        return lambda: next(ways, self.cluster.message)(kind, asker, other, items, work_ps)

    def stale(self, asker: Place, life: int) -> bool:
        """Whether nobody heeds a message, as its asker stopped since."""
        return False

    # Running, and what was seen.

    def run(self, until_ps: int) -> None:
        """Goes on to that time; what happens just then comes after."""
        self.events += run_until(self.env, until_ps)

    @property
    def now_ps(self) -> int:
        """The time reached."""
        return self.env.now

    def trace(self) -> list[tuple[int, int, int, int, int, int]]:
        """All that happened so far: see ../history.py."""
        return self.cluster.trace

    @property
    def commits(self) -> int:
        """Transactions that committed so far."""
        return len(self.latencies_ps)

    @property
    def latency_total_ps(self) -> int:
        """The sum of their latencies."""
        return sum(self.latencies_ps)

    def busy_ps(self) -> list[int]:
        """As ``CommitResult`` has it."""
        busy_ps, cluster = self.cluster.busy_ps, self.cluster
        adapters = [*cluster.outgoing_busy_ps(), *cluster.incoming_busy_ps()]
        return [*adapters, *map(busy_ps, self.nodes), sum(map(busy_ps, self.clients))]

    def result(self) -> CommitResult:
        """Counts and busy times up to now."""
        return CommitResult(
            time_ps=self.now_ps,
            given_up=self.given_up,
            aborts=dict(self.aborts),
            messages={name: self.cluster.sent[name] for name in self.p.message_types},
            busy_ps=np.array(self.busy_ps(), dtype=np.int64),
            latencies_ns=Histogram.of_values(self.latencies_ps),
        )
