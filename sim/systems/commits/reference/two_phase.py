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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import simpy

from ....machine.reference.message_path import Process
from ..history import COMMIT, CONFLICT, INSTALL, LOCKED, ROLLED_BACK, SNAPSHOT, WRITE
from ..parameters import CommitParameters
from .commits import Client, CommitModel, Node
from .timestamps import TimestampCounter

GRANTED = -1  # a vote, else the cause of an abort


@dataclass(frozen=True)
class Share:
    """What one RM has to do with a transaction: the records that it locks, and its new ones.

    ``thread``: takes the messages.
    """

    rm: Node
    thread: Node
    updates: list[int]
    inserts: list[int]


class TwoPhaseModel(CommitModel):
    """Clients, TMs, RMs and a timestamp service that commit by 2PC."""

    def __init__(self, parameters: CommitParameters, seed: int = 0, replication: int = 0) -> None:
        super().__init__(parameters, seed, replication)
        self.service = TimestampCounter()
        self.managers = [self.nodes[n] for n in parameters.managers]
        self.message = self.cluster.message

    def fetch_snapshot(self, client: Client) -> Process:
        """Asked for, and answered with, a message."""
        yield from self.message("snapshot-request", client, self.timestamps)
        highest = self.service.highest_done
        yield from self.message("snapshot", self.timestamps, client)
        return highest

    def transact(self, client: Client, reads: list[int], inserts: list[int]) -> Process:
        """The client's side."""
        seen = yield from self.cluster.together([self.read(client, key) for key in reads])
        if not self.log_reads(client, reads, seen):
            return self.end_aborted(client, SNAPSHOT)
        yield from self.cluster.compute(client, client.draw.compute_ps())
        updates = reads[: self.p.updates]
        turn = client.number + (0 if self.p.own_managers else client.transaction)
        manager = self.managers[turn % len(self.managers)]
        carried = len(updates) + len(inserts)
        yield from self.message("commit-request", client, manager, carried)  # (1)
        outcome = self.env.event()
        self.env.process(self.manage(manager, client, updates, inserts, outcome))
        cid, vote = yield outcome
        if vote == GRANTED:
            return self.end_committed(client, cid)
        return self.end_aborted(client, vote)

    def read(self, client: Client, key: int) -> Process:
        """One record, as of the client's snapshot."""
        rm = self.holder(key)
        thread = self.thread_of(rm, client.number)
        yield from self.message("read", client, thread, 0, self.p.work.read_ps)
        seen = rm.record(key).visible(client.snapshot)
        yield from self.message("record", thread, client)
        return seen

    def manage(
        self,
        tm: Node,
        client: Client,
        updates: list[int],
        inserts: list[int],
        outcome: simpy.Event,
    ) -> Process:
        """The TM's side: from the commit request to the end of the transaction."""
        number, rid = client.transaction, client.snapshot
        log = partial(self.cluster.log, client=client.number, transaction=number)
        shares = [
            Share(
                rm,
                self.thread_of(rm, client.number),
                [k for k in updates if self.holder(k) is rm],
                [k for k in inserts if self.holder(k) is rm],
            )
            for rm in self.storage
        ]
        if not self.p.every_rm:
            shares = [share for share in shares if share.updates or share.inserts]
        cid, *votes = yield from self.cluster.together(
            [self.fetch_timestamp(tm)]  # (2)
            + [self.prepare(tm, client.number, rid, share) for share in shares]  # (3)
        )
        vote = max(votes)
        self.env.process(self.tell(tm, client, outcome, (cid, vote)))  # (6)
        if vote == GRANTED:
            for share in shares:
                for key in share.updates + share.inserts:
                    log(WRITE, a=key, b=cid)
            yield from self.cluster.together(
                [self.install(tm, cid, share, log) for share in shares]  # (4)
            )
        else:
            for share, granted in zip(shares, votes, strict=True):
                if granted == GRANTED and share.updates:
                    self.env.process(self.roll_back(tm, share))
        kind = COMMIT if vote == GRANTED else ROLLED_BACK
        self.env.process(self.finish(tm, cid, partial(log, kind, a=cid)))

    def finish(self, tm: Node, cid: int, log: Callable[[], None]) -> Process:
        """(5)."""
        yield from self.message("finished", tm, self.timestamps)
        self.service.finish(cid)
        log()

    def fetch_timestamp(self, tm: Node) -> Process:
        """(2)."""
        yield from self.message("timestamp-request", tm, self.timestamps)
        cid = self.service.next()
        yield from self.message("timestamp", self.timestamps, tm)
        return cid

    def prepare(self, tm: Node, client: int, rid: int, share: Share) -> Process:
        """(3): all records of an RM, or none."""
        count = len(share.updates)
        work_ps = count * self.p.work.check_ps
        yield from self.message("prepare", tm, share.thread, count, work_ps)
        vote = self.check(share, client, rid)
        yield from self.message("vote", share.thread, tm)
        return vote

    def check(self, share: Share, client: int, rid: int) -> int:
        """The RM's vote; it locks where it grants."""
        records = [share.rm.record(key) for key in share.updates]
        for record in records:
            if record.owner is not None:
                return LOCKED
            if record.versions[0] > rid:
                return CONFLICT
        for record in records:
            record.owner = client
        return GRANTED

    def install(self, tm: Node, cid: int, share: Share, log: Callable[..., None]) -> Process:
        """(4)."""
        written = share.updates + share.inserts
        work_ps = len(written) * self.p.work.install_ps
        yield from self.message("install", tm, share.thread, len(written), work_ps)
        for key in share.updates:
            share.rm.record(key).install(cid, self.p.versions)
        for key in written:
            log(INSTALL, a=key, b=cid)
        yield from self.message("installed", share.thread, tm)

    def roll_back(self, tm: Node, share: Share) -> Process:
        """Another RM voted no; nobody waits for this."""
        count = len(share.updates)
        work_ps = count * self.p.work.check_ps
        yield from self.message("rollback", tm, share.thread, count, work_ps)
        for key in share.updates:
            share.rm.record(key).owner = None

    def tell(self, tm: Node, client: Client, outcome: simpy.Event, result: object) -> Process:
        """(6)."""
        yield from self.message("outcome", tm, client)
        outcome.succeed(result)
