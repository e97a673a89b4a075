"""Overlap of the misses of a batch of keys on a core, as measured in a machine file.

The rule of the cost model is that a step takes as long as its instructions or its misses, whichever
is longer. A batch of a real engine's lookups overlaps less well than that where both are about as
long: each of its passes ends with waiting for its own last misses. What a key of a batch takes was
measured by size of the index (``engines.eris.walk`` of the machine file); what its misses hold of
the core's slots at that size, idle, the cost model knows: together, one curve of the time that a
key takes more than its instructions against the time that its misses hold. Other distributions,
other shares of a cache and slower memory move along this curve.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ....topologies.machine import Machine
from ...machine.caches import hit_rates, last_level_hits
from ...machine.costs import LINE_BYTES
from .costs import ErisCosts
from .index import placed_regions, with_page_walks
from .instructions import InstructionCounts
from .prefix_tree import ArrayTree

Floats = npt.NDArray[np.float64]

NOTHING_S = 1e-15  # a thousandth of what planes count in
CACHED_MAX = 4


@dataclass(frozen=True)
class Curve:
    """Points (P,): time that a key's misses hold, and what it takes beyond its instructions."""

    held_s: Floats
    more_s: Floats

    def at(self, held_s: Floats) -> Floats:
        """(…,) what a key takes beyond its instructions; beyond the last point, in proportion."""
        found = np.interp(held_s, self.held_s, self.more_s)
        beyond = held_s / self.held_s[-1]
        return np.asarray(np.where(beyond > 1.0, self.more_s[-1] * beyond, found))


@dataclass(frozen=True)
class Overlap:
    """The curves of lookups and of upserts."""

    lookup: Curve
    upsert: Curve

    def slot_factor(self, held_s: Floats, core_s: Floats, upserts: Floats) -> Floats:
        """(…,) factor on ``held_s`` so that the longer of it and ``core_s`` is what a key takes.

        ``upserts`` (…,): the part of the operations that write to the tree.
        """
        more_s = (1.0 - upserts) * self.lookup.at(held_s)
        more_s = more_s + upserts * self.upsert.at(held_s)
        takes_s = core_s + more_s
        found = np.divide(takes_s, held_s, out=np.ones_like(held_s), where=held_s > NOTHING_S)
        # Where misses make nothing longer, they are not longer than the instructions.
        return np.where(more_s > 0, found, np.minimum(found, 1.0))


# Machines hold arrays, which have no hash; none of them changes.
_CACHED: deque[tuple[Machine, InstructionCounts, float, Overlap | None]] = deque(maxlen=CACHED_MAX)


def overlap_of(costs: ErisCosts, page_bytes: float) -> Overlap | None:
    """The curves of the machine as it was measured, None where it was not.

    Those of the machines asked for last are kept: a calibration asks for one machine from many
    scenarios, what-ifs from one scenario again and again.
    """
    costs = costs.unscaled
    for machine, counted, page, known in _CACHED:
        if machine is costs.machine and counted is costs.counted and page == page_bytes:
            return known
    found = _overlap(costs, page_bytes)
    _CACHED.append((costs.machine, costs.counted, page_bytes, found))
    return found


def _overlap(costs: ErisCosts, page_bytes: float) -> Overlap | None:
    walk = costs.facts.walk if costs.facts is not None else ()
    if len(walk) < 2:
        return None
    sizes = [point.keys for point in walk]
    counts = costs.instructions
    level = counts.tree_level
    lookup = _curve(costs, sizes, [point.lookup.value for point in walk], page_bytes, level, 1.0)
    level = counts.tree_level if counts.upsert_level is None else counts.upsert_level
    # What is changed is written back.
    upsert = _curve(costs, sizes, [point.upsert.value for point in walk], page_bytes, level, 2.0)
    return Overlap(lookup, upsert)


def _curve(
    costs: ErisCosts,
    sizes: Sequence[int],
    times: Sequence[float],
    page_bytes: float,
    level: float,
    passed: float,
) -> Curve:
    """Of indexes of these sizes, a key of which took these times; ``level``: instructions of one;
    ``passed``: lines that the memory moves for each that misses.
    """
    from scipy.optimize import isotonic_regression  # slow to load: only where a host was measured

    node = costs.first_node or 0
    levels = np.array([ArrayTree(keys).levels for keys in sizes])
    levels_s = levels * level / costs.instructions_per_s[node]
    takes_s = np.array(times)
    found = [_misses(costs, node, keys, page_bytes) for keys in sizes]
    held, lines = np.array(found).T
    # Levels are instructions, which count elsewhere, and so is all of a key in the first cache.
    near = _in_first_cache(costs, node, sizes)
    core_s = levels_s + float(np.median((takes_s - levels_s)[near]))
    # It loaded the memory itself: what it would take without.
    load = passed * lines * LINE_BYTES / takes_s / costs.memory_Bps[node]
    wait_s = np.array([costs.memory_wait_s(np.full(len(costs.cores), x))[node] for x in load])
    loaded_s = held + lines * wait_s / costs.walk_misses[node]
    takes_s = takes_s * np.divide(held, loaded_s, out=np.ones_like(held), where=loaded_s > 0)
    # More misses never take less: single sizes may have been measured in a bad moment.
    more_s = isotonic_regression(np.maximum(takes_s - core_s, 0.0)).x
    rising = np.maximum.accumulate(held)
    # Points with misses alike: the largest index of them.
    last = np.append(np.diff(rising) > 0, True)
    return Curve(rising[last], more_s[last])


def _in_first_cache(costs: ErisCosts, node: int, sizes: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Which of these indexes lie in a core's first cache; the smallest one in any case."""
    caches = costs.machine.nodes[node].caches
    room_bytes = caches[0].size_bytes if caches else 0.0
    found = np.array([keys * ArrayTree(keys).bytes_per_key <= room_bytes for keys in sizes])
    found[0] = True
    return found


def _misses(costs: ErisCosts, node: int, keys: int, page_bytes: float) -> tuple[float, float]:
    """Of a lookup by the only core at work: time that its misses hold its slots, idle, and lines
    from memory.
    """
    private, last = costs.private_cache, costs.last_cache
    in_private, in_last, from_memory = _found(
        keys,
        page_bytes,
        float(costs.tlb_pages(page_bytes)[node]),
        float(private.lines[node]),
        float(last.lines[node]),
        bool(last.exclusive[node]),
    )
    held_s = in_private * private.latency_s[node]
    held_s += in_last * last.latency_s[node]
    held_s += from_memory * np.nanmin(costs.idle_s[node])
    return float(held_s / costs.walk_misses[node]), from_memory


@lru_cache(maxsize=4096)
def _found(
    keys: int,
    page_bytes: float,
    reach: float,
    private: float,
    last: float,
    exclusive: bool,
) -> tuple[float, float, float]:
    """Lines that a lookup by the only core at work finds in its private caches, in the last one,
    and in memory. ``reach``: pages that the TLB knows; of each cache: lines that it has room for.

    Kept, as a calibration asks again and again: it moves latencies, of which this knows nothing.
    """
    regions = with_page_walks(
        placed_regions(ArrayTree(keys), np.full((1, 1), float(keys)), np.ones((1, 1))),
        page_bytes,
        np.array([reach]),
        np.ones(1),
    )
    lines, rate = regions.lines.reshape(1, -1), regions.rate.reshape(1, -1)
    hits = hit_rates(lines, rate, np.array([private]))
    missed = rate * (1.0 - hits)
    room = last + exclusive * float((lines * hits).sum())
    met = last_level_hits(lines, rate, hits, np.array([room]), np.array([exclusive]))
    return (
        float((rate * hits).sum()),
        float((missed * met).sum()),
        float((missed * (1.0 - met)).sum()),
    )
