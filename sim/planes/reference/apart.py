"""Two processors that are now near each other, now far apart: a hypervisor moves them.

The rules that the kernel's sim/kernel/apart.hpp follows too.
"""

from __future__ import annotations

from ..._kernel import Stream
from ...commits.apart import Apart
from .servers import rounded


class Distance:
    """Of the two, as time goes on."""

    def __init__(self, setup: Apart, stream: Stream) -> None:
        self.setup, self.stream = setup, stream
        whole_ps = setup.near_ps + setup.apart_ps
        self.apart = stream.uniform() * whole_ps < setup.apart_ps
        self.until_ps = self._stay_ps()

    def is_apart(self, now_ps: int) -> bool:
        """Whether they are just then."""
        while self.until_ps <= now_ps:
            self.apart = not self.apart
            self.until_ps += self._stay_ps()
        return self.apart

    def _stay_ps(self) -> int:
        mean_ps = self.setup.apart_ps if self.apart else self.setup.near_ps
        return rounded(self.stream.exponential(mean_ps))
