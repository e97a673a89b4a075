"""What a run of a commit protocol counted, the same for both planes."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...kernel.arrays import Ints
from ...kernel.histogram import Histogram


@dataclass(frozen=True, eq=False)
class CommitResult:
    """Counts and times from 0 to ``time_ps``.

    ``given_up``: transactions that aborted once too often. ``aborts``: attempts, by cause (see
    ``history.CAUSES``). ``messages``: handed to a thread for sending, by type. ``busy_ps`` (B,):
    adapters outwards, by machine, then inwards, then the threads of each node, then those of all
    clients together; alike threads added up. ``latencies_ns``: of commits, from a transaction's
    first begin to its client's knowing; retries and backoffs between are within.
    """

    time_ps: int
    given_up: int
    aborts: Mapping[str, int]
    messages: Mapping[str, int]
    busy_ps: Ints
    latencies_ns: Histogram

    @property
    def commits(self) -> int:
        """Transactions whose clients know that they committed."""
        return self.latencies_ns.count

    @property
    def abort_rate(self) -> float:
        """Aborted attempts over all that ended; 0 where none ended."""
        aborted = sum(self.aborts.values())
        return aborted / max(1, aborted + self.commits)

    def since(self, before: "CommitResult") -> "CommitResult":
        """What was counted from ``before`` to now."""
        return CommitResult(
            self.time_ps - before.time_ps,
            self.given_up - before.given_up,
            {cause: count - before.aborts[cause] for cause, count in self.aborts.items()},
            {name: count - before.messages[name] for name, count in self.messages.items()},
            self.busy_ps - before.busy_ps,
            self.latencies_ns.since(before.latencies_ns),
        )
