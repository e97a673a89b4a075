"""Operators between processes of one host: the steps of the engine, by measured costs of passes.

A node is a process with one thread and a processor of its own. Its time is that of its passes over
tuples and of its messages, each measured alone (``facts.py``); memory is in what a pass takes, as
it was measured with all processors at it. So the model's own memory has no part in it.

- Over shared memory, one-sided operators write into their owner's memory by their own stores: that
  is a partition pass, whoever owns the partition. Over TCP UCX emulates puts: each end works for
  both, which is what an exchange takes.
- Messages cost half of what was measured of one sent and one received at each end.
- The engine partitions what came by messages once more, whatever its size, into as many partitions
  as fit caches; radix joins partition as they send, and never again.
- Of n nodes each has its own Bloom filter, and all are looked at until one has the key. So each has
  an error of 1 - (1 - filter_error)^(1/n).
"""

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from ....inputs.grouping import by_key
from ..._kernel import MessageCost
from ...kernel.arrays import Floats, Ints
from ...kernel.picoseconds import PS_PER_S
from ...machine.message_costs import interpolated
from .facts import ENGINE, GROUP_BYTES, TUPLE_BYTES, JoinFacts, Step
from .operators import FILTER_BLOCK_BYTES, TABLE_PART, Pieces, Planner, StepPlan
from .spec import LINE_BYTES, ONE_SIDED, FanOut, Operator, own_cache_bytes
from .tables import Table, merged, of_homes

Point = tuple[float, float]


class PassCosts:
    """Of a tuple in a pass, and of a message and its counterpart.

    Between measured points in proportion to the logarithm of the size; beyond them as the nearest.
    Messages: in proportion to the size; beyond the last as the last two.
    """

    def __init__(self, facts: JoinFacts) -> None:
        self._passes = by_key((measured.step, measured) for measured in facts.passes)
        self._exchanges = facts.exchanges

    def seconds(self, step: Step, at: float = 1.0, buffer: float | None = None) -> float:
        """Of one tuple or group in that pass."""
        known = self._passes[step]
        if buffer is None:
            return between([(measured.at, measured.time.value) for measured in known], at)
        by_buffer = by_key(
            (one.buffer.value, (one.at, one.time.value)) for one in known if one.buffer is not None
        )
        return between([(size, between(curve, at)) for size, curve in by_buffer.items()], buffer)

    def exchange_s(self, transport: str, operation: str, size: float) -> float:
        """Of one that is sent and one that is received."""
        known = sorted(
            (measured.size.value, measured.time.value)
            for measured in self._exchanges[transport]
            if measured.operation == operation
        )
        return interpolated(known, size, floor=True)


def between(points: Iterable[Point], place: float) -> float:
    """Linear in the logarithm of the place; beyond the ends as there."""
    known = sorted(points)
    if place <= known[0][0]:
        return known[0][1]
    for (x0, y0), (x1, y1) in pairwise(known):
        if place <= x1:
            return y0 + (y1 - y0) * math.log(place / x0) / math.log(x1 / x0)
    return known[-1][1]


FULL = 0.75  # of a table of groups, when it is full
TUPLES_OF_LINE = LINE_BYTES / TUPLE_BYTES


class HostPlanner(Planner):
    """Plans of what the engine does, each step with its own time for a line."""

    @cached_property
    def passes(self) -> PassCosts:
        """Of the machine's facts."""
        facts = self.machine.description.facts_of(ENGINE, JoinFacts)
        assert facts is not None, "the scenario is checked"
        return PassCosts(facts)

    def messages(self, operator: Operator, parts: int) -> list[MessageCost]:
        """By how many of so many parts of the buffer are full."""
        transport, found = self.system.used_host_transport, []
        for part in range(parts + 1):
            size = self.system.buffer.value * part / parts
            if operator not in ONE_SIDED:
                whole_s = self.passes.exchange_s(transport, "message", size)
                half_ps = round(0.5 * PS_PER_S * whole_s)
                found.append(MessageCost(send_ps=half_ps, receive_ps=half_ps))
            elif transport == "shm":
                found.append(MessageCost())
            else:
                whole_s = self.passes.exchange_s(transport, "put", size)
                found.append(MessageCost(send_ps=round(PS_PER_S * whole_s)))
        return found

    def copied_line_s(self) -> float:
        """Of a receiver: tuples are put behind others, groups added to those that are there."""
        (table, *others), groups = self.tables.all, self.tables.groups
        if others or groups is None:
            return TUPLES_OF_LINE * self.passes.seconds("take", self.system.buffer.value)
        sent = groups.distinct(float(of_homes(table.records, self.nodes).mean())) * self.nodes
        found = groups.distinct(float(table.records))
        return LINE_BYTES / GROUP_BYTES * self._added_s(sent, found, found / self.nodes) / sent

    def _added_s(self, sent: float, found: float, at: float) -> float:
        """Of so many groups that are sent, of which so many differ, in tables of ``at``."""
        passes = self.passes
        again_s = max(sent - found, 0.0) * passes.seconds("same-group", at)
        return found * passes.seconds("new-group", at) + again_s

    def _join(self, operator: Operator, fan: FanOut) -> Iterator[StepPlan]:
        passes, buffer = self.passes, self.system.buffer.value
        inner, outer = self.tables.all
        sel, passing, each_error = self.tables.selectivity, {inner: 1.0, outer: 1.0}, 0.0
        if operator == "ghj-bloom":
            each_error = 1.0 - (1.0 - self.system.filter_error) ** (1.0 / self.nodes)
            # The part of inner tuples that an outer one asks for, with uniform keys.
            met = 1.0 - math.exp(-outer.records * sel / max(inner.records, 1))
            error = self.system.filter_error
            passing = {inner: met + (1.0 - met) * error, outer: sel + (1.0 - sel) * error}
        rows = {table: self._drawn(table, fan.final, passing[table]) for table in (inner, outer)}
        if operator in ONE_SIDED:
            tuple_s = passes.seconds("partition", fan.network, buffer)
        else:
            tuple_s = passes.seconds("gather", buffer)

        def scan(table: Table, more_s: float = 0.0, gated: bool = False) -> StepPlan:
            return StepPlan(
                name=f"scan {table.name}",
                pieces=self._chunks(self._bytes(table), self._sent_at_once(operator, fan)),
                read=0.0,
                rows=merged(rows[table], fan.network),
                row_bytes=table.row_bytes,
                gated=gated,
                input=True,
                line_s=TUPLES_OF_LINE * (passing[table] * tuple_s + more_s),
            )

        if operator == "ghj-bloom":
            yield from self._shared_filter(inner, 1.0, each_error)
            kept_s = self._looked_up_s(inner, 1.0, each_error, sel)
            yield scan(outer, kept_s, gated=True)
            yield from self._shared_filter(outer, passing[outer], each_error)
            kept_s = self._looked_up_s(outer, passing[outer], each_error, met)
            yield scan(inner, kept_s, gated=True)
        else:
            yield scan(inner)
            yield scan(outer)
        count = np.array([rows[table].sum(axis=0) for table in (inner, outer)])
        if operator != "rrj":
            yield self._partitioned(count, fan)
        yield self._joined(count, fan)

    def _filter_bytes(self, table: Table, passing: float, error: float) -> Floats:
        """Of each node's filter, in whole blocks."""
        bits = -math.log(error) / math.log(2.0) ** 2
        blocks = np.ceil(of_homes(table.records, self.nodes) * passing * bits / 8.0 / 64.0)
        return np.asarray(blocks * FILTER_BLOCK_BYTES)

    def _shared_filter(self, table: Table, passing: float, error: float) -> Iterator[StepPlan]:
        """Each node makes a filter of its tuples, and sends it to all others."""
        size = self._filter_bytes(table, passing, error)
        add_s = self.passes.seconds("filter-add", float(size.max()))
        rows = np.repeat((size / FILTER_BLOCK_BYTES).astype(np.int64)[:, None], self.nodes, axis=1)
        np.fill_diagonal(rows, 0)
        yield StepPlan(
            f"filter of {table.name}",
            self._chunks(self._bytes(table) * passing),
            read=0.0,
            rows=rows,
            row_bytes=FILTER_BLOCK_BYTES,
            line_s=TUPLES_OF_LINE * add_s,
        )

    def _looked_up_s(self, table: Table, passing: float, error: float, met: float) -> float:
        """Of a tuple: one with a partner is in one of the filters, at random; others in none."""
        size = float(self._filter_bytes(table, passing, error).max())
        hit_s = self.passes.seconds("filter-hit", size)
        miss_s = self.passes.seconds("filter-miss", size)
        return met * (hit_s + 0.5 * (self.nodes - 1) * miss_s) + (1.0 - met) * self.nodes * miss_s

    def _partitioned(self, count: Ints, fan: FanOut) -> StepPlan:
        passes, own = self.passes, max(fan.final // self.nodes, 2)
        tuple_s = passes.seconds("count", own)
        tuple_s += passes.seconds("partition", own, self.system.buffer.value)
        here = np.bincount(self._home(fan), count.sum(axis=0) * TUPLE_BYTES, self.nodes)
        pieces, line_s = self._chunks(here), TUPLES_OF_LINE * tuple_s
        return StepPlan("partition", pieces, read=0.0, gated=True, line_s=line_s)

    def _joined(self, count: Ints, fan: FanOut) -> StepPlan:
        inner, outer = count.sum(axis=1)
        of_partition, passes = max(inner / fan.final, 1.0), self.passes
        build_s = passes.seconds("build", of_partition)
        probe_s = max(passes.seconds("join", of_partition) - build_s, 0.0)
        whole_s = inner * build_s + outer * probe_s
        return self._last("build and probe", count.sum(axis=0), TUPLE_BYTES, whole_s, fan)

    def _last(
        self, name: str, count: Ints, row_bytes: float, whole_s: float, fan: FanOut
    ) -> StepPlan:
        """Of all partitions, ``whole_s`` on all nodes together."""
        used = np.flatnonzero(count)
        lines = count[used] * row_bytes / LINE_BYTES
        return StepPlan(
            name,
            Pieces(self._home(fan)[used], np.asarray(lines, dtype=np.float64), count[used]),
            read=0.0,
            gated=True,
            checked=True,
            line_s=max(whole_s / max(float(lines.sum()), 1.0), 1.0 / PS_PER_S),
        )

    def _home(self, fan: FanOut) -> Ints:
        return np.arange(fan.final) % fan.network % self.nodes

    def _aggregation(self, operator: Operator, fan: FanOut) -> Iterator[StepPlan]:
        passes, buffer = self.passes, self.system.buffer.value
        (table,), groups = self.tables.all, self.tables.groups
        assert groups is not None
        records = float(of_homes(table.records, self.nodes).mean())
        in_background = operator == "rdma-aggregation"
        if in_background:
            table_bytes = TABLE_PART * own_cache_bytes(self.machine.nodes[self.positions[0]])
            slots = 2 ** math.floor(math.log2(table_bytes / GROUP_BYTES))
            each = groups.tuples_for(FULL * slots, records)
            sent = groups.distinct(each) * records / max(each, 1.0)
            part = sent / records
            whole_bytes = slots * GROUP_BYTES
            tuple_s = part * passes.seconds("new-cached", whole_bytes)
            tuple_s += (1.0 - part) * passes.seconds("same-cached", whole_bytes)
            # A group is half as long again as the tuples that were measured.
            wider = GROUP_BYTES / TUPLE_BYTES
            tuple_s += part * wider * passes.seconds("partition", fan.network, buffer)
        else:
            sent = groups.distinct(records)
            tuple_s = sent / records * passes.seconds("new-group", sent)
            tuple_s += (1.0 - sent / records) * passes.seconds("same-group", sent)
        rows = self._drawn_groups(
            np.full(self.nodes, round(sent), dtype=np.int64), table, fan.final
        )
        chunks = self._chunks(self._bytes(table), self._sent_at_once(operator, fan))
        line_s = LINE_BYTES / table.row_bytes * tuple_s
        if not in_background:
            yield StepPlan("aggregate", chunks, read=0.0, line_s=line_s)
            chunks = self._chunks(rows.sum(axis=1) * GROUP_BYTES)
            line_s = LINE_BYTES / GROUP_BYTES * passes.seconds("send-group", sent)
        yield StepPlan(
            "aggregate and send" if in_background else "send groups",
            chunks,
            read=0.0,
            rows=merged(rows, fan.network),
            row_bytes=GROUP_BYTES,
            input=True,
            line_s=line_s,
        )
        found = groups.distinct(float(table.records))
        at = found / (fan.final if in_background else self.nodes)
        whole_s = found * passes.seconds("result-group", at)
        if in_background:  # else they are added as they come
            whole_s += self._added_s(float(rows.sum()), found, at)
        yield self._last("merge groups", rows.sum(axis=0), GROUP_BYTES, whole_s, fan)
