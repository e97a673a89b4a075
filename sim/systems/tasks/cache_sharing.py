"""How the structures that all stages access at random share the last-level caches.

All queries run at once, each as often as clients ask for it, on the nodes where parts of its
tables lie at the start. What several stages access (a dictionary) is there once; a part's structure
is in the caches of its node, one for all parts in those of every node that uses it, and a task's
own table once for each thread that runs such a task, in proportion to the stage's instructions. Of
a hash table there is one for each kind of query. Lines that stream through take no room from
these; of what queries read in order, a cache keeps what it has room for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ...kernel.arrays import Floats, Ints
from ...machine.caches import CacheFacts, hit_rates
from ...machine.costs import LINE_BYTES, CostModel
from .program import Place, Table


@dataclass(frozen=True)
class AtRandom:
    """``count`` accesses per entry, each to any line of a structure of ``structure_bytes``.

    ``name``: the same of all stages that access the same one; empty for one of this stage alone.
    ``own``: each thread has one of its own. ``written``: the part of the lines that is changed,
    too; ``made``: the stage makes it anew.
    """

    place: Place
    count: float
    structure_bytes: float
    own: bool = False
    written: float = 0.0
    made: bool = False
    name: str = ""


@dataclass(frozen=True)
class StageUse:
    """How much a stage is used: ``entries`` of it per query, times how often the query is asked.

    ``key``: its name among all stages of all queries. ``nodes`` (n,): where, the sum is 1;
    ``parts`` (n,): how many parts it works on there.
    """

    key: str
    entries: float
    nodes: Floats
    parts: Floats


def used_where(table: Table | None, workers: Ints) -> tuple[Floats, Floats]:
    """(n,) share of a stage's entries that each node does, and parts of its table there.

    Entries go with rows; those of an interleaved part, of one on a node without workers, and of no
    table, are done on all nodes with workers alike.
    """
    everywhere = np.where(workers > 0, 1.0, 0.0)
    everywhere /= max(everywhere.sum(), 1.0)
    if table is None:
        return everywhere, np.ceil(everywhere)
    nodes, parts = np.zeros(len(workers)), np.zeros(len(workers))
    for part in table.parts:
        if part.node is None or not workers[part.node]:
            nodes += part.rows * everywhere
            parts += np.ceil(everywhere)
        else:
            nodes[part.node] += part.rows
            parts[part.node] += 1
    return nodes / max(nodes.sum(), 1.0), parts


@dataclass
class _Structure:
    """``work``: of the stages that access it; ``own``: of all accesses, to each thread's own."""

    lines: Floats
    rate: Floats
    work: float = 0.0
    own: float = 0.0

    def copies(self, threads: Floats, all_work: float) -> Floats:
        """(n,) that there are in a cache that so many ``threads`` (n,) share."""
        own = self.own / max(float(self.rate.sum()), 1e-300)
        return np.asarray(1.0 - own + own * threads * self.work / all_work)


class CacheSurvey:
    """Collects what all stages access at random in caches of one level.

    ``threads`` (n,): those that share a cache.
    """

    def __init__(self, threads: Floats) -> None:
        self.threads = threads
        self._structures: dict[str, _Structure] = {}
        self._of: dict[str, list[str]] = {}
        self._work = 0.0
        self._in_order: dict[str, Floats] = {}

    def in_order(self, name: str, read_bytes: Floats, whole_bytes: Floats | float = inf) -> None:
        """A stage reads so much in order, on each node (n,), of what has this name; all stages
        together read no more than there is.
        """
        together = self._in_order.get(name, 0.0) + read_bytes
        self._in_order[name] = np.minimum(together, whole_bytes)

    def add(self, use: StageUse, instructions: float, at_random: Sequence[AtRandom]) -> None:
        """A stage whose entries do this."""
        work = use.entries * instructions
        self._work += work
        names = self._of[use.key] = []
        for index, access in enumerate(at_random):
            name = access.name or f"{use.key}/{index}"
            homes = use.parts if access.place == "part" else np.where(use.nodes > 0, 1.0, 0.0)
            lines = np.ceil(access.structure_bytes / LINE_BYTES) * homes
            rate = use.entries * access.count * use.nodes
            known = self._structures.setdefault(name, _Structure(lines, np.zeros_like(rate)))
            known.lines = np.maximum(known.lines, lines)
            known.rate = known.rate + rate
            known.own += float(rate.sum()) if access.own else 0.0
            known.work += 0.0 if name in names else work
            names.append(name)

    def line_s(self, costs: CostModel) -> Floats:
        """(n,) latency of a line that is read in order, on average over where it is kept.

        A core's own cache keeps all that is read on its node, in turn, or nothing (least recently
        used); of more than a last-level cache holds it keeps as much as it holds, as those do that
        adapt to such reads.
        """
        read = sum(self._in_order.values(), np.zeros(len(self.threads)))
        room = costs.last_cache.lines * LINE_BYTES
        kept = np.divide(room, np.maximum(read, room), out=np.zeros_like(read), where=read > 0)
        found_s = kept * costs.last_cache.latency_s + (1.0 - kept) * np.diag(costs.idle_s)
        own = (read > 0.0) & (read <= costs.private_cache.lines * LINE_BYTES)
        return np.where(own, 0.0, found_s)

    def hits(self, cache: CacheFacts) -> dict[str, Floats]:
        """(n, R) part of a stage's accesses to each of its R structures that find their line in
        such caches, by the stage's key.
        """
        if not self._structures:
            return {key: np.zeros((len(self.threads), 0)) for key in self._of}
        lines = np.stack(
            [
                structure.lines * structure.copies(self.threads, self._work)
                for structure in self._structures.values()
            ],
            axis=1,
        )
        rate = np.stack([structure.rate for structure in self._structures.values()], axis=1)
        found = hit_rates(lines, rate, cache.lines)
        column = {name: index for index, name in enumerate(self._structures)}
        return {key: found[:, [column[name] for name in names]] for key, names in self._of.items()}
