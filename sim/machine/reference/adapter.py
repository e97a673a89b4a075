"""A network adapter, as ``kernel/adapter.hpp``."""

from __future__ import annotations

from typing import NamedTuple

from .servers import Backlog


class Passage(NamedTuple):
    """When the first and the last bits of a message can be at the receiver's adapter."""

    first_bits: int
    last_bits: int


class Adapter:
    """An outgoing and an incoming side, each in order of arrival; cut-through; times in ps."""

    def __init__(self) -> None:
        self.outgoing, self.incoming = Backlog(), Backlog()

    def send(self, now: int, out_ps: int, wire_ps: int) -> Passage:
        """A message is handed over; the outgoing side takes so long for it, then comes the wire."""
        last_bits = self.outgoing.serve(now, out_ps) + wire_ps
        return Passage(last_bits - out_ps, last_bits)

    def receive(self, now: int, in_ps: int, last_bits: int) -> int:
        """Its first bits are here, its last ones can be at ``last_bits``: when the host has it."""
        return max(self.incoming.serve(now, in_ps), last_bits)
