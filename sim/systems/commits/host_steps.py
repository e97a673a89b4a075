"""Costs of single steps on one host: blocks by size and place, both ends of messages."""

import math
from collections.abc import Sequence

import numpy as np

from ....inputs.grouping import by_key
from ....topologies import Machine
from ....workloads import Workload
from ....workloads.key_specs import HotRangeSpec, ZipfSpec
from ...machine.message_costs import interpolated
from .facts import BlockCost, TransportCosts
from .sizes import Records

Part = tuple[float, float, float]
"""How often blocks lie in such a region, bytes of it, and seconds that a step takes there."""
CACHE_SHARE = 0.5  # of a cache, for a region that it holds: the rest goes to other data


class BlockCosts:
    """Seconds of a step by size of the block and of the memory that blocks lie in.

    Between measured points in proportion to the size, and to the logarithm of the region; beyond
    the last as that, below the first in proportion to the size. ``together``: while others work on
    the same memory; where that was not measured, as it is without.
    """

    def __init__(self, blocks: Sequence[BlockCost], *, together: bool = False) -> None:
        known = [block for block in blocks if together and block.get_together is not None]
        self._end, blocks = ("_together", known) if known else ("", blocks)
        self._regions = sorted({block.region.value for block in blocks})
        self._rows = {
            region: sorted(
                (b for b in blocks if b.region.value == region), key=lambda b: b.size.value
            )
            for region in self._regions
        }

    def seconds(self, step: str, size: float, region: float) -> float:
        """``step``: get, update or insert."""
        at_regions = [self._at(step, size, known) for known in self._regions]
        return float(np.interp(math.log(region), np.log(self._regions), at_regions))

    def _at(self, step: str, size: float, region: float) -> float:
        row = self._rows[region]
        known = [(b.size.value, getattr(b, step + self._end)) for b in row]
        return interpolated(
            [(step_size, value.value) for step_size, value in known if value is not None], size
        )


class Ends:
    """Seconds at the two ends of a transport, by operation, size and number posted at once."""

    def __init__(self, costs: TransportCosts) -> None:
        self.costs = costs
        self._of = by_key(((end.operation, end.count), end) for end in costs.ends)
        self._known: dict[tuple[str, str, float, float], float] = {}

    def total(self, operation: str, part: str, size: float, count: float) -> float:
        """Of ``count`` together; a straight line through the measured counts."""
        asked = operation, part, size, count
        if asked not in self._known:
            self._known[asked] = self._total(operation, part, size, count)
        return self._known[asked]

    def _total(self, operation: str, part: str, size: float, count: float) -> float:
        points = []
        for (counted, known), ends in sorted(self._of.items()):
            if counted == operation:
                curve = [(e.size.value, getattr(e, part).value) for e in ends]
                points.append((float(known), known * interpolated(sorted(curve), size, floor=True)))
        return interpolated(points, count)

    def each(self, operation: str, part: str, size: float) -> float:
        """Of one more among many."""
        counts = self._counts(operation)
        before, last = counts[max(len(counts) - 2, 0)], counts[-1]
        if before == last:
            whole_s = self.total(operation, part, size, last)
            return max(whole_s - self._look_s(part), 0.0) / last
        more = self.total(operation, part, size, last) - self.total(operation, part, size, before)
        return max(more / (last - before), 0.0)

    def connection(self, operation: str, part: str, size: float) -> list[float]:
        """Seconds that an end which finds 1, 2, … of them, all from one peer, takes beside each
        one's time and that of a look: it receives, and acknowledges several at once. Up to the last
        but one of the measured counts, from where on it takes no more."""
        counts = self._counts(operation)
        each_s, look_s = self.each(operation, part, size), self._look_s(part)
        return [
            max(self.total(operation, part, size, count) - count * each_s - look_s, 0.0)
            for count in range(1, counts[max(len(counts) - 2, 0)] + 1)
        ]

    def less_polling(
        self, operation: str, part: str, size: float, count: float, parts: int = 1
    ) -> float:
        """``total``, less what processors are charged with for a look that finds all of them, each
        of so many messages: see Processors."""
        whole_s = self.total(operation, part, size, count)
        if part == "post":
            return whole_s
        table_s = self.connection("get", "serve", self.costs.sleeper_size.value)
        found = min(round(count * parts), len(table_s))
        return max(whole_s - self.costs.look.value - table_s[found - 1], 0.0)

    def _look_s(self, part: str) -> float:
        return 0.0 if part == "post" else self.costs.look.value

    def _counts(self, operation: str) -> list[int]:
        return sorted(count for measured, count in self._of if measured == operation)


class Region:
    """Mean cost of a step on a record, by how often which records are asked for.

    Where a cache holds what is used again depends on how much else passes through it meanwhile.
    Records are read, and others created, in turn through ``insert_bytes``: of a region of b bytes
    that a part p of all reads goes to, each is read again after b bytes of such, and b · created /
    (reads · p) of created ones; and the other way round.
    """

    def __init__(
        self,
        machine: Machine,
        workload: Workload,
        blocks: BlockCosts,
        records: Records,
        insert_bytes: float,
    ) -> None:
        (operation,) = workload.operations.values()
        self._keys = operation.keys
        self._records = workload.objects[operation.object].records
        self._blocks = blocks
        self._created = (records.writes - records.updates) / max(records.reads, 1)  # for each read
        self._insert_bytes = insert_bytes
        self._caches = [level.size_bytes for level in machine.nodes[0].caches]

    def mean(self, step: str, size: float) -> float:
        """Seconds."""
        return sum(often * seconds for often, _, seconds in self.parts(step, size))

    def parts(self, step: str, size: float) -> list[Part]:
        """By region: how often a record lies in it, bytes until it is used again, and seconds."""
        reach = [
            (often, region + min(self._created * region / often, self._insert_bytes))
            for often, region in self._shares(size)
            if often > 0
        ]
        return [
            (often, region, self._blocks.seconds(step, size, region)) for often, region in reach
        ]

    def insert_reach(self, size: float) -> float:
        """Bytes that pass until a place of created records is written again."""
        if not self._created:
            return self._insert_bytes
        read = self._insert_bytes / self._created
        passing = sum(min(often * read, region) for often, region in self._shares(size))
        return self._insert_bytes + passing

    def _shares(self, size: float) -> list[tuple[float, float]]:
        """By region: how often a record lies in it, and its bytes."""
        whole = self._records * size
        keys = self._keys
        shares = [(1.0, whole)]
        if isinstance(keys, HotRangeSpec):
            # Who is asked for often stays in a cache.
            shares = [(keys.share, (keys.end - keys.first) * size), (1.0 - keys.share, whole)]
        if isinstance(keys, ZipfSpec):
            shares = self._zipf(size, whole, keys.exponent)
        return shares

    def _zipf(self, size: float, whole: float, exponent: float) -> list[tuple[float, float]]:
        """Each cache holds the most popular records that fit; the rest is in memory."""
        ranks = np.arange(1, min(self._records, 1_000_000) + 1, dtype=np.float64)
        share = np.cumsum(ranks**-exponent)
        share /= share[-1]
        shares, held_before = [], 0.0
        for cache in sorted(self._caches):
            fits = int(min(CACHE_SHARE * cache / size, len(ranks)))
            held = float(share[fits - 1]) if fits else 0.0
            shares.append((max(held - held_before, 0.0), max(fits * size, size)))
            held_before = max(held, held_before)
        return [*shares, (1.0 - held_before, whole)]
