"""Two processors that are now near each other, now far apart: a hypervisor moves them.

The rules that the kernel's sim/machine/disturbances/kernel/apart.hpp follows too.
"""

from __future__ import annotations

from ...._kernel import Stream
from ...reference.servers import rounded


class Distance:
    """Of the two, as time goes on."""

    def __init__(self, near_ps: float, apart_ps: float, stream: Stream) -> None:
        self.near_ps, self.apart_ps, self.stream = near_ps, apart_ps, stream
        self.apart = stream.uniform() * (near_ps + apart_ps) < apart_ps
        self.until_ps = self._stay_ps()

    def is_apart(self, now_ps: int) -> bool:
        """Whether they are just then."""
        while self.until_ps <= now_ps:
            self.apart = not self.apart
            self.until_ps += self._stay_ps()
        return self.apart

    def _stay_ps(self) -> int:
        mean_ps = self.apart_ps if self.apart else self.near_ps
        return rounded(self.stream.exponential(mean_ps))
