"""RSI: snapshot isolation with one-sided verbs; clients are their own TMs (Binnig et al. 2016).

    READ  the highest committed timestamp: the snapshot RID (or keep a copy of an earlier one)
    READ  a block per record: its newest versions; the one that the snapshot sees is v
    CAS   a block's first word, per record of the write set: (unlocked, v) → (locked, v);
          validates and locks at once
    WRITE a block per record written or created: new version in front, unlocked; wait for them
    WRITE the timestamp's bit, unsignaled: committed

Where a CAS fails: unlock what was locked, and abort. Who aborts sets the bit too: else the leading
run would wait for it. Yet clients that abort use timestamps up faster than those that commit: who
fell behind once stays there. Clients ``in_step`` set an abort's bit only where the run may stand at
it, and catch up with what they have seen of others, with their next bit.

With ``replicas`` each record is locked, written and unlocked at two servers, and read at its own.

Requests of one step are posted together, with one ``doorbell``: the card has all of them or, if the
client dies before, none. Without, each is on its way before the next one is posted.

Timestamps are a bit vector. Client i of n owns 1 + i, 1 + i + n, …, in a vector that is used again
once the leading run has passed (each lap turns the meaning of a bit round, so nothing is cleared).
The highest committed timestamp is the end of the leading run of set bits. Clients READ the vector,
or one word that the timestamp server keeps up to date: the same here, but for what that costs.

Selective signaling: on the way to the timestamp server, the send_queue-th unsignaled request since
the last completion is signaled and waited for; READs and CAS are always signaled.

Two remedies, which RSI as published lacks:

- lease: a locked word holds its owner and the time of locking. Who meets a lock older than the
  lease complains; the timestamp server has every storage server refuse the owner (fences it), sets
  the owner's timestamps, and the lock is broken. An owner installs within half its lease, or not
  at all; so a fenced client's WRITEs have landed, all of them, or never will (if messages take
  less than half a lease).
  Where servers stop or paths fail, messages may take any time, and where clocks are off nobody
  knows when half a lease is over. Then fencing undoes what the owner has installed of a transaction
  whose bit is not set (``undoes``): each storage server drops the owner's newest version as it
  refuses the owner. A client knows that it committed once its bit is
  acknowledged; so each bit is signaled.
- skip: a client CASes a claim for its timestamp, beside the locks. A client that sees the same
  snapshot for skip_after_ps complains; the timestamp server sets all unclaimed timestamps below the
  highest used. Whose claim fails takes a later timestamp. Where the run stands at a claimed one for
  a lease, its owner is fenced.

What a client of RSI keeps, and the verbs that it posts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import simpy

from ....machine.reference.message_path import Process
from ..history import (
    BROKEN,
    COMMIT,
    CONFLICT,
    FENCED,
    INSTALL,
    LEASE,
    LOCKED,
    ROLLED_BACK,
    SKIPPED,
    SNAPSHOT,
    TIMESTAMPS,
    UNDONE,
    WRITE,
)
from ..messages import ANSWERS
from ..parameters import CommitParameters
from .commits import CommitModel
from .places import GONE, GRANTED, Client, Node, compare_and_lock, free
from .timestamps import TimestampVector


class OneSidedModel(CommitModel):
    """Clients that commit by RSI, and servers whose threads are idle but for the remedies."""

    def __init__(self, parameters: CommitParameters, seed: int = 0, replication: int = 0) -> None:
        super().__init__(parameters, seed, replication)
        clients = len(self.clients)
        self.vector = TimestampVector(clients, parameters.timestamp_bits)
        self.reach = min(self.vector.lap, parameters.timestamp_reach or self.vector.lap)
        self.own = [OneSidedClient(client) for client in range(clients)]
        self.fencing: dict[int, simpy.Event] = {}
        self.fenced: set[int] = set()
        self.suspect: tuple[int, int] | None = None

    # Verbs.

    def requests(self, client: Client, made: Callable[[], Sequence[Request]]) -> Process:
        """Posts signaled requests; what each returned, once all are complete."""
        batch = made()
        if not self.p.doorbell:
            return (yield from self.complete(client, batch, one_by_one=True))
        yield from self.cluster.post(client, [request.kind for request in batch])
        # To those that answer by now.
        return (yield from self.complete(client, made()))

    def complete(
        self, client: Client, batch: Sequence[Request], *, one_by_one: bool = False
    ) -> Process:
        """What posted requests returned, once all are complete.

        ``one_by_one``: none is posted yet; each is on its way before the client posts the next one.
        """
        posting = [self.cluster.post(client, [request.kind]) for request in batch]
        parts = [self.travel(client, request) for request in batch]
        results = yield from self.cluster.together(parts, posting if one_by_one else None)
        if client.stopped:  # just as the last one came
            yield self.cluster.never
        return results

    def travel(self, client: Client, request: Request, posted: bool = True) -> Process:
        """One request to the memory of a node, and its answer."""
        kinds = request.kind, ANSWERS[request.kind]

        def effect() -> Any:
            refused = client.number in request.node.fenced_clients
            return REFUSED if refused else request.effect()

        node, out = request.node, request.out
        result = yield from self.call(kinds, client, node, effect, posted=posted, out=out)
        if result is REFUSED:
            yield from self.leave(client)
        return result

    def leave(self, client: Client) -> Process:
        """A client learns that it is fenced."""
        self.die(client, FENCED)
        yield self.cluster.never

    def set_bit(self, client: Client, kind: int) -> Process:
        """The timestamp's bit, unsignaled or, now and then, signaled; on to the next timestamp."""
        self.reaches(client, "bit")
        own, number = self.own[client.number], client.transaction
        cids = [own.next_cid]
        own.next_cid += len(self.clients)
        while self.lags(own):
            cids.append(own.next_cid)
            own.next_cid += len(self.clients)
        yield from self.cluster.post(client, ["bit"])
        own.unsignaled += 1
        signaled = own.unsignaled == self.p.send_queue
        travel = self.bit_travels(client, number, cids, kind, signaled)
        if signaled:
            own.unsignaled = 0
            yield from travel
        else:
            self.env.process(travel)
            yield self.env.timeout(0)  # the card has it before the client goes on

    def lags(self, own: OneSidedClient) -> bool:
        """Whether it has seen another one set a timestamp a round or more above its next."""
        seen = min(own.top, own.known + self.reach)
        return self.p.in_step and own.next_cid + len(self.clients) <= seen

    def bit_travels(
        self, client: Client, number: int, cids: list[int], kind: int, signaled: bool
    ) -> Process:
        """The WRITE of a bit, and of those that the client catches up with."""

        def effect() -> bool:
            refused = client.number in self.timestamps.fenced_clients
            for cid in cids:
                if not refused and self.vector.set(cid):
                    row = kind if cid == cids[0] else ROLLED_BACK
                    self.cluster.log(row, client.number, number, cid)
            return refused

        if signaled:
            kinds = "bit", ANSWERS["bit"]
            if (yield from self.call(kinds, client, self.timestamps, effect, posted=True)):
                yield from self.leave(client)
            return
        yield from self.insist(client, self.timestamps, self.posted("bit", client, self.timestamps))
        effect()

    # A transaction.

    def fetch_snapshot(self, client: Client) -> Process:
        """READ; complains where the answer has been the same for too long."""
        self.reaches(client, "snapshot")
        own = self.own[client.number]
        read = Request(
            "snapshot-read", self.timestamps, lambda: (self.vector.highest, self.vector.top)
        )
        ((highest, own.top),) = yield from self.requests(client, lambda: [read])
        own.unsignaled = 0
        if highest != own.known:
            own.known, own.since_ps = highest, self.time_at(client)
        elif self.p.skip_after_ps and self.time_at(client) - own.since_ps >= self.p.skip_after_ps:
            yield from self.complain(client, None)
            own.since_ps = self.time_at(client)
        return highest

    def transact(self, client: Client, reads: list[int], inserts: list[int]) -> Process:
        """Read, lock, install, set the bit."""
        self.reaches(client, "read")
        own, rid = self.own[client.number], client.snapshot
        blocks = yield from self.requests(
            client, lambda: [self.look(client, key, rid) for key in reads]
        )
        seen = [version for version, _ in blocks]
        if not self.log_reads(client, reads, seen):
            return (yield from self.give_up(client, SNAPSHOT))
        updates = reads[: self.p.updates]
        if any(newest > rid for _, newest in blocks[: len(updates)]):
            return (yield from self.give_up(client, CONFLICT))
        yield from self.cluster.compute(client, client.draw.compute_ps())
        while own.next_cid > own.known + self.reach:
            yield from self.cluster.pause(client, self.p.poll_ps)
            yield from self.fetch_snapshot(client)

        self.reaches(client, "lock")
        own.locking_ps = self.time_at(client)
        claims = bool(self.p.skip_after_ps)

        def locks() -> list[Request]:
            found = [
                self.lock(client, key, node, version)
                for key, version in zip(updates, seen, strict=False)
                for node in self.holders(key)
            ]
            return [*found, self.claim(client)] if claims else found

        words = (yield from self.requests(client, locks)) if updates or claims else []
        if claims:
            self.note_claim(client, words.pop())
        cause = max((status for status, *_ in words), default=GRANTED)
        while claims and cause == GRANTED and not own.claimed:
            if own.next_cid > own.known + self.reach:
                cause = TIMESTAMPS
                break
            (word,) = yield from self.requests(client, lambda: [self.claim(client)])
            self.note_claim(client, word)
        if cause == GRANTED:
            self.reaches(client, "write")
            written = updates + inserts
            copies = sum(len(self.holders(key)) for key in written)
            if self.p.doorbell:
                yield from self.cluster.post(client, ["write"] * copies)
            lease_ps = self.p.lease_ps
            if lease_ps is None or self.time_at(client) - own.locking_ps <= lease_ps // 2:
                cid = own.next_cid
                writes = [(key, node) for key in written for node in self.holders(key)]
                for key, _ in writes:
                    self.log(WRITE, client, key, cid)
                batch = [self.write(client, key, node, cid) for key, node in writes]
                yield from self.complete(client, batch, one_by_one=not self.p.doorbell)
                own.claimed = False
                yield from self.set_bit(client, COMMIT)
                return self.end_committed(client, cid)
            cause = LEASE
        yield from self.undo(client, words)
        return (yield from self.give_up(client, cause))

    def give_up(self, client: Client, cause: int) -> Process:
        """An abort, whose timestamp is used up (unless its bit is still one of the lap before).

        In step it is kept where the run cannot stand at it.
        """
        own = self.own[client.number]
        own.claimed = False
        keeps = own.next_cid > own.known + len(self.clients) and not self.lags(own)
        if own.next_cid <= own.known + self.reach and not (self.p.in_step and keeps):
            yield from self.set_bit(client, ROLLED_BACK)
        return self.end_aborted(client, cause)

    def undo(self, client: Client, words: list[Any]) -> Process:
        """Unlocks; has dead owners fenced, and breaks their locks."""
        held = [place for status, _, _, *place in words if status == GRANTED]
        if held:
            yield from self.requests(client, lambda: [self.unlock(client, *at) for at in held])
        if self.p.lease_ps is not None:
            expired = [
                (owner, *place)
                for status, owner, locked_ps, *place in words
                if status == LOCKED and self.time_at(client) - locked_ps > self.p.lease_ps
            ]
            for owner in dict.fromkeys(owner for owner, *_ in expired):
                yield from self.complain(client, owner)
            if expired:
                yield from self.requests(
                    client, lambda: [self.break_lock(client, *lock) for lock in expired]
                )

    def note_claim(self, client: Client, word: tuple[bool, int]) -> None:
        """A claim's answer; where it failed, the next one is for a timestamp above all used."""
        own = self.own[client.number]
        own.unsignaled = 0
        own.claimed, top = word
        if not own.claimed:
            own.next_cid = self.vector.next_of(client.number, top)

    # What verbs do to memory.

    def look(self, client: Client, key: int, rid: int) -> Request:
        """(version that the snapshot sees, newest version)."""
        node = self.holder(key)

        def effect() -> tuple[int, int]:
            record = node.record(key)
            return record.visible(rid), record.versions[0]

        def elsewhere() -> Process:
            return self.travel(client, self.look(client, key, rid), posted=False)

        return Request("read", node, effect, elsewhere)

    def lock(self, client: Client, key: int, node: Node, expected: int) -> Request:
        """(GRANTED or why not, owner, time of locking, record, node)."""
        now_ps = self.own[client.number].locking_ps

        def effect() -> tuple[Any, ...]:
            found = compare_and_lock(node.record(key), client.number, expected, now_ps)
            return *found, key, node

        return Request("cas", node, effect, lambda: (GONE, -1, 0, key, node))

    def claim(self, client: Client) -> Request:
        """(whether it was claimed, the highest timestamp that was claimed or set)."""
        cid = self.own[client.number].next_cid
        return Request("claim", self.timestamps, lambda: (self.vector.claim(cid), self.vector.top))

    def write(self, client: Client, key: int, node: Node, cid: int) -> Request:
        """A block: shifts versions and unlocks, or is new."""
        number = client.transaction

        def effect() -> None:
            if key < self.p.records:
                node.record(key).install(cid, self.p.versions)
            self.cluster.log(INSTALL, client.number, number, key, cid)
            if self.p.undoes:
                last, keys = node.installed.get(client.number, (0, []))
                node.installed[client.number] = cid, ([*keys, key] if last == cid else [key])

        return Request("write", node, effect)

    def unlock(self, client: Client, key: int, node: Node) -> Request:
        """Unless the lock was broken."""
        return Request("unlock", node, lambda: free(node.record(key), client.number))

    def break_lock(self, client: Client, owner: int, key: int, node: Node) -> Request:
        """The lock of a fenced owner, unless it is free by now."""

        def effect() -> None:
            if free(node.record(key), owner):
                self.log(BROKEN, client, key, owner)

        return Request("break", node, effect)

    # The remedies' messages.

    def complain(self, client: Client, owner: int | None) -> Process:
        """To the timestamp server: about a dead client's lock, or about a snapshot that stands."""

        def effect() -> Process:
            if client.number in self.timestamps.fenced_clients:
                return True
            found = self.skip_stalled(client) if owner is None else owner
            if found is not None:
                yield from self.fence(found)
            return False

        kinds = "complaint", "complaint-done"
        if (yield from self.call(kinds, client, self.timestamps, effect)):
            yield from self.leave(client)

    def skip_stalled(self, client: Client) -> int | None:
        """Skips what can be skipped; the owner of a claim that has stood in the way for a lease."""
        skipped = self.vector.skip()
        if skipped:
            self.log(SKIPPED, client, skipped)
        if self.p.lease_ps is None or self.vector.highest == self.vector.top:
            return None
        following = self.vector.highest + 1
        if self.suspect is None or self.suspect[0] != following:
            self.suspect = (following, self.time_at(self.timestamps))
        if self.time_at(self.timestamps) - self.suspect[1] < self.p.lease_ps:
            return None
        return self.vector.owner(following)

    def fence(self, owner: int) -> Process:
        """Every storage server refuses the owner; then its timestamps count as set."""
        if owner in self.fenced:
            return
        if owner in self.fencing:
            yield self.fencing[owner]
            return
        done = self.fencing[owner] = self.env.event()
        self.timestamps.fenced_clients.add(owner)
        yield from self.cluster.together([self.revoke(node, owner) for node in self.storage])
        self.fenced.add(owner)
        row = ROLLED_BACK if self.p.undoes else COMMIT
        for cid in self.vector.retire(owner):
            self.cluster.log(row, owner, -1, cid)
        done.succeed()
        self.look_whether_quiet()

    def revoke(self, node: Node, owner: int) -> Process:
        """One storage server."""
        from_cid = self.vector.first_open(owner, self.p.skip_after_ps is not None)

        def effect() -> None:
            node.fenced_clients.add(owner)
            if self.p.undoes:
                self.undo_installed(node, owner, from_cid)

        yield from self.call(("revoke", "revoked"), self.timestamps, node, effect)

    def undo_installed(self, node: Node, owner: int, from_cid: int) -> None:
        """What the owner has installed at a server and can no longer commit."""
        cid, keys = node.installed.get(owner, (0, []))
        if cid < from_cid:
            return
        for key in keys:
            # A server that rejoined may have it from here.
            for other in self.copies(key) if key < self.p.records else []:
                if (other is node or self.rejoins) and other.record(key).versions[0] == cid:
                    other.record(key).undo(self.p.versions)
            self.cluster.log(UNDONE, owner, -1, key, cid)
        del node.installed[owner]

    def quiet(self) -> bool:
        return len(self.fencing) == len(self.fenced)


REFUSED = object()


@dataclass(frozen=True)
class Request:
    """A signaled verb: what it does at the node's memory, and returns."""

    kind: str
    node: Node
    effect: Callable[[], Any]
    out: Callable[[], Any] | None = None
    """What is done instead where the node is out."""


class OneSidedClient:
    """What a client keeps beside its copy of the snapshot."""

    def __init__(self, client: int) -> None:
        self.next_cid = client + 1
        self.known = 0
        """The highest committed timestamp when it last looked, and when it last changed."""
        self.since_ps = 0
        self.top = 0
        """The highest timestamp that was set when it last looked."""
        self.unsignaled = 0
        self.locking_ps = 0
        self.claimed = False
