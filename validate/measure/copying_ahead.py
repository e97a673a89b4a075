"""Scans whose column is copied ahead by another thread, as a copy engine would; what overlaps."""

from collections.abc import Iterator

import numpy as np

from .bench import Bench, Windows, ends, methods_of

METHODS = methods_of("buffering")
RESULTS = ("direct_ns", "copies_ns", "cached_ns", "overlap_ns")
CHUNKS = (16 << 10, 128 << 10, 1 << 20)
QUICK_CHUNKS = (128 << 10,)
# Of a column that lies in caches, and of one that lies in memory, in last caches.
CACHED_BYTES, LAST_CACHES, MEMORY_BYTES_MAX = 2 << 20, 4, 256 << 20


def measure(bench: Bench) -> Iterator[float]:
    """By chunk and place of the column: times of one whole scan, four ways."""
    from ...engine_native._engine import measure_copied_scan

    start, home = bench.layout.first
    if len(start.cores) < 2:
        return
    chunks = QUICK_CHUNKS if bench.effort.quick else CHUNKS
    last_bytes = max(start.last_cache_bytes, 8 << 20)
    sizes = {
        "cache": CACHED_BYTES,
        "memory": min(LAST_CACHES * last_bytes, MEMORY_BYTES_MAX, home.memory_bytes // 4),
    }
    rounds = 3 if bench.effort.quick else 7
    for at, (place, size) in enumerate(sizes.items()):
        for chunk in chunks:
            found = measure_copied_scan(size, chunk, rounds + 1, *start.cores[:2])
            for (name, method), times in zip(METHODS.items(), RESULTS, strict=True):
                # The first round meets pages and caches that nobody has used.
                ns, disturbed = np.array(found[times][1:], dtype=np.float64).T
                windows = Windows(np.ones((len(ns), 1)), ns[:, None], disturbed > 0)
                samples = windows.ns_each()
                bench.add(name, samples, "time", method, size=size, buffer=chunk,
                          place=place, **ends(start, home))  # fmt: skip
        yield (at + 1) / len(sizes)


def double_buffered_s(copies_s: float, scan_s: float, chunks: float) -> float:
    """Of both alone the time together: the first chunk is copied, the last one scanned, between
    these each takes as long as the longer of both."""
    copy_s, scanned_s = copies_s / chunks, scan_s / chunks
    return copy_s + (chunks - 1.0) * max(copy_s, scanned_s) + scanned_s
