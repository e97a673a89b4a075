"""Hardware events of a process's threads, in user mode, where the kernel permits to count them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ...engine_native.memory_traffic import COUNT, NoCounters, opened, reason

HARDWARE = 0  # PERF_TYPE_HARDWARE, and its events
EVENTS = {"cycles": 0, "instructions": 1, "cache_misses": 3}


class ThreadEvents:
    """Counters of threads, each since it was first seen, until ``close``; raises NoCounters."""

    def __init__(self, threads: Iterable[int]) -> None:
        self._open: dict[int, dict[str, int]] = {}
        self._ended = dict.fromkeys(EVENTS, 0.0)
        try:
            for thread in threads:
                self._open[thread] = self._counters(thread)
        except OSError as failure:
            self.close()
            raise NoCounters(f"instructions and cache misses: {reason(failure, 2)}") from None

    def follow(self, threads: Iterable[int]) -> None:
        """Count those that are new, too."""
        for thread in set(threads) - self._open.keys():
            try:
                self._open[thread] = self._counters(thread)
            except OSError:
                self._open[thread] = {}  # it has ended

    def counts(self) -> dict[str, float]:
        """So far, of all threads."""
        total = dict(self._ended)
        for counters in self._open.values():
            for name, descriptor in counters.items():
                count, enabled, running = COUNT.unpack(os.read(descriptor, COUNT.size))
                total[name] += count * (enabled / running if running else 0.0)
        return total

    def close(self) -> None:
        """Ends counting."""
        for counters in self._open.values():
            for descriptor in counters.values():
                os.close(descriptor)
        self._open = {}

    @staticmethod
    def _counters(thread: int) -> dict[str, int]:
        found: dict[str, int] = {}
        try:
            for name, event in EVENTS.items():
                found[name] = opened(HARDWARE, event, thread=thread)
        except OSError:
            for descriptor in found.values():
                os.close(descriptor)
            raise
        return found
