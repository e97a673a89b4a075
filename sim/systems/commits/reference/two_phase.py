"""Snapshot isolation by two-phase commit, as databases did it before RDMA (Binnig et al. 2016).

The client reads its records from their servers (RMs), as of its snapshot RID. Then:

    client → TM         commit request                                      (1)
    TM ↔ timestamps     the commit timestamp CID                            (2)
    TM ↔ every RM       prepare: no record of the write set has a CID
                        above RID, none is locked; lock them                (3), beside (2)
    TM ↔ every RM       commit: install and unlock                          (4)
    TM → client         outcome                                             (6), beside (4)
    TM → timestamps     installed                                           (5)

So the client knows after four one-way delays, and all see it after six. Where an RM votes no, the
others unlock, and the client hears of it; the CID is done with. A snapshot is the highest timestamp
below which all are done with.

A TM that stops takes what it was at with it; RMs keep their locks, and clients wait: 2PC blocks.
When it comes back it goes through its log. What was decided is carried out, what was not aborts;
messages of its former life are not heeded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import simpy

from ....machine.reference.message_path import Place, Process
from ..history import (
    COMMIT,
    CONFLICT,
    INSTALL,
    LOCKED,
    ROLLED_BACK,
    SNAPSHOT,
    STOPPED_BY_FAULT,
    WRITE,
)
from ..parameters import CommitParameters
from .commits import CommitModel
from .places import GRANTED, Client, Node
from .timestamps import TimestampCounter


@dataclass(eq=False)
class Share:
    """What one RM has to do with a transaction: the records that it locks, and its new ones.

    ``thread``: takes the messages. ``locked``, ``installed``: what the RM knows of it.
    """

    rm: Node
    thread: Node
    updates: list[int]
    inserts: list[int]
    locked: bool = False
    installed: bool = False


@dataclass(eq=False)
class Managed:
    """A transaction at its TM, as the TM's log has it while it may have to be resolved.

    ``cid``: 0 before the timestamp service gave one. ``vote``: None before it is decided.
    """

    client: Client
    number: int
    rid: int
    tm: Node
    shares: list[Share]
    outcome: simpy.Event
    life: int
    cid: int = 0
    vote: int | None = None
    reported: bool = False
    over: bool = False
    rollbacks: int = 0
    """Under way."""

    @property
    def ended(self) -> bool:
        """Whether nothing of it is left to be done."""
        return self.over and not self.rollbacks and (self.reported or self.client.stopped)


class TwoPhaseModel(CommitModel):
    """Clients, TMs, RMs and a timestamp service that commit by 2PC."""

    def __init__(self, parameters: CommitParameters, seed: int = 0, replication: int = 0) -> None:
        super().__init__(parameters, seed, replication)
        self.service = TimestampCounter()
        self.managers = [self.nodes[n] for n in parameters.managers]
        self.open: dict[Managed, None] = {}

    def fetch_snapshot(self, client: Client) -> Process:
        """Asked for, and answered with, a message."""
        self.reaches(client, "snapshot")
        kinds = "snapshot-request", "snapshot"
        return (
            yield from self.call(kinds, client, self.timestamps, lambda: self.service.highest_done)
        )

    def transact(self, client: Client, reads: list[int], inserts: list[int]) -> Process:
        """The client's side."""
        self.reaches(client, "read")
        seen = yield from self.cluster.together([self.read(client, key) for key in reads])
        if not self.log_reads(client, reads, seen):
            return self.end_aborted(client, SNAPSHOT)
        yield from self.cluster.compute(client, client.draw.compute_ps())
        self.reaches(client, "commit")
        updates = reads[: self.p.updates]
        turn = client.number + (0 if self.p.own_managers else client.transaction)
        manager = self.managers[turn % len(self.managers)]
        carried = len(updates) + len(inserts)
        asks = partial(self.cluster.message, "commit-request", client, manager, carried)
        yield from self.insist(client, manager, asks)  # (1)
        outcome = self.env.event()
        managed = self.managed(manager, client, updates, inserts, outcome)
        self.env.process(self.manage(managed))
        cid, vote = yield outcome
        if vote == GRANTED:
            return self.end_committed(client, cid)
        return self.end_aborted(client, vote)

    def read(self, client: Client, key: int) -> Process:
        """One record, as of the client's snapshot."""
        rm = self.holder(key)
        thread = self.thread_of(rm, client.number)
        return (
            yield from self.call(
                ("read", "record"),
                client,
                thread,
                lambda: rm.record(key).visible(client.snapshot),
                work_ps=self.p.work.read_ps,
                out=lambda: self.read(client, key),
            )
        )

    # The TM's side.

    def managed(
        self, tm: Node, client: Client, updates: list[int], inserts: list[int], outcome: simpy.Event
    ) -> Managed:
        """The TM notes that it begins."""
        shares = [
            Share(
                rm,
                self.thread_of(rm, client.number),
                [k for k in updates if rm in self.holders(k)],
                [k for k in inserts if rm in self.holders(k)],
            )
            for rm in self.storage
            if not self.is_out(rm)
        ]
        if not self.p.every_rm:
            shares = [share for share in shares if share.updates or share.inserts]
        managed = Managed(client, client.transaction, client.snapshot, tm, shares, outcome, tm.life)
        self.open[managed] = None
        return managed

    def manage(self, managed: Managed) -> Process:
        """From the commit request to the end of the transaction."""
        votes = yield from self.together(
            managed,
            [self.fetch_timestamp(managed)]  # (2)
            + [self.prepare(managed, share) for share in managed.shares],  # (3)
        )
        granted = zip(managed.shares, votes[1:], strict=True)
        locked = [share for share, vote in granted if vote == GRANTED]
        yield from self.decide(managed, max(votes[1:]), locked)

    def together(self, managed: Managed, parts: list[Process]) -> Process:
        """All parts, for a TM that did not stop meanwhile."""
        life = managed.life
        results = yield from self.cluster.together(parts)
        if managed.tm.life != life:
            yield self.cluster.never
        return results

    def decide(self, managed: Managed, vote: int, locked: list[Share]) -> Process:
        """From here on the TM's log says how it ends."""
        managed.vote = vote
        if vote == GRANTED:
            for share in managed.shares:
                for key in share.updates + share.inserts:
                    self.log_of(managed, WRITE, key, managed.cid)
        yield from self.carry_out(managed, locked)

    def carry_out(self, managed: Managed, locked: list[Share]) -> Process:
        """Tells all, and the timestamp service in the end."""
        if not managed.reported:
            self.env.process(self.tell(managed))  # (6)
        if managed.vote == GRANTED:
            yield from self.together(
                managed,
                [self.install(managed, share) for share in managed.shares],  # (4)
            )
        else:
            for share in locked:
                if share.updates:
                    managed.rollbacks += 1
                    self.env.process(self.roll_back(managed, share))
        if not managed.over:
            self.env.process(self.finish(managed))

    def returned(self, machine: int) -> None:
        """TMs go on from their logs."""
        here = self._on(machine)
        for managed in list(self.open):
            if managed.tm in here:
                self.close(managed)
                if managed in self.open:
                    self.env.process(self.resolve(managed))

    def resolve(self, managed: Managed) -> Process:
        """What was decided is carried out; the rest aborts, and its timestamp is done with."""
        managed.life, managed.rollbacks = managed.tm.life, 0
        if managed.vote is None:
            yield from self.together(managed, [self.fetch_timestamp(managed)])
            yield from self.decide(managed, STOPPED_BY_FAULT, managed.shares)
        else:
            yield from self.carry_out(managed, managed.shares)

    def quiet(self) -> bool:
        return all(managed.ended for managed in self.open)

    def close(self, managed: Managed) -> None:
        """The TM forgets what is over."""
        if managed.ended and managed in self.open:
            del self.open[managed]
            self.look_whether_quiet()

    def gone(self, asker: Place, life: int) -> bool:
        """A TM that stopped resolves what it had begun, and asks anew."""
        return asker.life != life

    def stale(self, asker: Place, life: int) -> bool:
        """Of a TM's former life."""
        return asker.number >= len(self.clients) and asker.life != life

    def send(
        self,
        kind: str,
        managed: Managed,
        to: Place,
        done: Callable[[], None],
        items: int = 0,
        work_ps: int = 0,
    ) -> Process:
        """A message that is not answered; what it brings about."""
        tm, life = managed.tm, managed.life
        message = partial(self.cluster.message, kind, tm, to, items, work_ps)
        yield from self.insist(tm, to, message)
        if self.stale(tm, life):
            yield self.cluster.never
        done()
        self.close(managed)

    def finish(self, managed: Managed) -> Process:
        """(5)."""

        def done() -> None:
            managed.over = True
            self.service.finish(managed.cid)
            kind = COMMIT if managed.vote == GRANTED else ROLLED_BACK
            self.log_of(managed, kind, managed.cid)

        yield from self.send("finished", managed, self.timestamps, done)

    def tell(self, managed: Managed) -> Process:
        """(6)."""

        def done() -> None:
            managed.reported = True
            managed.outcome.succeed((managed.cid, managed.vote))

        yield from self.send("outcome", managed, managed.client, done)

    def fetch_timestamp(self, managed: Managed) -> Process:
        """(2)."""

        def give() -> None:
            managed.cid = managed.cid or self.service.next()

        kinds = "timestamp-request", "timestamp"
        yield from self.call(kinds, managed.tm, self.timestamps, give)

    def prepare(self, managed: Managed, share: Share) -> Process:
        """(3): all records of an RM, or none."""
        count = len(share.updates)
        return (
            yield from self.call(
                ("prepare", "vote"),
                managed.tm,
                share.thread,
                lambda: self.check(managed, share),
                count,
                count * self.p.work.check_ps,
                out=lambda: GRANTED,
            )
        )

    def install(self, managed: Managed, share: Share) -> Process:
        """(4)."""
        count = len(share.updates) + len(share.inserts)
        work_ps = count * self.p.work.install_ps
        put = partial(self.put, managed, share)
        kinds = "install", "installed"
        yield from self.call(kinds, managed.tm, share.thread, put, count, work_ps)

    def roll_back(self, managed: Managed, share: Share) -> Process:
        """Another RM voted no; nobody waits for this."""
        count = len(share.updates)

        def done() -> None:
            managed.rollbacks -= 1
            if share.locked:
                share.locked = False
                for key in share.updates:
                    share.rm.record(key).owner = None

        work_ps = count * self.p.work.check_ps
        yield from self.send("rollback", managed, share.thread, done, count, work_ps)

    def log_of(self, managed: Managed, kind: int, a: int, b: int = 0) -> None:
        """A row about the transaction."""
        self.cluster.log(kind, managed.client.number, managed.number, a, b)

    # The RM's side.

    def check(self, managed: Managed, share: Share) -> int:
        """The RM's vote; it locks where it grants."""
        records = [share.rm.record(key) for key in share.updates]
        for record in records:
            if record.owner is not None:
                return LOCKED
            if record.versions[0] < 0:
                return SNAPSHOT  # lost
            if record.versions[0] > managed.rid:
                return CONFLICT
        for record in records:
            record.owner = managed.client.number
            share.locked = True
        return GRANTED

    def put(self, managed: Managed, share: Share) -> None:
        """Once."""
        if share.installed:
            return
        share.locked, share.installed = False, True
        for key in share.updates:
            record = share.rm.record(key)
            if record.versions[0] < 0:  # lost: what changed does not make it whole
                record.owner = None
            else:
                record.install(managed.cid, self.p.versions)
        for key in share.updates + share.inserts:
            self.log_of(managed, INSTALL, key, managed.cid)
