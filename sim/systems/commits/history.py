"""The trace of a run, with the reads and writes of each transaction; checks snapshot isolation.

A row is (time_ps, kind, client, transaction, a, b). Timestamps are whole numbers from 1; records
hold version 0 at the start. A transaction here is one attempt: a retry is another one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Row: TypeAlias = tuple[int, int, int, int, int, int]

KINDS = (
    "begin",  # a: the snapshot, RID
    "read",  # a: record, b: the version seen, -1 for none that is old enough
    "write",  # a: record, b: CID: decided, is on its way to be installed
    "install",  # a: record, b: CID: stands in the storage server
    "commit",  # a: CID: the timestamp service counts it as done
    "rolled-back",  # a: CID: the timestamp service counts it as done, nothing was installed
    "outcome",  # a: CID: the client knows that it committed
    "abort",  # a: index into CAUSES: the client knows that it did not
    "died",
    "fenced",  # the client learns that it is shut out
    "skipped",  # a: how many timestamps the timestamp server set in the owners' stead
    "broken",  # a: record, b: the former owner of its lock
    "message",  # client: sender, transaction: receiver (clients first, then nodes), a: type
    "stopped",  # client: the place of a node (clients first)
    "returned",  # likewise
    "undone",  # a: record, b: CID: a fenced client's version, which it did not commit
)
BEGIN, READ, WRITE, INSTALL, COMMIT, ROLLED_BACK, OUTCOME, ABORT = range(8)
DIED, FENCED, SKIPPED, BROKEN, MESSAGE, STOPPED, RETURNED, UNDONE = range(8, 16)

CAUSES = (
    "snapshot",  # no version is left that is old enough
    "conflict",  # another transaction has written since the snapshot
    "locked",  # another transaction holds the record
    "lease",  # its own lease ran out before it could install
    "timestamps",  # its timestamps are used up
    "stopped",  # its manager stopped before it was decided
)
SNAPSHOT, CONFLICT, LOCKED, LEASE, TIMESTAMPS, STOPPED_BY_FAULT = range(6)


@dataclass
class Attempt:
    """One transaction, as the trace tells it. Positions are indices of rows."""

    client: int
    number: int
    rid: int = -1
    cid: int = -1
    begun: int = -1
    known: int = -1
    """Where the client learned that it committed, or -1."""
    aborted: bool = False
    reads: list[tuple[int, int]] = field(default_factory=list)
    writes: dict[int, int] = field(default_factory=dict)
    """By record: where it was decided."""
    installs: dict[int, int] = field(default_factory=dict)
    """By record: where it was installed."""


def snapshot_isolation_violations(rows: Iterable[Row]) -> list[str]:
    """What in a trace breaks snapshot isolation, a line each; an empty list if nothing does.

    A transaction counts as committed once a snapshot that was handed out, or the timestamp service,
    covers its CID. Checked:

    - all or nothing: what is committed is installed in full before, and nothing afterwards;
    - an aborted transaction installs nothing;
    - reads see the newest version whose CID is at most RID (or learn that it was dropped);
    - snapshots are stable: none covers a CID that is still to be installed;
    - first committer wins: of two transactions that write one record, the later one's snapshot
      covers the earlier one's CID; so no update is lost;
    - versions of a record are installed in rising order, each CID belongs to one transaction, and
      its CID is above its RID.
    """
    return list(_violations(list(rows)))


def attempts_of(rows: Iterable[Row]) -> dict[tuple[int, int], Attempt]:
    """By (client, transaction): what the trace tells of it."""
    attempts: dict[tuple[int, int], Attempt] = {}
    for index, (_, kind, client, number, a, b) in enumerate(rows):
        if kind >= DIED:
            continue
        attempt = attempts.setdefault((client, number), Attempt(client, number))
        if kind == BEGIN:
            attempt.rid, attempt.begun = a, index
        elif kind == READ:
            attempt.reads.append((a, b))
        elif kind == WRITE:
            attempt.writes[a], attempt.cid = index, b
        elif kind == INSTALL:
            attempt.installs[a] = index
        elif kind == OUTCOME:
            attempt.cid, attempt.known = a, index
        elif kind == ABORT:
            attempt.aborted = True
    return attempts


def _violations(rows: list[Row]) -> Iterator[str]:
    attempts = attempts_of(rows)
    owner: dict[int, Attempt] = {}
    for attempt in attempts.values():
        name = f"transaction {attempt.number} of client {attempt.client}"
        if attempt.aborted and (attempt.installs or attempt.writes):
            yield f"{name} aborted, but installed {sorted(attempt.installs)}"
        if attempt.cid < 0:
            if attempt.installs:
                yield f"{name} installed {sorted(attempt.installs)} and never decided to"
            continue
        if attempt.cid <= attempt.rid:
            yield f"{name}: its CID {attempt.cid} is not above its RID {attempt.rid}"
        if attempt.cid in owner:
            yield f"{name}: its CID {attempt.cid} is that of another transaction too"
        owner[attempt.cid] = attempt
        if attempt.known >= 0 and not attempt.writes:
            yield f"{name} committed, and wrote nothing"
        if attempt.installs.keys() - attempt.writes.keys():
            yield f"{name} installed what it never decided to"
    yield from _committed_in_full(rows, owner)
    yield from _versions(rows, owner)
    yield from _reads(attempts.values(), owner)


def _committed_in_full(rows: list[Row], owner: dict[int, Attempt]) -> Iterator[str]:
    """All or nothing: a commit row, and a snapshot, cover only what is installed in full."""
    cids = sorted(owner)
    covered = 0  # of cids: by snapshots so far
    committed: dict[int, int] = {}
    for index, (_, kind, client, number, a, _b) in enumerate(rows):
        if kind == BEGIN:
            while covered < len(cids) and cids[covered] <= a:
                committed.setdefault(cids[covered], index)
                covered += 1
        elif kind == COMMIT:
            committed.setdefault(a, index)
        elif kind == ROLLED_BACK and a in owner and owner[a].writes:
            yield f"transaction {number} of client {client} rolled back after it was decided"
    for cid, index in committed.items():
        attempt = owner.get(cid)
        if attempt is None:
            continue  # its owner never used it, or could not
        late = [k for k in attempt.writes if not 0 <= attempt.installs.get(k, -1) < index]
        if late:
            yield (
                f"transaction {attempt.number} of client {attempt.client} counts as committed "
                f"while records {sorted(late)} are not installed"
            )


def _versions(rows: list[Row], owner: dict[int, Attempt]) -> Iterator[str]:
    """First committer wins, and versions rise."""
    newest: dict[int, int] = defaultdict(int)
    for _, kind, client, number, key, cid in rows:
        if kind != INSTALL:
            continue
        before, attempt = newest[key], owner.get(cid)
        if attempt is None or (attempt.client, attempt.number) != (client, number):
            yield f"record {key} got version {cid}, which no decided transaction wrote"
            continue
        if cid <= before:
            yield f"record {key} got version {cid} after {before}"
        elif attempt.rid < before:
            yield (
                f"transaction {number} of client {client} (RID {attempt.rid}) overwrote version "
                f"{before} of record {key}, which it could not see: a lost update"
            )
        newest[key] = max(before, cid)


def _reads(attempts: Iterable[Attempt], owner: dict[int, Attempt]) -> Iterator[str]:
    """Reads see their snapshot: of the versions up to RID, the newest."""
    versions: dict[int, list[int]] = defaultdict(lambda: [0])
    for cid in sorted(owner):
        for key in owner[cid].installs:
            versions[key].append(cid)
    for attempt in attempts:
        for key, seen in attempt.reads:
            if seen < 0:
                if attempt.writes or attempt.known >= 0:
                    yield f"client {attempt.client} went on without a version of record {key}"
                continue
            expected = versions[key][bisect_right(versions[key], attempt.rid) - 1]
            if seen != expected:
                yield (
                    f"transaction {attempt.number} of client {attempt.client} (RID {attempt.rid}) "
                    f"read version {seen} of record {key}: its snapshot holds {expected}"
                )
