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

from functools import partial

from ...commits.history import COMMIT, CONFLICT, INSTALL, LOCKED, ROLLED_BACK, SNAPSHOT, WRITE
from ...commits.parameters import CommitParameters
from .cluster import Process
from .commits import Client, CommitModel, Node

GRANTED = -1  # a vote, else the cause of an abort


class TimestampService:
    """Hands out timestamps from 1 on, and knows up to where all of them are done with."""

    def __init__(self) -> None:
        self.last = 0
        self.highest_done = 0
        self.done: set[int] = set()

    def next(self) -> int:
        """A new CID."""
        self.last += 1
        return self.last

    def finish(self, cid: int) -> None:
        """This CID is done with; the leading run grows."""
        self.done.add(cid)
        while self.highest_done + 1 in self.done:
            self.highest_done += 1
            self.done.remove(self.highest_done)


class TwoPhaseModel(CommitModel):
    """Clients, TMs, RMs and a timestamp service that commit by 2PC."""

    def __init__(self, parameters: CommitParameters, seed: int = 0, replication: int = 0) -> None:
        super().__init__(parameters, seed, replication)
        self.service = TimestampService()
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
        if not self.saw(client, reads, seen):
            return self.ended_badly(client, SNAPSHOT)
        yield from self.cluster.pause(client, self.p.compute_ps)
        updates = reads[: self.p.updates]
        turn = (client.number + client.transaction) % len(self.managers)
        manager = self.managers[turn]
        aboard = len(updates) + len(inserts)
        yield from self.message("commit-request", client, manager, aboard)  # (1)
        outcome = self.env.event()
        self.env.process(self.manage(manager, client, updates, inserts, outcome))
        cid, vote = yield outcome
        if vote == GRANTED:
            return self.ended_well(client, cid)
        return self.ended_badly(client, vote)

    def read(self, client: Client, key: int) -> Process:
        """One record, as of the client's snapshot."""
        rm = self.holder(key)
        yield from self.message("read", client, rm, 0, self.p.read_work_ps)
        seen = rm.record(key).visible(client.snapshot)
        yield from self.message("record", rm, client)
        return seen

    def manage(self, tm, client, updates, inserts, outcome) -> Process:  # type: ignore[no-untyped-def]
        """The TM's side: from the commit request to the end of the transaction."""
        number, rid = client.transaction, client.snapshot
        log = partial(self.cluster.log, client=client.number, transaction=number)
        rms = [
            (rm, [k for k in updates if self.holder(k) is rm], [k for k in inserts if self.holder(k) is rm])
            for rm in self.storage
        ]
        if not self.p.every_rm:
            rms = [(rm, locks, news) for rm, locks, news in rms if locks or news]
        cid, *votes = yield from self.cluster.together(
            [self.fetch_timestamp(tm)]  # (2)
            + [self.prepare(tm, rm, client.number, rid, locks) for rm, locks, _ in rms]  # (3)
        )
        vote = max(votes)
        self.env.process(self.tell(tm, client, outcome, (cid, vote)))  # (6)
        if vote == GRANTED:
            for _, locks, news in rms:
                for key in (*locks, *news):
                    log(WRITE, a=key, b=cid)
            yield from self.cluster.together(
                [self.install(tm, rm, cid, locks, news, log) for rm, locks, news in rms]  # (4)
            )
        else:
            for (rm, locks, _), granted in zip(rms, votes, strict=True):
                if granted == GRANTED and locks:
                    self.env.process(self.roll_back(tm, rm, locks))
        yield from self.message("finished", tm, self.timestamps)  # (5)
        self.service.finish(cid)
        log(COMMIT if vote == GRANTED else ROLLED_BACK, a=cid)
