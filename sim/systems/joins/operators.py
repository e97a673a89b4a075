"""Operators step by step: what the workers of each node do, and which rows they send.

A pass over tuples (to scan and partition, to partition in memory, to build and probe) takes a
thread the time of ``copy_bandwidth`` for each byte, as the source's formulas have it (c_mem), and
memory the lines that it reads and writes. So does a row that a thread receives and puts in place.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ....topologies import Machine
from ....workloads import Workload
from ...kernel.arrays import Floats, Ints
from .spec import (
    LINE_BYTES,
    ONE_SIDED,
    FanOut,
    JoinSystem,
    Operator,
    fan_out,
    last_cache_bytes,
    own_cache_bytes,
)
from .tables import Table, Tables, drawn_rows, merged, of_homes, partition_shares, random, tables_of

FILTER_BLOCK_BYTES = 64.0  # of a Bloom filter: what is sent of it is counted in lines
# Of an aggregation: the part of a core's own cache that its table of groups fills.
TABLE_PART = 0.5


@dataclass(frozen=True, eq=False)
class Pieces:
    """Of a step: home (K,), units of work (K,) in lines, rows (K,) of a checked step. ``counts``
    (K,): how many alike; None: one of each.
    """

    home: Ints
    lines: Floats
    rows: Ints | None = None
    counts: Ints | None = None

    def each(self) -> "Pieces":
        """One by one, alike ones of all homes in turn: a central queue goes round the nodes."""
        if self.counts is None:
            return self
        which = np.repeat(np.arange(len(self.counts)), self.counts)
        rank = np.arange(len(which)) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        which = which[np.argsort(rank, kind="stable")]
        return Pieces(self.home[which], self.lines[which])


@dataclass(frozen=True, eq=False)
class StepPlan:
    """A step of an operator; see ``ExchangeStep`` of the kernel for what the fields mean.

    ``row_bytes``: of a row that is sent. ``line_s``: of a thread for a line of its pieces; None: by
    the system's ``copy_bandwidth``.
    """

    name: str
    pieces: Pieces
    read: float = 1.0
    written: float = 0.0
    rows: Ints | None = None
    row_bytes: float = 0.0
    gated: bool = False
    checked: bool = False
    input: bool = False
    line_s: float | None = None
    shared: bool = False
    """Any node may take its pieces, where the system has a central queue."""


@dataclass(frozen=True, eq=False)
class OperatorPlan:
    """An operator on a cluster; ``fan``: its partitions."""

    name: Operator
    one_sided: bool
    fan: FanOut
    steps: tuple[StepPlan, ...]


class Planner:
    """Makes plans from a scenario; ``replication``: of the draws of tuples."""

    def __init__(
        self, system: JoinSystem, machine: Machine, workload: Workload, seed: int, replication: int
    ) -> None:
        self.system, self.machine = system, machine
        self.tables: Tables = tables_of(system, workload)
        self.positions = system.positions(machine)
        self.nodes, self.seed, self.replication = len(self.positions), seed, replication
        self.workers = [system.workers_of(machine, position) for position in self.positions]

    def plan(self, operator: Operator) -> OperatorPlan:
        """Of an operator."""
        fan = fan_out(self.system, self.machine, operator, self.tables.partitioned_bytes)
        join = self.tables.groups is None
        steps = list((self._join if join else self._aggregation)(operator, fan))
        return OperatorPlan(operator, operator in ONE_SIDED, fan, tuple(steps))

    def _join(self, operator: Operator, fan: FanOut) -> Iterator[StepPlan]:
        passing = 1.0
        if operator == "ghj-bloom":
            sel = self.tables.selectivity
            passing = sel + (1.0 - sel) * self.system.filter_error
        inner, outer = self.tables.all
        rows = {table: self._drawn(table, fan.final, passing) for table in (inner, outer)}

        def scan(table: Table, gated: bool = False) -> StepPlan:
            return StepPlan(
                name=f"scan {table.name}",
                pieces=self._chunks(self._bytes(table), self._sent_at_once(operator, fan)),
                written=passing / self.nodes if operator in ONE_SIDED else 0.0,
                rows=merged(rows[table], fan.network),
                row_bytes=table.row_bytes,
                gated=gated,
                input=True,
                shared=True,
            )

        if operator == "ghj-bloom":
            yield StepPlan(f"build filter of {inner.name}", self._chunks(self._bytes(inner)))
            yield self._filter(inner, 1.0)
            yield scan(outer, gated=True)
            yield self._filter(outer, passing)
            yield scan(inner, gated=True)
        else:
            yield scan(inner)
            yield scan(outer)
        widths = [inner.row_bytes, outer.row_bytes]
        yield from self._in_memory([rows[inner], rows[outer]], widths, fan, "build and probe")

    def _filter(self, table: Table, passing: float) -> StepPlan:
        """Each node sends the filter of its tuples (of that part of them) to all others."""
        bits_a_key = -math.log(self.system.filter_error) / math.log(2.0) ** 2
        tuples = of_homes(table.records, self.nodes) * passing
        blocks = np.ceil(tuples * bits_a_key / 8.0 / FILTER_BLOCK_BYTES).astype(np.int64)
        rows = np.repeat(blocks[:, None], self.nodes, axis=1)
        np.fill_diagonal(rows, 0)
        return StepPlan(
            f"send filter of {table.name}",
            self._chunks(blocks * FILTER_BLOCK_BYTES),
            rows=rows,
            row_bytes=FILTER_BLOCK_BYTES,
        )

    def _aggregation(self, operator: Operator, fan: FanOut) -> Iterator[StepPlan]:
        (table,), groups = self.tables.all, self.tables.groups
        assert groups is not None
        assert table.keys is not None
        workers = np.array(self.workers)
        of_worker = of_homes(table.records, self.nodes) / workers
        sent_row = self.tables.result_bytes
        chunks = self._chunks(self._bytes(table), self._sent_at_once(operator, fan))
        node = self.machine.nodes[self.positions[0]]
        in_background = operator == "rdma-aggregation"
        if in_background:
            room = TABLE_PART * own_cache_bytes(node) / sent_row
            runs = np.array([groups.tuples_for(room, tuples) for tuples in of_worker.tolist()])
            distinct = np.array([groups.distinct(run) for run in runs.tolist()])
            sent = workers * distinct * of_worker / np.maximum(runs, 1.0)
            missing = 0.0
        else:
            found = [groups.distinct(tuples) for tuples in of_worker.tolist()]
            sent = workers * np.array(found)
            cached = own_cache_bytes(node) + last_cache_bytes(node) / max(self.workers)
            missing = 1.0 - min(1.0, cached / max(max(found) * sent_row, 1.0))
        rows = self._drawn_groups(np.rint(sent).astype(np.int64), table, fan.final)
        sends = StepPlan(
            name="aggregate and send" if in_background else "send groups",
            pieces=chunks if in_background else self._chunks(rows.sum(axis=1) * sent_row),
            rows=merged(rows, fan.network),
            row_bytes=sent_row,
            input=True,
            shared=in_background,
        )
        if not in_background:
            misses = missing * LINE_BYTES / table.row_bytes
            yield StepPlan("aggregate", chunks, 1.0 + misses, misses, shared=True)
        yield sends
        yield from self._in_memory([rows], [sent_row], fan, "merge groups")

    def _drawn_groups(self, sent: Ints, table: Table, final: int) -> Ints:
        """Groups are spread by their hash: whether hot or not, each is one row of a table."""
        name = f"groups of {table.name}"
        even = np.full(final, 1.0 / final)
        return drawn_rows(random(self.seed, self.replication, name), sent, even, 1.0)

    def _in_memory(
        self, rows: Sequence[Ints], widths: Sequence[float], fan: FanOut, last: str
    ) -> Iterator[StepPlan]:
        """Passes over what has arrived, until partitions fit in a cache; then these, one by one."""
        count = sum((row.sum(axis=0) for row in rows), np.zeros(fan.final, dtype=np.int64))
        size = sum(
            (row.sum(axis=0) * width for row, width in zip(rows, widths, strict=True)),
            np.zeros(fan.final),
        )
        home = np.arange(fan.final) % fan.network % self.nodes
        here = np.bincount(home, size, self.nodes)
        for k in range(fan.passes):
            yield StepPlan(
                f"partition, pass {k + 1}", self._chunks(here), written=1.0, gated=k == 0
            )
        used = np.flatnonzero(count)
        largest_first = used[np.argsort(-size[used], kind="stable")]
        yield StepPlan(
            last,
            Pieces(home[largest_first], size[largest_first] / LINE_BYTES, count[largest_first]),
            gated=True,
            checked=True,
            shared=True,
        )

    def _bytes(self, table: Table) -> Floats:
        return np.asarray(of_homes(table.records, self.nodes) * table.row_bytes)

    def _drawn(self, table: Table, final: int, passing: float) -> Ints:
        shares = np.full(final, 1.0 / final)
        if table.keys is not None:
            shares = partition_shares(table.keys, final, self.seed)
        stream = random(self.seed, self.replication, f"tuples of {table.name}")
        return drawn_rows(stream, of_homes(table.records, self.nodes), shares, passing)

    def _sent_at_once(self, operator: Operator, fan: FanOut) -> float:
        """Bytes that fill one buffer of each partition: in one piece of work with more, a worker
        would wait for buffers that a real one fills while the others are under way."""
        sent = fan.network * self.system.buffer.value
        return sent if operator in ONE_SIDED else math.inf

    def _chunks(self, size: Floats | Ints, most: float = math.inf) -> Pieces:
        """Of each node's bytes."""
        each, whole = min(self.system.chunk.value, most), np.asarray(size, dtype=np.float64)
        counts = np.ceil(whole / each).astype(np.int64)
        lines = whole / np.maximum(counts, 1) / LINE_BYTES
        return Pieces(np.arange(self.nodes), lines, counts=counts)
