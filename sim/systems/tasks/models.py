"""The models of tasks as the planes use them: the compiled one and SimPy's, with the same calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

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


class ServiceUse(NamedTuple):
    """Of the machine since time 0: lines (n,) of each home, busy times in ps of controllers (n,),
    links (2L,) and cores (C,), copying threads' last."""

    lines_read: Floats
    lines_written: Floats
    controller_ps: Floats
    link_ps: Floats
    core_ps: Floats


class LocalUse(NamedTuple):
    """CPU time in ps, and bytes, of tasks that were not stolen: of nodes or of parts."""

    cpu_ps: Ints
    bytes: Floats


class EventModel(KernelTaskModel):
    """The compiled model, of one replication; ``traced``: it keeps its trace."""

    def __init__(self, setup: TaskSetup, seed: int, replication: int, traced: bool = False) -> None:
        clients = range(len(setup.client_query))
        names = [name.format(client) for client in clients for name in (CLIENT_MIX, CLIENT_THINK)]
        keys = [stream_key(seed, replication, name) for name in (*names, ARRIVAL_MIX, ARRIVALS)]
        super().__init__(setup, keys, seed, replication, traced)

    def latencies(self, query: int) -> Histogram:
        """Of a query, in ns."""
        counts = self.latency_buckets(query)
        return Histogram.of_kernel(counts or [0], float(self.latency_totals_ps()[query]))

    def node_use(self) -> LocalUse:
        """(n,)"""
        return LocalUse(*super().node_use())

    def part_use(self) -> LocalUse:
        """Of all parts that ever were, by number."""
        return LocalUse(*super().part_use())

    def service_use(self) -> ServiceUse:
        """Since time 0."""
        return ServiceUse(*super().service_use())


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

    def class_counts(self) -> Ints:
        classes = self.workers.classes
        return np.array([[c.made, c.done, c.waiting, c.running, c.stolen] for c in classes])

    def class_bytes_per_ps(self) -> Floats:
        return np.array([counts.bytes_per_ps for counts in self.workers.classes])

    def answered(self) -> Ints:
        return np.array(self.queries.answered, dtype=np.int64)

    def latency_totals_ps(self) -> Floats:
        return np.array([float(sum(all_)) for all_ in self.queries.latencies_ps])

    def latencies(self, query: int) -> Histogram:
        return Histogram.of_values(self.queries.latencies_ps[query])

    def node_use(self) -> LocalUse:
        return self._local(self.workers.node_use)

    def part_use(self) -> LocalUse:
        return self._local([part.use for part in self.queries.all_parts])

    def _local(self, uses: Sequence[Use]) -> LocalUse:
        uses = [replace(use) for use in uses]
        for use in uses:
            use.until(self.now_ps)
        cpu_ps = np.array([use.cpu_ps for use in uses], dtype=np.int64)
        return LocalUse(cpu_ps, np.array([use.bytes for use in uses]))

    def parts(self, table: int) -> Sequence[int]:
        return [part.number for part in self.queries.parts[table]]

    def traffic(self) -> Floats:
        return np.array(self.workers.traffic)

    def looked_ps(self) -> Ints:
        return np.array(self.workers.looked_up_to_now(), dtype=np.int64)

    def migrations(self) -> Sequence[int]:
        workers = self.workers
        return workers.os.migrations if isinstance(workers, MovedWorkers) else [0] * 4

    def waiting(self) -> Ints:
        return np.array([len(queue) for queue in self.workers.queue], dtype=np.int64)

    def idle(self) -> Ints:
        free = [w.node for w in self.workers.workers if w.in_use and w.task is None]
        return np.bincount(np.array(free, dtype=np.int64), minlength=self.workers.nodes)

    @property
    def parts_waiting(self) -> int:
        return sum(len(part.waiting) for part in self.queries.all_parts)

    @property
    def asked(self) -> int:
        return self.queries.asked

    def service_use(self) -> ServiceUse:
        read, written, controller_ps, link_ps, core_ps = self.clock.service_use()
        n = self.workers.nodes  # an engine in a hub has a place of its own
        return ServiceUse(read[:n], written[:n], controller_ps[:n], link_ps, core_ps)

    def trace(self) -> Ints:
        rows = self.clock.trace if self._traced else []
        return np.array(rows, dtype=np.int64).reshape(-1, 6)


Model: TypeAlias = EventModel | ReferenceModel
