"""The models of tasks as the planes use them: the compiled one and SimPy's, in one form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

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


@dataclass(frozen=True, eq=False)
class ServiceUse:
    """Of the machine since time 0: lines (n,) of each home, busy times in ps of controllers (n,),
    links (2L,) and cores (C,), copying threads' last."""

    lines_read: Floats
    lines_written: Floats
    controller_ps: Floats
    link_ps: Floats
    core_ps: Floats


@dataclass(frozen=True, eq=False)
class LocalUse:
    """CPU time in ps, and bytes, of tasks that were not stolen: of nodes or of parts."""

    cpu_ps: Ints
    bytes: Floats


class Model(Protocol):
    """What the planes ask of a model. Arrays: n nodes, K classes, Q queries."""

    @property
    def now_ps(self) -> int:
        """The time reached."""

    @property
    def events(self) -> int:
        """Events handled since time 0."""

    def run(self, until_ps: int) -> bool:
        """Goes on to that time; False where copies have arrived before."""

    # Commands.
    def copy(self, number: int, source: int, target: int, pages: int, page_ps: float) -> None:
        """A copying thread begins; ``source`` -1: from all nodes in turn."""

    def take_arrived(self) -> Sequence[int]:
        """Numbers of copies that have arrived since this was last asked."""

    def set_parts(self, table: int, rows: Sequence[int], nodes: Sequence[int]) -> None:
        """The table is in these parts, for queries that are asked from now on."""

    def block(self, table: int, part: int) -> None:
        """The part begins to move: its tasks that have not begun wait."""

    def place(self, table: int, part: int, node: int) -> None:
        """The part has arrived."""

    def allow(self, classes: Sequence[bool], within_node: bool = True) -> None:
        """Tasks of these classes may be stolen by workers of other nodes from now on; those dealt
        to a worker be taken by others of its node."""

    def use(self, workers: Sequence[bool]) -> None:
        """These workers take tasks from now on."""

    def set_mix(self, cumulative: Sequence[float]) -> None:
        """Shares of queries drawn from now on, added up."""

    def set_paths(self, paths: Sequence[int]) -> None:
        """Of scans that begin from now on, by stage and home."""

    # Counts, since time 0.
    def class_counts(self) -> Ints:
        """(K, 5) tasks made, done, waiting, running, stolen."""

    def class_bytes_per_ps(self) -> Floats:
        """(K,) of a task, exponential averages; below 0 before the first has ended."""

    def answered(self) -> Ints:
        """(Q,) queries."""

    def latency_totals_ps(self) -> Floats:
        """(Q,) sums."""

    def latencies(self, query: int) -> Histogram:
        """Of a query, in ns."""

    def node_use(self) -> LocalUse:
        """(n,) see LocalUse."""

    def part_use(self) -> LocalUse:
        """Of all parts that ever were, by number."""

    def parts(self, table: int) -> Sequence[int]:
        """Numbers of the table's parts now."""

    def traffic(self) -> Floats:
        """(n, n) bytes that threads of a node read and wrote at a home, of tasks that ended."""

    def looked_ps(self) -> Ints:
        """(n,) time of idle workers that looked for work."""

    def migrations(self) -> Sequence[int]:
        """(4,) of threads to a processor of the same core, cache, node, or beyond."""

    def waiting(self) -> Ints:
        """(n,) tasks in queues."""

    def idle(self) -> Ints:
        """(n,) workers in use that have no task."""

    @property
    def parts_waiting(self) -> int:
        """Tasks that wait for parts that move."""

    @property
    def asked(self) -> int:
        """Queries."""

    def service_use(self) -> ServiceUse:
        """See ServiceUse."""

    def trace(self) -> Ints:
        """(rows, 6): see ``history``; empty where none is kept."""


class EventModel:
    """The compiled model; ``traced``: it keeps its trace."""

    def __init__(self, setup: TaskSetup, seed: int, replication: int, traced: bool = False) -> None:
        clients = range(len(setup.client_query))
        names = [name.format(client) for client in clients for name in (CLIENT_MIX, CLIENT_THINK)]
        keys = [stream_key(seed, replication, name) for name in (*names, ARRIVAL_MIX, ARRIVALS)]
        model = KernelTaskModel(setup, keys, seed, replication, traced)
        self._model = model
        self.run, self.copy, self.take_arrived = model.run, model.copy, model.take_arrived
        self.set_parts, self.block, self.place = model.set_parts, model.block, model.place
        self.allow, self.use, self.set_mix = model.allow, model.use, model.set_mix
        self.set_paths = model.set_paths
        self.class_counts, self.class_bytes_per_ps = model.class_counts, model.class_bytes_per_ps
        self.answered, self.latency_totals_ps = model.answered, model.latency_totals_ps
        self.parts, self.traffic, self.looked_ps = model.parts, model.traffic, model.looked_ps
        self.waiting, self.idle, self.trace = model.waiting, model.idle, model.trace
        self.migrations = model.migrations

    @property
    def now_ps(self) -> int:
        """See Model."""
        return self._model.now_ps

    @property
    def events(self) -> int:
        """See Model."""
        return self._model.events

    @property
    def parts_waiting(self) -> int:
        """See Model."""
        return self._model.parts_waiting

    @property
    def asked(self) -> int:
        """See Model."""
        return self._model.asked

    def latencies(self, query: int) -> Histogram:
        """See Model."""
        counts = self._model.latency_buckets(query)
        return Histogram.of_kernel(counts or [0], float(self.latency_totals_ps()[query]))

    def node_use(self) -> LocalUse:
        """See Model."""
        return LocalUse(*self._model.node_use())

    def part_use(self) -> LocalUse:
        """See Model."""
        return LocalUse(*self._model.part_use())

    def service_use(self) -> ServiceUse:
        """See Model."""
        read, written, controller_ps, link_ps, core_ps = self._model.service_use()
        return ServiceUse(read, written, controller_ps, link_ps, core_ps.astype(np.float64))


class ReferenceModel:
    """The model in plain SimPy."""

    def __init__(self, setup: TaskSetup, seed: int, replication: int, traced: bool = False) -> None:
        model = SimpyTaskModel(setup, seed, replication)
        self._model, self._traced = model, traced
        self.run, self.copy = model.run, model.copy
        self.set_parts, self.block, self.place = model.set_parts, model.block, model.place
        self.allow, self.use, self.set_mix = model.allow, model.use, model.set_mix
        self.set_paths = model.set_paths

    @property
    def now_ps(self) -> int:
        """See Model."""
        return self._model.clock.now

    @property
    def events(self) -> int:
        """See Model."""
        return self._model.clock.events

    def take_arrived(self) -> Sequence[int]:
        """See Model."""
        arrived, self._model.arrived = self._model.arrived, []
        return arrived

    def class_counts(self) -> Ints:
        """See Model."""
        classes = self._model.workers.classes
        return np.array([[c.made, c.done, c.waiting, c.running, c.stolen] for c in classes])

    def class_bytes_per_ps(self) -> Floats:
        """See Model."""
        return np.array([counts.bytes_per_ps for counts in self._model.workers.classes])

    def answered(self) -> Ints:
        """See Model."""
        return np.array(self._model.queries.answered, dtype=np.int64)

    def latency_totals_ps(self) -> Floats:
        """See Model."""
        return np.array([float(sum(all_)) for all_ in self._model.queries.latencies_ps])

    def latencies(self, query: int) -> Histogram:
        """See Model."""
        return Histogram.of_values(self._model.queries.latencies_ps[query])

    def node_use(self) -> LocalUse:
        """See Model."""
        return self._local(self._model.workers.node_use)

    def part_use(self) -> LocalUse:
        """See Model."""
        return self._local([part.use for part in self._model.queries.all_parts])

    def _local(self, uses: Sequence[Use]) -> LocalUse:
        uses = [replace(use) for use in uses]
        for use in uses:
            use.until(self.now_ps)
        cpu_ps = np.array([use.cpu_ps for use in uses], dtype=np.int64)
        return LocalUse(cpu_ps, np.array([use.bytes for use in uses]))

    def parts(self, table: int) -> Sequence[int]:
        """See Model."""
        return [part.number for part in self._model.queries.parts[table]]

    def traffic(self) -> Floats:
        """See Model."""
        return np.array(self._model.workers.traffic)

    def looked_ps(self) -> Ints:
        """See Model."""
        return np.array(self._model.workers.looked_up_to_now(), dtype=np.int64)

    def migrations(self) -> Sequence[int]:
        """See Model."""
        workers = self._model.workers
        return workers.os.migrations if isinstance(workers, MovedWorkers) else [0] * 4

    def waiting(self) -> Ints:
        """See Model."""
        return np.array([len(queue) for queue in self._model.workers.queue], dtype=np.int64)

    def idle(self) -> Ints:
        """See Model."""
        free = [w.node for w in self._model.workers.workers if w.in_use and w.task is None]
        return np.bincount(np.array(free, dtype=np.int64), minlength=self._model.workers.nodes)

    @property
    def parts_waiting(self) -> int:
        """See Model."""
        return sum(len(part.waiting) for part in self._model.queries.all_parts)

    @property
    def asked(self) -> int:
        """See Model."""
        return self._model.queries.asked

    def service_use(self) -> ServiceUse:
        """See Model."""
        read, written, controller_ps, link_ps, core_ps = self._model.clock.service_use()
        n = self._model.workers.nodes  # an engine in a hub has a place of its own
        return ServiceUse(read[:n], written[:n], controller_ps[:n], link_ps, core_ps)

    def trace(self) -> Ints:
        """See Model."""
        rows = self._model.clock.trace if self._traced else []
        return np.array(rows, dtype=np.int64).reshape(-1, 6)
