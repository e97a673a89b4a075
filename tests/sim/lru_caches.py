"""Caches simulated line by line: least recently used, each line used independently of the past."""

from collections import OrderedDict

import numpy as np
from scipy import stats

from numatwin.sim.kernel.arrays import Flags, Floats, Ints

BATCHES = 25
CONFIDENCE = 0.999  # of each interval: there are a few dozen


def uses(lines: Floats, rate: Floats, count: int, random: np.random.Generator) -> tuple[Ints, Ints]:
    """``count`` uses of lines, each alike within its region: line, and region, of each."""
    region = random.choice(len(lines), size=count, p=rate / rate.sum())
    first = np.concatenate([[0], np.cumsum(lines)[:-1]]).astype(np.int64)
    return first[region] + random.integers(0, lines.astype(np.int64)[region]), region


def lru_hits(line: Ints, capacity: int) -> Flags:
    """Whether each use finds its line in one cache of ``capacity`` lines."""
    cache: OrderedDict[int, None] = OrderedDict()
    found = np.zeros(len(line), dtype=np.bool_)
    for at, used in enumerate(line.tolist()):
        if used in cache:
            found[at] = True
            cache.move_to_end(used)
        else:
            cache[used] = None
            if len(cache) > capacity:
                cache.popitem(last=False)
    return found


def mesif_hits(line: Ints, user: Ints, caches: int, capacity: int) -> Ints:
    """What each read by cache ``user`` finds there: 0 nothing, 1 Exclusive, 2 Shared or Forward.

    A line comes Exclusive if no other cache has it, else both have it Shared or Forward from then
    on. Who loses a line tells nobody: the last copy stays Shared.
    """
    held: list[OrderedDict[int, bool]] = [OrderedDict() for _ in range(caches)]
    found = np.zeros(len(line), dtype=np.int64)
    for at, (used, by) in enumerate(zip(line.tolist(), user.tolist(), strict=True)):
        own = held[by]
        if used in own:
            found[at] = 2 if own[used] else 1
            own.move_to_end(used)
            continue
        shared = False
        for cache in held:
            if used in cache:
                cache[used] = shared = True
        own[used] = shared
        if len(own) > capacity:
            own.popitem(last=False)
    return found


def victim_hits(line: Ints, user: Ints, caches: int, capacity: int, below: int) -> Ints:
    """What each read by private cache ``user`` of ``capacity`` lines finds: 0 nothing, 1 its line
    in that cache, 2 in another one or in the cache ``below``, of so many lines.

    What a private cache drops goes there unless another one has it; who finds it there takes it.
    """
    held: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(caches)]
    dropped: OrderedDict[int, None] = OrderedDict()
    found = np.zeros(len(line), dtype=np.int64)
    for at, (used, by) in enumerate(zip(line.tolist(), user.tolist(), strict=True)):
        own = held[by]
        if used in own:
            found[at] = 1
            own.move_to_end(used)
            continue
        if used in dropped or any(used in cache for cache in held):
            found[at] = 2
            dropped.pop(used, None)
        own[used] = None
        if len(own) > capacity:
            victim, _ = own.popitem(last=False)
            if not any(victim in cache for cache in held):
                dropped[victim] = None
                if len(dropped) > below:
                    dropped.popitem(last=False)
    return found


def mean_interval(happened: Flags, of: Flags) -> tuple[float, float]:
    """How often it happened among ``of``: the mean, and half the width of its interval.

    By batch means, since uses that follow each other depend on each other.
    """
    parts = [
        float(h[o].mean())
        for h, o in zip(np.array_split(happened, BATCHES), np.array_split(of, BATCHES), strict=True)
    ]
    factor = float(stats.t.ppf((1.0 + CONFIDENCE) / 2.0, BATCHES - 1))
    return float(np.mean(parts)), factor * float(stats.sem(parts))
