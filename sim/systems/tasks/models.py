"""The models of tasks as the planes use them: the compiled one and SimPy's, with the same calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..._kernel import TaskModel as KernelTaskModel
from ..._kernel import TaskSetup
from ...kernel.histogram import Histogram
from ...kernel.streams import stream_key
from .history import ARRIVAL_MIX, ARRIVALS, CLIENT_MIX, CLIENT_THINK
from .reference.model import TaskModel as SimpyTaskModel
from .reference.moved_workers import MovedWorkers
from .reference.tasks import Use

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


Counts = Mapping[str, Any]
"""Since time 0. Of nodes (n,): ``lines_read`` and ``lines_written`` of each home, busy times
``controller_ps``, ``waiting`` tasks, ``idle`` workers and how long these ``looked_ps`` for work;
``traffic`` (n, n): bytes that threads of a node read and wrote at a home, of ended tasks.
``link_ps`` (2L,), ``core_ps`` (C,): busy times, those of copying threads last. ``answered``,
``latency_ps`` (K,): of queries, in all. ``classes`` [classes, 5]: tasks made, done, waiting,
running, stolen; ``class_bytes_per_ps``: of a task, exponential averages, below 0 before the first
has ended. ``migrations`` (4,): of threads to another processor, of the core, the cache, the node,
beyond. Numbers: ``asked`` queries, ``parts_waiting`` (tasks that wait for parts that move)."""

LocalUse = tuple[Ints, Floats]
"""CPU time in ps, and bytes, of tasks that were not stolen: of nodes or of parts."""


class EventModel(KernelTaskModel):
    """The compiled model, of one replication; ``traced``: it keeps its trace."""

    def __init__(self, setup: TaskSetup, seed: int, replication: int, traced: bool = False) -> None:
        clients = range(len(setup.client_query))
        names = [name.format(client) for client in clients for name in (CLIENT_MIX, CLIENT_THINK)]
        keys = [stream_key(seed, replication, name) for name in (*names, ARRIVAL_MIX, ARRIVALS)]
        super().__init__(setup, keys, seed, replication, traced)

    def latencies(self) -> tuple[Histogram, ...]:
        """(K,) of queries, in ns."""
        totals_ps: list[float] = self.counts()["latency_ps"].tolist()
        buckets = map(self.latency_buckets, range(len(totals_ps)))
        return tuple(map(Histogram.of_kernel, buckets, totals_ps))


class ReferenceModel(SimpyTaskModel):
    """The model in SimPy, as ``EventModel``."""

    def __init__(self, setup: TaskSetup, seed: int, replication: int, traced: bool = False) -> None:
        super().__init__(setup, seed, replication)
        self._traced = traced

    @property
    def now_ps(self) -> int:
        return self.clock.now

    @property
    def events(self) -> int:
        return self.clock.events

    def take_arrived(self) -> Sequence[int]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def counts(self) -> Counts:
        workers, queries = self.workers, self.queries
        read, written, controller_ps, link_ps, core_ps = self.clock.service_use()
        n = workers.nodes  # an engine in a hub has a place of its own
        moved = workers.os.migrations if isinstance(workers, MovedWorkers) else [0] * 4
        free = [w.node for w in workers.workers if w.in_use and w.task is None]
        return {
            "asked": queries.asked,
            "answered": np.array(queries.answered, dtype=np.int64),
            "latency_ps": np.array([float(sum(all_)) for all_ in queries.latencies_ps]),
            "classes": np.array(
                [[c.made, c.done, c.waiting, c.running, c.stolen] for c in workers.classes]
            ),
            "class_bytes_per_ps": np.array([c.bytes_per_ps for c in workers.classes]),
            "waiting": np.array([len(queue) for queue in workers.queue], dtype=np.int64),
            "parts_waiting": sum(len(part.waiting) for part in queries.all_parts),
            "idle": np.bincount(np.array(free, dtype=np.int64), minlength=n),
            "looked_ps": np.array(workers.looked_up_to_now(), dtype=np.int64),
            "migrations": np.array(moved),
            "traffic": np.array(workers.traffic),
            "lines_read": read[:n],
            "lines_written": written[:n],
            "controller_ps": controller_ps[:n],
            "link_ps": link_ps,
            "core_ps": core_ps,
        }

    def latencies(self) -> tuple[Histogram, ...]:
        return tuple(map(Histogram.of_values, self.queries.latencies_ps))

    def node_use(self) -> LocalUse:
        return self._local(self.workers.node_use)

    def part_use(self) -> LocalUse:
        return self._local([part.use for part in self.queries.all_parts])

    def _local(self, uses: Sequence[Use]) -> LocalUse:
        uses = [replace(use) for use in uses]
        for use in uses:
            use.until(self.now_ps)
        cpu_ps = np.array([use.cpu_ps for use in uses], dtype=np.int64)
        return cpu_ps, np.array([use.bytes for use in uses])

    def parts(self, table: int) -> Sequence[int]:
        return [part.number for part in self.queries.parts[table]]

    def trace(self) -> Ints:
        rows = self.clock.trace if self._traced else []
        return np.array(rows, dtype=np.int64).reshape(-1, 6)


Model: TypeAlias = EventModel | ReferenceModel
