"""Policies that place table parts: where they lie, and when a table is partitioned or merged.

``adaptive`` is the data placer of Psaroudakis et al., Adaptive NUMA-aware data placement and task
scheduling for analytical workloads in main-memory column-stores, PVLDB 10 (2016). Each period:

1. The use of each part, recent and past. A part may be moved if it is in use and its average use
   over the time that a move would take (twice, if its queries wait meanwhile) differs from the
   recent one by less than ``eligibility``, CPU and memory throughput alike. It may be partitioned
   if that holds also over the time that the move and the partitioning take together, and twice
   its table's parts are no more than the nodes.
2. Pairs of nodes by falling difference of CPU use, where it exceeds ``imbalance`` and the hot node
   is in use above ``saturated``. Of the hot node's parts, by falling recent use, the first that may
   be moved, and whose move lowers the difference and brings the cold node's memory throughput to no
   more than ``saturated`` of its peak, is moved; its use is taken not to grow.
3. Where no move helps on any pair, a table is partitioned, by the same test for half a part. The
   other parts' halves go to the least used nodes, where that helps.
4. Tables whose parts are all cold are merged.

The source leaves open: when a part is cold (here: no recent use, and less than ``eligibility`` of a
thread on average over the time that the merge takes), what a hotspot is (here as in 2), and whether
it acts on nodes where an action was under way in the last period (here it does not: their use is no
guide).
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ....inputs import Quantity
from ....inputs.grouping import by_key
from ....inputs.quantities import Duration
from ...control.family import Family
from ...control.policy import NoPolicy, PolicySpec
from ...kernel.arrays import Floats
from ...planes.outcome import ControlEvent
from .commands import (
    SAMPLE_S,
    MergeTable,
    MovePart,
    PartitionTable,
    PartUse,
    PlacerCommand,
    PlacerObservation,
    check_placement,
)

PERIOD = Quantity(1.0, 1.0, 1.0)  # the source's
ELIGIBILITY, IMBALANCE, SATURATED = 0.3, 0.4, 0.7  # the source's

Ratio = Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)]


class PlacerSpec(PolicySpec):
    """A placer; what its bundled options mean, ``placer.py`` tells. ``queries_wait``: queries of a
    part wait while it is moved, as in the source (the default); else they go on where it was.
    """

    queries_wait: Annotated[bool, Field(strict=True)] | None = None
    eligibility: Ratio | None = None
    imbalance: Ratio | None = None
    saturated: Ratio | None = None
    period: Duration = PERIOD


@dataclass(frozen=True)
class _Seen:
    """A part with its history worked out. ``cpu`` and ``memory_Bps``: its recent use."""

    use: PartUse
    parts: int
    cpu: float
    memory_Bps: float
    may_move: bool
    may_split: bool
    cold: bool


class AdaptivePlacer:
    """Moves, partitions and merges as this file's first lines say."""

    def __init__(
        self,
        eligibility: float = ELIGIBILITY,
        imbalance: float = IMBALANCE,
        saturated: float = SATURATED,
        queries_wait: bool = True,
    ) -> None:
        if not isinstance(queries_wait, bool):
            raise ValueError("queries_wait: expected true or false")
        self.queries_wait = queries_wait
        for name, value in (
            ("eligibility", eligibility),
            ("imbalance", imbalance),
            ("saturated", saturated),
        ):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
                raise ValueError(f"{name}: expected a number above 0, and at most 1")
        self.eligibility, self.imbalance, self.saturated = eligibility, imbalance, saturated
        self._histories: dict[tuple[str, int, int], UseHistory] = {}
        self._acting: set[int | None] = set()  # nodes with an action under way when last asked

    def decide(self, observation: PlacerObservation) -> tuple[PlacerCommand, ...]:
        """At most one move or partitioning, and merges of cold tables."""
        seen = tuple(self._look(observation))
        action = self._balance(observation, seen)
        return (*(() if action is None else (action,)), *self._merges(seen))

    def _look(self, observation: PlacerObservation) -> Iterator[_Seen]:
        parts_of = Counter(use.table for use in observation.parts)
        nodes = len(observation.threads)
        kept: dict[tuple[str, int, int], UseHistory] = {}
        for use in observation.parts:
            parts = parts_of[use.table]
            key = (use.table, parts, use.part)
            move_s = (2.0 if self.queries_wait else 1.0) * use.pages * observation.move_s
            split_s = move_s + use.pages * observation.partition_s
            recent_s = len(use.cpu) * SAMPLE_S
            history = self._histories.get(key) or UseHistory(max(split_s, recent_s, SAMPLE_S))
            kept[key] = history
            history.add(use.cpu, use.memory_Bps)
            recent = history.average(recent_s)
            may_move = (
                not use.busy
                and use.node is not None
                and self._steady(recent, history.average(move_s))
            )
            may_split = (
                may_move
                and use.rows >= 2
                and 2 * parts <= nodes
                and self._steady(recent, history.average(split_s))
            )
            past_cpu, _ = history.average(max(use.pages * observation.partition_s, SAMPLE_S))
            cold = not use.busy and recent == (0.0, 0.0) and past_cpu < self.eligibility
            yield _Seen(use, parts, *recent, may_move, may_split, cold)
        self._histories = kept

    def _steady(self, recent: tuple[float, float], past: tuple[float, float]) -> bool:
        """Whether the part is in use, and was as much in use before."""
        return recent[0] > 0 and all(
            abs(before - now) <= self.eligibility * now
            for now, before in zip(recent, past, strict=True)
        )

    def _balance(
        self, observation: PlacerObservation, seen: Sequence[_Seen]
    ) -> MovePart | PartitionTable | None:
        pairs = list(self._pairs(observation, seen))
        for hot, cold in pairs:
            for part in _by_use(seen, hot):
                if part.may_move and self._helps(observation, part, hot, cold, 1.0):
                    return MovePart(part.use.table, part.use.part, cold, self.queries_wait)
        for hot, cold in pairs:
            for part in _by_use(seen, hot):
                if not part.may_split or not self._helps(observation, part, hot, cold, 0.5):
                    continue
                if (nodes := self._halves(observation, seen, part, cold)) is not None:
                    return PartitionTable(part.use.table, nodes, self.queries_wait)
        return None

    def _pairs(
        self, observation: PlacerObservation, seen: Sequence[_Seen]
    ) -> Iterator[tuple[int, int]]:
        """Nodes with workers, hot and cold, by falling difference of their use."""
        used: list[float] = _recent(observation.node_cpu).tolist()
        threads: list[int] = observation.threads.tolist()
        acting = {part.use.node for part in seen if part.use.busy}
        acting |= {node for part in seen for node in part.use.targets}
        before, self._acting = self._acting, acting
        nodes = [k for k, count in enumerate(threads) if count > 0 and k not in acting | before]
        part_used = {k: used[k] / threads[k] for k in nodes}
        for hot, cold in sorted(
            permutations(nodes, 2), key=lambda pair: part_used[pair[1]] - part_used[pair[0]]
        ):
            if part_used[hot] - part_used[cold] <= self.imbalance:
                return
            if part_used[hot] > self.saturated:
                yield hot, cold

    def _helps(
        self, observation: PlacerObservation, part: _Seen, hot: int, cold: int, moved: float
    ) -> bool:
        """Whether a part (or that share of one) on the cold node lowers the difference in use, and
        makes no memory hotspot there.
        """
        used, threads = _recent(observation.node_cpu), observation.threads
        cpu = moved * part.cpu
        before = used[hot] / threads[hot] - used[cold] / threads[cold]
        after = (used[hot] - cpu) / threads[hot] - (used[cold] + cpu) / threads[cold]
        if abs(after) >= before or moved * part.use.pages > observation.free_pages[cold]:
            return False
        drawn = _recent(observation.node_memory_Bps)[cold] + moved * part.memory_Bps
        peak = observation.memory_peak_Bps[cold]
        return bool(np.isnan(peak) or drawn <= self.saturated * peak)

    def _halves(
        self, observation: PlacerObservation, seen: Sequence[_Seen], hottest: _Seen, cold: int
    ) -> tuple[int, ...] | None:
        """Where the table's new parts shall lie; None where a part of it may not be split."""
        parts = sorted(
            (sample for sample in seen if sample.use.table == hottest.use.table),
            key=lambda sample: sample.use.part,
        )
        used = _recent(observation.node_cpu) / np.maximum(observation.threads, 1)
        able: list[int] = np.flatnonzero(observation.threads > 0).tolist()
        found: dict[int, tuple[int, int]] = {}
        for sample in sorted(parts, key=lambda sample: (sample is not hottest, -sample.cpu)):
            node = sample.use.node
            if node is None or sample.use.busy or sample.use.rows < 2:
                return None
            half = 0.5 * sample.cpu / max(observation.threads[node], 1)
            target = cold if sample is hottest else min(able, key=lambda k: (used[k], k))
            if sample is not hottest and used[target] + half >= used[node]:
                target = node
            used[node] -= half
            used[target] += half
            found[sample.use.part] = (node, target)
        return tuple(node for part in sorted(found) for node in found[part])

    @staticmethod
    def _merges(seen: Sequence[_Seen]) -> Iterator[MergeTable]:
        for table, parts in by_key((part.use.table, part) for part in seen).items():
            first = parts[0].use
            if len(parts) > 1 and first.node is not None and all(part.cold for part in parts):
                yield MergeTable(table, first.node)


def _recent(samples: Any) -> Any:
    """(n,) the mean of (n, S) samples."""
    return samples.mean(axis=1)


def _by_use(seen: Iterable[_Seen], node: int) -> list[_Seen]:
    """The parts on a node, by falling recent use."""
    return sorted((part for part in seen if part.use.node == node), key=lambda part: -part.cpu)


def _event(command: PlacerCommand, policy: str, time_s: float) -> ControlEvent:
    details: dict[str, Any] = {"policy": policy, "table": command.table}
    if isinstance(command, MovePart):
        text = f"{policy}: move part {command.part} of {command.table}"
        details |= {"action": "move", "part": command.part, "node": command.node}
    elif isinstance(command, PartitionTable):
        text = f"{policy}: partition {command.table}"
        details |= {"action": "partition", "nodes": list(command.nodes)}
    else:
        text = f"{policy}: merge {command.table}"
        details |= {"action": "merge", "node": command.node}
    return ControlEvent(time_s, "placement", text, details)


PLACER = Family(
    name="placer",
    what="where the parts of tables lie, and into how many a table is partitioned",
    spec=PlacerSpec,
    titles={
        "none": "no placer: parts stay where they are (also: static)",
        "adaptive": "moves, partitions and merges by how parts were used (PVLDB 2016)",
    },
    make=lambda name, options: AdaptivePlacer(**options) if name == "adaptive" else None,
    fixed={"none": NoPolicy, "static": NoPolicy},
    expected="none, static or adaptive",
    check=check_placement,
    event=_event,
    types=(PlacerObservation, PartUse, MovePart, PartitionTable, MergeTable),
)


class UseHistory:
    """The latest samples of one part, ``longest_s`` back; time before the first counts as zero."""

    def __init__(self, longest_s: float) -> None:
        kept = ceil(longest_s / SAMPLE_S) + 1
        # Running sums, so that an average over any time is a difference.
        self._sums: deque[tuple[float, float]] = deque([(0.0, 0.0)], maxlen=kept)

    def add(self, cpu: Floats, memory_Bps: Floats) -> None:
        """Further samples (S,)."""
        total_cpu, total_Bps = self._sums[-1]
        for threads, Bps in zip(cpu.tolist(), memory_Bps.tolist(), strict=True):
            total_cpu += threads
            total_Bps += Bps
            self._sums.append((total_cpu, total_Bps))

    def average(self, over_s: float) -> tuple[float, float]:
        """CPU (threads) and memory throughput (bytes per second), averaged over the last so many
        seconds.
        """
        samples = max(over_s / SAMPLE_S, 1.0)
        back = min(round(samples), len(self._sums) - 1)
        then, now = self._sums[-1 - back], self._sums[-1]
        return (now[0] - then[0]) / samples, (now[1] - then[1]) / samples
