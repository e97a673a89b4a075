"""Who takes part in transactions: clients, and nodes that serve them.

A record: its versions and its lock, and what verbs do to it.

Clients and servers on a network: their own time, and the trace of what happens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...._kernel import MessageCost, ProcessorSetup
from ....machine.reference.message_path import MessagePath, Place, Process, Servers
from ..history import CONFLICT, LOCKED, MESSAGE, Row
from ..parameters import CommitParameters
from ..workload import TransactionDraw


class Client(Place):
    """A client's thread, its random draws, and its copy of the snapshot."""

    def __init__(
        self, number: int, cluster: "Cluster", p: CommitParameters, draw: TransactionDraw
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

    def __init__(self, number: int, cluster: "Cluster", machine: int, threads: int) -> None:
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

    def record(self, key: int) -> "Record":
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


class Cluster(MessagePath):
    """The machines, and what clients and nodes on them do."""

    def __init__(
        self,
        machines: int,
        costs: Mapping[str, tuple[MessageCost, ...]],
        types: tuple[str, ...],
        processors: ProcessorSetup | None = None,
    ) -> None:
        super().__init__(machines, costs, processors)
        self.types = {name: index for index, name in enumerate(types)}
        self.trace: list[Row] = []

    def log(self, kind: int, client: int, transaction: int, a: int, b: int = 0) -> None:
        """Adds a row to the trace."""
        self.trace.append((self.env.now, kind, client, transaction, a, b))

    def note(self, kind: str, sender: Place, receiver: Place) -> None:
        """Traces the message."""
        self.log(MESSAGE, sender.number, receiver.number, self.types[kind])

    def give_way(self, place: Place) -> None:
        """On shared processors, lets others run first, where that is how places do it."""
        processors = self.shared(place)
        if processors is not None and processors.setup.gives_way:
            processors.give_way(place.process)

    def compute(self, place: Place, ps: int) -> Process:
        """The place works; then a place that has stopped goes no further."""
        if ps and self.shared(place) is None:
            yield self.env.timeout(ps * place.factor)
        elif ps:
            yield self.work(place, ps)
        if place.stopped:
            yield self.never

    def pause(self, place: Place, ps: int) -> Process:
        """The place's own time passes; then a place that has stopped goes no further."""
        processors = self.shared(place)
        if ps and processors is not None:
            ps *= place.factor
            awake_ps = processors.setup.awake_ps
            if ps > 2 * awake_ps:
                yield self.env.timeout(ps - awake_ps)
                ps = awake_ps
            self.give_way(place)
            if ps:
                yield processors.work(place.process, ps)
        elif ps:
            yield self.env.timeout(ps * place.factor)
        elif processors is not None and place.process.gives_way:
            # Others run first: what comes next begins when the place runs again.
            yield processors.work(place.process, 0)
        if place.stopped:
            yield self.never

    def together(self, parts: list[Process], posting: list[Process] | None = None) -> Process:
        """Runs all parts at once, waits for the last of them, and returns what each returned.

        ``posting``: what comes before each part; it is then under way before the next one is.
        """
        results: list[Any] = [None] * len(parts)
        done = self.env.event()
        left = len(parts)

        def run(index: int, part: Process) -> Process:
            nonlocal left
            results[index] = yield from part
            left -= 1
            if left == 0:
                done.succeed()

        for index, part in enumerate(parts):
            if posting is not None:
                yield from posting[index]
            self.env.process(run(index, part))
            if posting is not None:
                yield self.env.timeout(0)
        if parts:
            yield done
        return results
