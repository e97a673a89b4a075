"""Scans whose column is copied ahead: by a data streaming accelerator where Linux lets us use one,
else by another thread, as a copy engine would; what overlaps of both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .bench import Bench, Samples, Windows

THREAD = "a thread"
METHODS = {
    "direct-scan": "a column scanned in place",
    "copies-ahead": f"{THREAD} copies it chunk by chunk into two buffers; no thread scans them",
    "cached-scan": "the same number of chunks scanned in one warm buffer",
    "copied-scan": "scanned in the buffers, each copied while the other is scanned",
}
RESULTS = ("direct_ns", "copies_ns", "cached_ns", "overlap_ns")
CHUNKS = (16 << 10, 128 << 10, 1 << 20)
QUICK_CHUNKS = (128 << 10,)
# Of a column that lies in caches, and of one that lies in memory, in last caches.
CACHED_BYTES, LAST_CACHES, MEMORY_BYTES_MAX = 2 << 20, 4, 256 << 20
# Linux's driver of Data Streaming Accelerators shows each one and its queues here; files of queues.
DSA = Path("/sys/bus/dsa/devices")
QUEUES = Path("/dev/dsa")


def dsa_devices(listed: Path = DSA) -> tuple[str, ...]:
    """Names of the data streaming accelerators that Linux shows, such as ``dsa0``."""
    if not listed.is_dir():
        return ()
    names = (path.name for path in listed.iterdir())
    return tuple(sorted(name for name in names if name[:3] == "dsa" and name[3:].isdigit()))


def dsa_queue(listed: Path = DSA, files: Path = QUEUES) -> Path | None:
    """The file of the first work queue that is enabled for users, and ours to use."""
    for queue in sorted(listed.glob("wq*.*")):
        file = files / queue.name
        of_users = _attribute(queue / "state") == "enabled" and _attribute(queue / "type") == "user"
        if of_users and os.access(file, os.R_OK | os.W_OK):
            return file
    return None


def _attribute(attribute: Path) -> str:
    try:
        return attribute.read_text("utf-8").strip()
    except OSError:
        return ""


def measure(bench: Bench) -> Iterator[float]:
    """By chunk and place of the column: times of one whole scan, four ways."""
    devices, queue = dsa_devices(), dsa_queue()
    if devices and queue is None:
        bench.warn(
            f"buffering: this host has {', '.join(devices)}, but no work queue that is enabled for "
            "users and may be written to (accel-config makes one); a thread copies instead"
        )
    start = bench.layout.starts[0]
    if len(start.cores) < 2:
        return
    home = start if start.memory_bytes else bench.layout.homes[0]
    chunks = QUICK_CHUNKS if bench.effort.quick else CHUNKS
    last_bytes = max(start.last_cache_bytes, 8 << 20)
    sizes = {
        "cache": CACHED_BYTES,
        "memory": min(LAST_CACHES * last_bytes, MEMORY_BYTES_MAX, home.memory_bytes // 4),
    }
    rounds = 3 if bench.effort.quick else 7
    for at, (place, size) in enumerate(sizes.items()):
        for chunk in chunks:
            found, queue = _measured(bench, queue, size, chunk, rounds + 1)
            by = THREAD if queue is None else f"{queue.name}, a data streaming accelerator's queue,"
            for (name, method), times in zip(METHODS.items(), RESULTS, strict=True):
                # The first round meets pages and caches that nobody has used.
                samples = _undisturbed(found[times][1:])
                bench.add(name, samples, "time", method.replace(THREAD, by), size=size,
                          buffer=chunk, place=place, node=start.id, home=home.id)  # fmt: skip
        yield (at + 1) / len(sizes)


def _measured(
    bench: Bench, queue: Path | None, size: int, chunk: int, rounds: int
) -> tuple[dict[str, Any], Path | None]:
    """Times of all rounds, and whose they are: a queue that fails is left for good."""
    from ...engine_native._engine import measure_copied_scan

    scanner, copier = bench.layout.starts[0].cores[:2]
    if queue is not None:
        try:
            return measure_copied_scan(size, chunk, rounds, scanner, copier, str(queue)), queue
        except RuntimeError as failure:
            bench.warn(f"buffering: {failure}; a thread copies instead")
    return measure_copied_scan(size, chunk, rounds, scanner, copier), None


def _undisturbed(rounds: Sequence[tuple[int, bool]]) -> Samples:
    """Those in which nobody took a processor; too few of them: all."""
    elapsed_ns, disturbed = np.array(rounds, dtype=np.float64).T
    return Windows(np.ones((len(rounds), 1)), elapsed_ns[:, None], disturbed > 0).ns_each()


def double_buffered_s(copies_s: float, scan_s: float, chunks: float) -> float:
    """Of both alone the time together: the first chunk is copied, the last one scanned, between
    these each takes as long as the longer of both."""
    copy_s, scanned_s = copies_s / chunks, scan_s / chunks
    return copy_s + (chunks - 1.0) * max(copy_s, scanned_s) + scanned_s
