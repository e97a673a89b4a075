"""The simulated caches of a guest: sets, ways, and the processors that use each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..machine import CacheLevel
from .command_line import topology
from .guest_machine import GuestMachine

ASSUMED_FIRST = CacheLevel(1, 32 * 1024, 1, 64.0, None)
# Where the machine file does not tell. Of the last level, as of a Xeon E5-4640 (hwloc test data,
# 192em64t-24n8c2t).
PRIVATE_WAYS_MIN, LAST_WAYS = 8, 20
# Sets are a power of two, or rows of up to so many, of which so many keep a size to a part in 32.
ROW_SETS, ROWS_MIN = 64, 16
WAYS_MAX = 255  # of cache_sets.hpp


@dataclass(frozen=True)
class PlayedLevel:
    """Caches of one level, all of one shape. ``instance``: the cache of each processor."""

    level: int
    sets: int
    ways: int
    instances: int
    instance: tuple[int, ...]

    @property
    def lines(self) -> int:
        """Lines that one cache holds."""
        return self.sets * self.ways


@dataclass(frozen=True)
class PlayedCaches:
    """All levels, first level first; empty where the machine file tells of no caches.

    ``cpu_node``: the node of each processor, by its position in the machine. ``notes``: what
    differs from the machine file, or was assumed. ``exclusive``: the last level cannot include
    those above it, and has the size of them all.
    """

    levels: tuple[PlayedLevel, ...]
    cpu_node: tuple[int, ...]
    line_bytes: int
    notes: tuple[str, ...]
    exclusive: bool = False

    @staticmethod
    def none(guest: GuestMachine) -> PlayedCaches:
        """No caches, where accesses alone are counted."""
        return PlayedCaches((), processor_nodes(guest), 64, ())


def processor_nodes(guest: GuestMachine) -> tuple[int, ...]:
    """The node, by its position in the machine, of each of QEMU's processors."""
    places = topology(guest)
    numbers = [k for k in range(len(guest.nodes)) if guest.node(k).threads]
    return tuple(
        guest.nodes[number] for number in numbers for _ in range(places.cores * places.threads)
    )


def shape_of(size_bytes: float, line_bytes: int, ways_min: int) -> tuple[int, int]:
    """(sets, ways) of a cache: the most sets, a power of two, that leave so many ways or more.

    The size is kept to half a way: to a part in sixteen, where there are eight.
    """
    lines = max(ways_min, round(size_bytes / line_bytes))
    sets = 1 << ((lines // ways_min).bit_length() - 1)
    return sets, min(WAYS_MAX, round(lines / sets))


def shape_with(ways: int, size_bytes: float, line_bytes: int) -> tuple[int, int]:
    """(sets, ways) of a cache of so many ways, whose size is kept to a part in 32; of fewer than
    sixteen sets, as of ``shape_of``.
    """
    ways = min(ways, WAYS_MAX)
    sets = size_bytes / line_bytes / ways
    if sets < ROWS_MIN:
        return shape_of(size_bytes, line_bytes, ways)
    power = 1 << (int(sets).bit_length() - 1)
    row = power if power == sets else min(ROW_SETS, power // ROWS_MIN)
    return round(sets / row) * row, ways


def played_caches(guest: GuestMachine) -> PlayedCaches:
    """The caches of a guest's processors, as its machine file tells them."""
    cpu_nodes = processor_nodes(guest)
    kinds = {guest.machine.nodes[node].caches for node in cpu_nodes}
    positions = sorted(set(cpu_nodes))
    node = guest.machine.nodes[positions[0]]
    line_bytes = int(node.caches[0].line_bytes) if node.caches else 64
    if not node.caches:
        return PlayedCaches((), cpu_nodes, line_bytes, ("no caches are known: none is simulated",))
    notes = []
    if len(kinds) > 1:
        notes.append(f"all nodes have the caches of node {node.id}")
    caches = list(node.caches)
    if len(caches) == 1:
        caches.insert(0, ASSUMED_FIRST)
        notes.append("a first-level cache of 32 KiB is assumed")
    size_bytes = [cache.size_bytes for cache in caches]
    if node.exclusive:
        size_bytes[-1] += node.bytes_above_last_cache
        notes.append(
            "the last-level cache is smaller than those above it together, and cannot include "
            "them: it is simulated with the size of all levels, and evicts nothing from the others"
        )
    shapes = [
        shape_with(cache.ways, size, line_bytes)
        if cache.ways
        else shape_of(size, line_bytes, PRIVATE_WAYS_MIN)
        for cache, size in zip(caches[:-1], size_bytes, strict=False)
    ]
    shapes.append(shape_with(caches[-1].ways or LAST_WAYS, size_bytes[-1], line_bytes))
    notes += _notes_on_ways(caches, [ways for _, ways in shapes])
    levels = tuple(
        _level(cpu_nodes, topology(guest).threads, cache, shape)
        for cache, shape in zip(caches, shapes, strict=True)
    )
    return PlayedCaches(levels, cpu_nodes, line_bytes, tuple(notes), node.exclusive)


def _notes_on_ways(caches: list[CacheLevel], played: list[int]) -> Iterator[str]:
    assumed = [
        f"{ways} ways of L{cache.level}"
        for cache, ways in zip(caches, played, strict=True)
        if cache.ways is None
    ]
    if assumed:
        yield f"{', '.join(assumed)} are assumed"
    for cache, ways in zip(caches, played, strict=True):
        if cache.ways not in (None, ways):
            yield f"L{cache.level} is simulated with {ways} ways instead of {cache.ways}"
    yield "replacement is LRU"


def _level(
    cpu_nodes: tuple[int, ...], threads_per_core: int, cache: CacheLevel, shape: tuple[int, int]
) -> PlayedLevel:
    """Instances are counted over all nodes; processors of a core are neighbours."""
    first = 0
    instance: list[int] = []
    for position in dict.fromkeys(cpu_nodes):
        count = cpu_nodes.count(position)
        of_node = [k // threads_per_core // cache.shared_by_cores for k in range(count)]
        instance += [first + k for k in of_node]
        first += of_node[-1] + 1
    sets, ways = shape
    return PlayedLevel(cache.level, sets, ways, first, tuple(instance))
