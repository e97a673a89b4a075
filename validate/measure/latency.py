"""Latency of dependent loads by size of the working set, by node pair, and in small pages; rates of
independent ones."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .bench import LINE_BYTES, Bench, Samples, ends
from .layout import NodeLayout

if TYPE_CHECKING:
    from ...engine_native._engine import Work

CHASE = "dependent loads along a random cycle of lines, in huge pages"
SMALL_CHASE = "dependent loads along a random cycle of lines, in small pages"
RANDOM = "independent loads of random lines, in huge pages"
IN_ORDER = "independent loads of line after line, in huge pages"
SMALL_PAGE_BYTES = 4096
CACHED_BYTES = 16 << 10
WARM_NS = 300_000_000
ADDITIONS = (32, 64)  # that the engine has loops for
# Others may use a cache or the memory in the middle of a round: that is no fact of the machine.
ROUNDS, ROUNDS_PAIRS_MAX = 3, 4
BEST = f"{CHASE}; the best of {ROUNDS} rounds"
CACHE_LIKE_MEMORY = 0.5
_SMALL_BYTES_MAX = 128 << 20


def measure(bench: Bench) -> Iterator[float]:
    """Sizes, cache levels, pairs of nodes, small pages, random reads."""
    start, home = bench.layout.first
    arena = bench.arena(home)
    yield 0.05
    sizes = _sizes(bench, arena.size_bytes)
    for at, size in enumerate(sizes):
        samples = _chase(bench, start, home, size)
        bench.add("latency", samples, "time", CHASE, size=size, **ends(start, home))
        yield 0.05 + 0.5 * (at + 1) / len(sizes)
    for level, size in level_sizes(bench):
        if size <= arena.size_bytes:
            samples = _best(bench, start, home, size)
            bench.add("cache.latency", samples, "time", BEST, level=level, size=size)
            yield 0.6
    yield from _pairs(bench)
    if not bench.effort.quick:
        yield from _small_pages(bench, start, home)
    _random_reads(bench, start, home)
    _check_levels(bench)
    yield 1.0


def _sizes(bench: Bench, largest: int) -> list[int]:
    """From 4 KiB on, so many points per octave, whole lines, up to the largest."""
    step = 1.0 / bench.effort.octave_points
    count = int(math.log2(largest / 4096) / step + 1e-9) + 1
    return [int(4096 * 2 ** (k * step)) // LINE_BYTES * LINE_BYTES for k in range(count)]


def level_sizes(bench: Bench) -> list[tuple[int, int]]:
    """For each level of cache a working set that lies in it and not in the level before.

    A cycle that is too long for a cache finds next to nothing in it: each line is gone when it
    comes round again, all with least recently used, nearly all with random replacement. Three times
    the level before is enough for that, and as little as can be of a cache that others may use too;
    the geometric mean, where that is less, stays clear of both.
    """
    sizes, before = [], 0.0
    for cache in bench.layout.caches:
        within = min(3 * before, math.sqrt(before * cache.size_bytes))
        size = within if before else cache.size_bytes / 2
        sizes.append((cache.level, int(size) // LINE_BYTES * LINE_BYTES))
        before = cache.size_bytes
    return sizes


def _chase(bench: Bench, start: NodeLayout, home: NodeLayout, size: int) -> Samples:
    from ...engine_native._engine import chase

    lines = bench.cycle(home, size)
    work = chase(bench.arena(home), 0, min(lines, _held_lines(bench)))
    return bench.run([(start.cores[0], work)], limit_s=0.5).ns_each()


def _best(bench: Bench, start: NodeLayout, home: NodeLayout, size: int) -> Samples:
    rounds = [_chase(bench, start, home, size) for _ in range(ROUNDS)]
    return min(rounds, key=lambda samples: (samples.noisy, samples.median))


def _held_lines(bench: Bench) -> int:
    """Lines of the largest cache of a core."""
    caches = bench.layout.caches
    return int(max((cache.size_bytes for cache in caches), default=1 << 20)) // LINE_BYTES


def _pairs(bench: Bench) -> Iterator[float]:
    """Every node's loads from every node's memory."""
    from ...engine_native._engine import chase

    pairs = [(a, b) for a in bench.layout.starts for b in bench.layout.homes]
    few = len(pairs) <= ROUNDS_PAIRS_MAX
    for at, (start, home) in enumerate(pairs):
        size = bench.arena(home).size_bytes
        if few:
            samples = _best(bench, start, home, size)
        else:  # each from another place on: no cache holds what lies there
            lines = bench.cycle(home, size)
            work = chase(bench.arena(home), lines // len(pairs) * at, 1024)
            samples = bench.run([(start.cores[0], work)], limit_s=0.2).ns_each()
        method = BEST if few else CHASE
        bench.add("memory.latency", samples, "time", method, size=size, **ends(start, home))
        yield 0.6 + 0.25 * (at + 1) / len(pairs)


def _small_pages(bench: Bench, start: NodeLayout, home: NodeLayout) -> Iterator[float]:
    """The same working set in small and in huge pages: what is between them are page walks."""
    from ...engine_native._engine import chase

    size = min(bench.arena(home).size_bytes, _SMALL_BYTES_MAX)
    block = bench.block(home, size, huge_pages=False, what="small pages")
    yield 0.87
    lines = block.arrange_cycle(block.size_bytes, seed=1)
    work = chase(block, 0, min(lines, _held_lines(bench)))
    small = bench.run([(start.cores[0], work)], limit_s=0.5).ns_each()
    huge = _chase(bench, start, home, block.size_bytes)
    for samples, page, method in ((small, SMALL_PAGE_BYTES, SMALL_CHASE), (huge, 2 << 20, CHASE)):
        bench.add(
            "page.latency", samples, "time", method, size=block.size_bytes, page=page,
            **ends(start, home),
        )  # fmt: skip
    yield 0.95


def _random_reads(bench: Bench, start: NodeLayout, home: NodeLayout) -> None:
    """Rates of independent loads: of one core, of one with additions in between, of all cores."""
    from ...engine_native._engine import (
        AROUND_ADDITIONS,
        Traffic,
        random_reads,
        spaced_reads,
        spaced_stream,
        stream,
    )

    arena = bench.arena(home)
    lines = 1 << ((arena.size_bytes // LINE_BYTES).bit_length() - 1)
    at = {"size": lines * LINE_BYTES, **ends(start, home)}

    # A hypervisor may map memory anew as it is touched, huge page by huge page.
    bench.run([(start.cores[0], stream(arena, 0, arena.size_bytes, Traffic.READ, 0))],
              limit_s=0.3, window_ns=WARM_NS, wanted=1)  # fmt: skip

    def rates(work: "Work") -> Samples:
        return bench.run([(start.cores[0], work)], limit_s=0.3).rates()

    bench.add("random_reads", rates(random_reads(arena, lines)), "rate", RANDOM, **at)
    for additions in ADDITIONS:
        work = spaced_reads(arena, lines, additions)
        bench.add("spaced_reads", rates(work), "rate", f"{RANDOM}, with additions in between",
                  delay=additions + AROUND_ADDITIONS, **at)  # fmt: skip
    for size in (lines * LINE_BYTES, CACHED_BYTES):
        work = spaced_stream(arena, size // LINE_BYTES)
        bench.add("spaced_stream", rates(work), "rate", f"{IN_ORDER}, with additions in between",
                  delay=ADDITIONS[-1] + AROUND_ADDITIONS, **at | {"size": size})  # fmt: skip
    if len(start.cores) > 1:
        members = [(cpu, random_reads(arena, lines)) for cpu in start.cores]
        together = bench.run(members, limit_s=0.5).rates()
        bench.add(
            "random_reads_together", together, "rate", f"{RANDOM}; all cores of the node at once",
            threads=len(members), **at,
        )  # fmt: skip


def _check_levels(bench: Bench) -> None:
    """Warns of a cache that looks like memory: others use it, or the host shares it out."""
    memory = [m.value.value for m in bench.measurements if m.name == "memory.latency"]
    caches = [m for m in bench.measurements if m.name == "cache.latency"]
    for cache in caches:
        if memory and cache.value.value > CACHE_LIKE_MEMORY * min(memory):
            bench.warn(
                f"noisy host: the L{cache.parameters.level} cache took {cache.value.text()}, "
                "hardly less than memory: others use it, or this host has only a share of it"
            )
