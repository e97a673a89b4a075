"""The tables of a workload's join or aggregation."""

from __future__ import annotations

from dataclasses import dataclass

from ....workloads import Workload
from ....workloads.keys import KeyDistribution
from .cardinalities import KeyRanges, key_ranges
from .spec import JoinSystem


@dataclass(frozen=True, eq=False)
class Table:
    """``keys``: of its tuples; None where they are all different, and so spread evenly."""

    name: str
    records: int
    row_bytes: float
    sent_row_bytes: float
    keys: KeyDistribution | None

    @property
    def bytes(self) -> float:
        """Of all tuples."""
        return self.records * self.row_bytes


@dataclass(frozen=True, eq=False)
class Tables:
    """``all``: those that are read, in their order; ``selectivity``: the part of tuples that find a
    partner; ``groups`` of an aggregation; ``partitioned_bytes``: what partitions are made small by.
    """

    all: tuple[Table, ...]
    selectivity: float
    groups: KeyRanges | None
    partitioned_bytes: float
    result_bytes: float


def tables_of(system: JoinSystem, workload: Workload) -> Tables:
    """Of the workload's one operation, the inner table of a join first."""
    name, operation = system.operation(workload)
    keys = workload.at(0.0).operations[name].keys

    def table(of: str, tuple_keys: KeyDistribution | None, sent: float | None) -> Table:
        stored = workload.objects[of]
        assert stored.record_size is not None, "the workload is checked"
        size = stored.record_size.value
        return Table(of, stored.records, size, sent or size, tuple_keys)

    result = operation.result_size.value
    if operation.kind == "join":
        inner = table(operation.object, None, None)
        outer = table(operation.outer, keys, None)
        smaller = min(inner.bytes, outer.bytes)
        return Tables((inner, outer), operation.selectivity, None, smaller, result)
    assert keys is not None
    groups = key_ranges(keys)
    read = table(operation.object, keys, result)
    found = groups.distinct(float(read.records))
    return Tables((read,), 1.0, groups, found * result, result)
