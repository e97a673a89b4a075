"""The result of a run of a commit protocol, the same for both planes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}


@dataclass(frozen=True)
class Latencies:
    """From a transaction's first begin to its client's knowing that it committed, in ps.

    Retries and backoffs between are within. Quantiles are None where nothing committed; those of
    the kernel are right within 0.39%.
    """

    count: int
    total: int
    """Their sum: exact."""
    p50: float | None
    p99: float | None
    p999: float | None

    @property
    def mean(self) -> float | None:
        """None where nothing committed."""
        return self.total / self.count if self.count else None

    @classmethod
    def of(cls, values: Sequence[int]) -> Latencies:
        """Of all values: the quantile q is the value of rank ceil(q × count)."""
        if not values:
            return cls(0, 0, None, None, None)
        ordered = sorted(values)
        ranks = {name: math.ceil(q * len(ordered)) - 1 for name, q in QUANTILES.items()}
        return cls(
            len(ordered),
            sum(ordered),
            **{name: float(ordered[rank]) for name, rank in ranks.items()},
        )


@dataclass(frozen=True)
class CommitResult:
    """Counts and times from 0 to ``time_ps``.

    ``given_up``: transactions that aborted once too often. ``aborts``: attempts, by cause (see
    ``history.CAUSES``). ``messages``: handed to a thread for sending, by type. ``…_busy_ps``: time
    that a server was busy: each machine's card by direction, each node's threads (summed), all
    clients' threads together.
    """

    time_ps: int
    commits: int
    given_up: int
    aborts: Mapping[str, int]
    messages: Mapping[str, int]
    outgoing_busy_ps: tuple[int, ...]
    incoming_busy_ps: tuple[int, ...]
    node_busy_ps: tuple[int, ...]
    client_busy_ps: int
    latency_ps: Latencies

    @property
    def commits_per_s(self) -> float:
        """Throughput."""
        return self.commits / (self.time_ps * 1e-12)

    @property
    def abort_rate(self) -> float:
        """Aborted attempts over all that ended; 0 where none ended."""
        aborted = sum(self.aborts.values())
        return aborted / max(1, aborted + self.commits)
