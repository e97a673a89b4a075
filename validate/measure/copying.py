"""Costs of a copy by size: the same memory repeatedly, or different memory each time."""

from collections.abc import Iterator

from .bench import Bench, ends

IN_CACHE = "memcpy of the same bytes to the same place"
SPREAD = "memcpy from and to ever other places of two blocks that no cache holds"
SIZES = (64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)
QUICK_SIZES = (64, 4 << 10, 1 << 20)


def measure(bench: Bench) -> Iterator[float]:
    """Time of a copy by size, in cache and out of it."""
    from ...engine_native._engine import copies

    start, home = bench.layout.first
    source = bench.arena(home)
    target = bench.block(home, source.size_bytes // 2, what="copies")
    yield 0.3
    sizes = QUICK_SIZES if bench.effort.quick else SIZES
    for at, size in enumerate(sizes):
        for place, method in (("cache", IN_CACHE), ("memory", SPREAD)):
            work = copies(source, target, size, place == "memory")
            samples = bench.run([(start.cores[0], work)], limit_s=0.2).ns_each()
            bench.add("copy", samples, "time", method, size=size, place=place, **ends(start, home))
        yield 0.3 + 0.7 * (at + 1) / len(sizes)
