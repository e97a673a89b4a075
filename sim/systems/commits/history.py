"""The trace of a run, with the reads and writes of each transaction; checks snapshot isolation.

A row is (time_ps, kind, client, transaction, a, b). Timestamps are whole numbers from 1; records
hold version 0 at the start. A transaction here is one attempt: a retry is another one.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ..._kernel import HistoryChecker
from ...kernel.arrays import Ints

Row: TypeAlias = tuple[int, int, int, int, int, int]

KINDS = (
    "begin",  # a: the snapshot, RID
    "read",  # a: record, b: the version seen, -1 for none that is old enough
    "write",  # a: record, b: CID: decided, is on its way to be installed
    "install",  # a: record, b: CID: stands in the storage server; once by each that has a copy
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
    "failed-over",  # client: the place of a node: it is out, its replicas answer
    "rejoined",  # client: the place of a node that was out: it has its records again
)
BEGIN, READ, WRITE, INSTALL, COMMIT, ROLLED_BACK, OUTCOME, ABORT = range(8)
DIED, FENCED, SKIPPED, BROKEN, MESSAGE, STOPPED, RETURNED, UNDONE, FAILED_OVER = range(8, 17)
REJOINED = 17

CAUSES = (
    "snapshot",  # no version is left that is old enough
    "conflict",  # another transaction has written since the snapshot
    "locked",  # another transaction holds the record
    "lease",  # its own lease ran out before it could install
    "timestamps",  # its timestamps are used up
    "stopped",  # its manager stopped before it was decided
)
SNAPSHOT, CONFLICT, LOCKED, LEASE, TIMESTAMPS, STOPPED_BY_FAULT = range(6)

VERSIONS_KNOWN = 64  # of a record: reads of older ones are not checked


def snapshot_isolation_violations(rows: Sequence[Row] | Ints) -> list[str]:
    """What in a trace breaks snapshot isolation, a line each, the first 20; none if nothing does.

    See ``kernel/history_checker.hpp`` for what is checked.
    """
    history = np.array(rows, dtype=np.int64).reshape(-1, 6)
    clients = int(history[:, 2].max(initial=0)) + 1
    checker = HistoryChecker(clients, records=2**62, versions=VERSIONS_KNOWN)
    checker.add(history)
    return checker.findings
