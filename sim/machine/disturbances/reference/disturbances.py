"""Interruptions of a machine's cores by others, by the rules of ../kernel/disturbances.hpp."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ...._kernel import Stream
from ....kernel.streams import stream
from ...reference.servers import rounded
from .. import facts
from ..facts import STREAM, Interruptions


@dataclass
class _Core:
    """``next_ps``: when its next interruption begins; ``until_ps``: when the one before ended."""

    stream: Stream
    next_ps: int
    until_ps: int = 0


class Disturbances:
    """Of cores that each draw from a stream of their own; of none by default: nobody disturbs."""

    def __init__(
        self, interruptions: Interruptions | None = None, streams: Sequence[Stream] = ()
    ) -> None:
        self.interruptions = interruptions
        self.cores: list[_Core] = []
        if interruptions is not None:
            self.cores = [
                _Core(stream, rounded(stream.exponential(interruptions.every_ps)))
                for stream in streams
            ]

    def stretched_ps(self, core: int, now_ps: int, end_ps: int) -> int:
        """When work of a core does end that begins now and would end at ``end_ps``: after the
        interruption under way, and as much later as others come before its end."""
        if not self.cores:
            return end_ps
        state = self.cores[core]
        while state.next_ps < now_ps:
            self._interrupt(state)
        end_ps += max(state.until_ps - now_ps, 0)
        while state.next_ps < end_ps:
            end_ps += self._interrupt(state)
        return end_ps

    def _interrupt(self, core: _Core) -> int:
        """How long the next one lasts."""
        assert self.interruptions is not None
        kind = bisect_right(self.interruptions.share, core.stream.uniform())
        lasts_ps = rounded(self.interruptions.length_ps[kind])
        core.until_ps = core.next_ps + lasts_ps
        mean_ps = self.interruptions.every_ps
        core.next_ps = core.until_ps + rounded(core.stream.exponential(mean_ps))
        return lasts_ps


def disturbances_of(
    disturbances: facts.Disturbances, cores: Sequence[str], seed: int, replication: int
) -> Disturbances:
    """Of a machine's cores by these names, with the streams that the compiled ones draw from."""
    streams = [stream(seed, replication, STREAM.format(core)) for core in cores]
    return Disturbances(disturbances.interruptions, streams)
