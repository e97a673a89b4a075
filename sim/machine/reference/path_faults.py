"""Paths between machines that fail for a time, as ``kernel/path_faults.hpp``."""

from __future__ import annotations

from collections.abc import Sequence

from ..._kernel import PathFault, Stream, Transport


class PathFaults:
    """Those that are on, and when a transport sends again what they lose."""

    def __init__(self, transport: Transport | None = None, losses: Stream | None = None) -> None:
        self.transport = transport
        self.losses = losses
        self.active: list[PathFault] = []

    def wait_ps(self, tries: int) -> int:
        """Until the next try, after so many that failed."""
        assert self.transport is not None
        transport = self.transport
        turn = tries % (transport.retries + 1)
        wait_ps = min(transport.timeout_ps * int(transport.growth**turn), transport.longest_ps)
        return wait_ps + (transport.reconnect_ps if turn == transport.retries else 0)

    def factor(self, sender: int, receiver: int) -> int:
        """How many times as long a message between two machines takes."""
        product = 1
        for fault in self._between(sender, receiver):
            product *= fault.factor
        return product

    def loses(self, sender: int, receiver: int) -> bool:
        """Whether the message is lost; draws where a path is lossy."""
        lost = False
        for fault in self._between(sender, receiver):
            if fault.loss >= 1:
                lost = True
            elif fault.loss > 0:
                assert self.losses is not None
                lost = self.losses.uniform() < fault.loss or lost
        return lost

    def late_ps(self, sender: int, receiver: int) -> int:
        """By how much the message is late; draws where some are."""
        late_ps = 0
        for fault in self._between(sender, receiver):
            if fault.late > 0:
                assert self.losses is not None
                if self.losses.uniform() < fault.late:
                    late_ps = max(late_ps, fault.late_ps)
        return late_ps

    def _between(self, sender: int, receiver: int) -> Sequence[PathFault]:
        return [f for f in self.active if f.side[sender] + f.side[receiver] == 3]
