"""The tables of a workload's join or aggregation.

How many rows each partition gets: from the keys of a workload, expected and drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....workloads import Workload
from ....workloads.keys import KeyDistribution, Uniform
from ...kernel.arrays import Floats, Ints
from ...kernel.streams import stream_key
from .spec import JoinSystem

# Of more keys, neighbours are taken together: each range of them is hashed as one key.
RANGES_MAX = 2**20


@dataclass(frozen=True, eq=False)
class KeyRanges:
    """Keys in ranges: how many keys (r,), and the part of all tuples that has one of these (r,)."""

    keys: Floats
    share: Floats

    def distinct(self, tuples: float) -> float:
        """How many different keys so many tuples have, on average."""
        missed = np.exp(tuples * np.log1p(-np.minimum(self.share / self.keys, 1.0 - 1e-12)))
        return float((self.keys * (1.0 - missed)).sum())

    def tuples_for(self, distinct: float, most: float) -> float:
        """After so many tuples there are ``distinct`` keys, on average; at most ``most``."""
        if self.distinct(most) <= distinct:
            return most
        low, high = 0.0, most
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.distinct(middle) < distinct else (low, middle)
        return high


def key_ranges(keys: KeyDistribution) -> KeyRanges:
    """All keys of a distribution."""
    if isinstance(keys, Uniform):
        return KeyRanges(np.array([float(keys.keys)]), np.ones(1))
    bounds = np.linspace(0, keys.keys, min(keys.keys, RANGES_MAX) + 1).round().astype(np.int64)
    share = np.maximum(keys.shares(bounds), 0.0)
    return KeyRanges(np.diff(bounds).astype(np.float64), share / share.sum())


def partition_shares(keys: KeyDistribution, partitions: int, seed: int) -> Floats:
    """(F,) the part of tuples whose key a hash puts into each partition."""
    if isinstance(keys, Uniform):
        return np.full(partitions, 1.0 / partitions)
    ranges = key_ranges(keys)
    hashed = random(seed, 0, "hash of keys").integers(partitions, size=len(ranges.share))
    found = np.bincount(hashed, ranges.share, partitions)
    return np.asarray(found / found.sum())


def of_homes(records: int, nodes: int) -> Ints:
    """(n,) records of each node: spread evenly."""
    return np.diff(np.arange(nodes + 1, dtype=np.int64) * records // nodes)


def drawn_rows(
    random_: np.random.Generator, records: Sequence[int] | Ints, shares: Floats, passing: float
) -> Ints:
    """(n, F) rows of each home's records in each partition, of the part that passes a filter."""
    drawn = [random_.multinomial(count, shares) for count in records]
    rows = np.array(drawn, dtype=np.int64)
    return rows if passing == 1.0 else np.asarray(random_.binomial(rows, passing))


def random(seed: int, replication: int, name: str) -> np.random.Generator:
    """A stream of that name."""
    key = np.array(stream_key(seed, replication, name), dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def merged(rows: Ints, partitions: int) -> Ints:
    """(n, P) of (n, F), F a multiple of P: final partition f is a part of partition f mod P."""
    return np.asarray(rows.reshape(rows.shape[0], -1, partitions).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Table:
    """``keys``: of its tuples; None where they are all different, and so spread evenly."""

    name: str
    records: int
    row_bytes: float
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

    def table(of: str, tuple_keys: KeyDistribution | None) -> Table:
        stored = workload.objects[of]
        assert stored.record_size is not None, "the workload is checked"
        return Table(of, stored.records, stored.record_size.value, tuple_keys)

    result = operation.result_size.value
    if operation.kind == "join":
        inner = table(operation.object, None)
        outer = table(operation.outer, keys)
        smaller = min(inner.bytes, outer.bytes)
        return Tables((inner, outer), operation.selectivity, None, smaller, result)
    assert keys is not None
    groups = key_ranges(keys)
    read = table(operation.object, keys)
    found = groups.distinct(float(read.records))
    return Tables((read,), 1.0, groups, found * result, result)
