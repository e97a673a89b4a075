"""What the kernel takes for memory that a process maps, touches first and unmaps."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from .bench import HUGE_PAGE_BYTES, Bench, Floats, Samples, methods_of

PAGE_BYTES, SMALL_BYTES, HUGE_BYTES = 4096, 4 << 20, 64 << 20
TIMES, QUICK_TIMES, SHORT = 50, 15, 40  # short stretches are mapped that many times as often
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def measure(bench: Bench) -> Iterator[float]:
    """Facts of the kernel: touches and unmapping of pages, by two sizes of pages and stretches."""
    from ...engine_native._engine import stretches

    node, times = bench.layout.starts[0], QUICK_TIMES if bench.effort.quick else TIMES
    methods, cpus = methods_of("mapping"), node.cores[:2]

    def timed(on: Sequence[int], size: int, *, huge: bool = False, rounds: int = times) -> Floats:
        return np.array(stretches(list(on), size, huge, rounds)).T

    def add(name: str, ns: Floats) -> None:
        bench.add(name, Samples(ns), "time", methods[name], node=node.id)

    pages = SMALL_BYTES // PAGE_BYTES
    _, touch_ns, unmap_ns = timed(cpus[:1], SMALL_BYTES)
    add("page_fault", touch_ns / pages)
    add("page_unmap", unmap_ns / pages)
    yield 0.4
    map_ns, _, alone_ns = timed(cpus[:1], PAGE_BYTES, rounds=SHORT * times)
    add("mapping", map_ns + alone_ns - float(np.median(unmap_ns)) / pages)
    yield 0.6
    if len(cpus) > 1:
        _, _, together_ns = timed(cpus, PAGE_BYTES, rounds=SHORT * times)
        add("interrupt", np.maximum(together_ns - float(np.median(alone_ns)), 1.0))
    yield 0.8
    if HUGE_PAGES.exists() and "[never]" not in HUGE_PAGES.read_text():
        _, touch_ns, _ = timed(cpus[:1], HUGE_BYTES, huge=True)
        add("huge_page_fault", touch_ns / (HUGE_BYTES // HUGE_PAGE_BYTES))
    yield 1.0
