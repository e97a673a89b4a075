"""The history of how a table part was used: samples of CPU and of memory throughput.

The source calls it RUH (resource utilisation history): a bounded list, sampled every 100 ms.
"""

from __future__ import annotations

from collections import deque
from math import ceil

from .commands import SAMPLE_S, Floats


class UseHistory:
    """The latest samples of one part, ``longest_s`` back; time before the first counts as zero."""

    def __init__(self, longest_s: float) -> None:
        kept = ceil(longest_s / SAMPLE_S) + 1
        # Running sums, so that an average over any time is a difference.
        self._sums: deque[tuple[float, float]] = deque([(0.0, 0.0)], maxlen=kept)

    def add(self, cpu: Floats, memory_Bps: Floats) -> None:
        """Further samples (S,)."""
        total_cpu, total_Bps = self._sums[-1]
        for threads, Bps in zip(cpu.tolist(), memory_Bps.tolist(), strict=True):
            total_cpu += threads
            total_Bps += Bps
            self._sums.append((total_cpu, total_Bps))

    def average(self, over_s: float) -> tuple[float, float]:
        """CPU (threads) and memory throughput (bytes per second), averaged over the last so many
        seconds.
        """
        samples = max(over_s / SAMPLE_S, 1.0)
        back = min(round(samples), len(self._sums) - 1)
        then, now = self._sums[-1 - back], self._sums[-1]
        return (now[0] - then[0]) / samples, (now[1] - then[1]) / samples
