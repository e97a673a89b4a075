"""The states of tasks for which rates are looked for, and the rates that are found."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...kernel.arrays import Flags, Floats, Ints
from ...kernel.sums import group_sums
from ...machine.costs import LINE_BYTES
from .batches import Batch
from .layout import Copy, PartState
from .service_times import Served


@dataclass(frozen=True)
class State:
    """What rates depend on. ``parts`` of tables, by name. ``clients`` (K,) of each query;
    ``mix_clients`` who are not stuck, and ``shares`` (K,) of the mix. ``stealable``: classes.
    ``workers`` (n,): how many of each node's may run. ``copies``: under way. ``paths``: of scans,
    by stage of all queries and home (all nodes first); none: all by CPU. ``spread`` (n,): on which
    nodes workers of any run; None: on their own.
    """

    parts: tuple[tuple[str, tuple[PartState, ...]], ...]
    clients: tuple[float, ...]
    mix_clients: float
    shares: tuple[float, ...]
    stealable: frozenset[str]
    workers: tuple[float, ...]
    copies: tuple[Copy, ...] = ()
    paths: tuple[int, ...] = ()
    spread: tuple[float, ...] | None = None


@dataclass(frozen=True)
class LocalUse:
    """What tasks use that were not stolen: ``node_cpu`` and ``node_Bps`` (n,) of nodes, threads and
    memory throughput; the same two of table ``parts``.
    """

    node_cpu: Floats
    node_Bps: Floats
    parts: dict[tuple[str, int], tuple[float, float]]


@dataclass(frozen=True)
class Rates:
    """What goes on in a state.

    ``queries`` (K,): per second; ``response_s`` (K,): of one. Tasks that run, by kind: ``batch``
    (F,) they belong to, ``node`` (F,) of their worker, ``running`` (F,) how many, ``task_s`` (F,)
    how long one takes, ``lines_per_s`` (F,) that all of them read and write. ``waiting`` (n,):
    tasks in queues. ``pages_per_s`` of each copy. ``blocked``: queries that wait for a moved part.
    ``mean_free``: whether tasks are as many as workers are free on average, where few clients find
    nearly all of them free, or few. ``queueing``: where the search of queues has ended.
    """

    queries: Floats
    response_s: Floats
    batches: tuple[Batch, ...]
    batch: Ints
    node: Ints
    running: Floats
    task_s: Floats
    lines_per_s: Floats
    waiting: Floats
    pages_per_s: Floats
    blocked: frozenset[int]
    served: Served
    queueing: list[list[float]]
    moved: bool = False
    mean_free: bool = False

    @property
    def stolen(self) -> Flags:
        """(F,) whether kinds run on another node than they waited at; threads that are moved are of
        no node."""
        home = np.array([batch.node for batch in self.batches], dtype=np.int64)
        return np.asarray((home[self.batch] != self.node) & (not self.moved))

    @property
    def local(self) -> Flags:
        """(F,) whether they were not stolen; where threads are moved, run where their part lies."""
        if not self.moved:
            return ~self.stolen
        lies = np.array([-1 if b.home is None else b.home for b in self.batches], dtype=np.int64)
        return np.asarray(lies[self.batch] == self.node)

    def by_class(self, amounts: Floats) -> dict[str, float]:
        """Sums of ``amounts`` (F,) by class of tasks."""
        of_batch = [batch.stage.task_class for batch in self.batches]
        place = {name: k for k, name in enumerate(dict.fromkeys(of_batch))}
        of = np.array([place[name] for name in of_batch], dtype=np.int64)[self.batch]
        return dict(zip(place, group_sums(of, amounts, len(place)).tolist(), strict=True))

    @cached_property
    def local_use(self) -> LocalUse:
        """Of the tasks that are ``local``."""
        local, n = self.local, len(self.waiting)
        running, Bps = self.running * local, self.lines_per_s * LINE_BYTES * local
        parts: dict[tuple[str, int], tuple[float, float]] = {}
        for f in np.flatnonzero(running > 0).tolist():
            key = self.batches[self.batch[f]].part
            if key is not None:
                cpu, drawn = parts.get(key, (0.0, 0.0))
                parts[key] = cpu + float(running[f]), drawn + float(Bps[f])
        return LocalUse(group_sums(self.node, running, n), group_sums(self.node, Bps, n), parts)
