"""How a processor goes now slower, now faster, by the rules that the kernel has too
(sim/machine/disturbances/kernel/paces.hpp)."""

from __future__ import annotations

from collections.abc import Sequence

from ...._kernel import Stream
from ...reference.servers import rounded
from ..facts import ProcessorPaces


class PacesOf:
    """Of one processor: each pace is drawn when the one before is over."""

    def __init__(self, paces: ProcessorPaces, stream: Stream) -> None:
        self.paces, self.stream = paces, stream
        self.slowdown, self.ends_ps = 1.0, 0

    def taken_ps(self, now_ps: int, work_ps: int) -> int:
        """What work takes that begins now; its pace is that of its beginning."""
        while self.ends_ps <= now_ps:
            share = self.stream.uniform()
            self.slowdown = interpolated(share, self.paces.share, self.paces.slowdown)
            self.ends_ps += max(rounded(self.stream.exponential(self.paces.lasts_ps)), 1)
        return rounded(work_ps * self.slowdown)


def interpolated(at: float, x: Sequence[float], y: Sequence[float]) -> float:
    """On straight lines between the points, as the kernel does it."""
    k = 1
    while k + 1 < len(x) and x[k] < at:
        k += 1
    return y[k - 1] + (y[k] - y[k - 1]) * (at - x[k - 1]) / (x[k] - x[k - 1])
