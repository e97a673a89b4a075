"""Memory and processors of this host that a run may use."""

from __future__ import annotations

import os
from pathlib import Path

from ._engine import host_facts

SHARED_MEMORY = Path("/dev/shm")
SHARE = 0.8  # of what is free, a run may take so much


def free_bytes() -> int:
    """Memory that may be had without swapping, within the limits of this process's groups."""
    return host_facts()["available_bytes"]


def free_shared_bytes() -> int:
    """Of POSIX shared memory."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def transparent_huge_bytes() -> int | None:
    """Of this process's memory, what lies in transparent huge pages; None where nobody tells."""
    for line in _lines(Path("/proc/self/smaps_rollup")):
        name, _, value = line.partition(":")
        if name == "AnonHugePages":
            return int(value.split()[0]) * 1024
    return None


def processors() -> int:
    """Hardware threads that this process may run on."""
    return len(os.sched_getaffinity(0))


def cpu_ns(pid: int) -> tuple[int, int] | None:
    """The time that a process ran, and that it waited for a processor; None where it is gone."""
    try:
        # As few calls as can be: it is asked while the processes run.
        file = os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            ran, waited, *_ = os.read(file, 256).split()
        finally:
            os.close(file)
    except (OSError, ValueError):
        return None
    return int(ran), int(waited)


def threads_waited_ns() -> int:
    """How long this process's threads have waited for a processor, together."""
    stats = map(_lines, Path("/proc/self/task").glob("*/schedstat"))
    return sum(int(lines[0].split()[1]) for lines in stats if lines)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
