"""Others' turns on a processor, by the rules of ../kernel/turns.hpp."""

from __future__ import annotations

from bisect import bisect_right

from ...._kernel import Stream, TurnSetup
from ...reference.servers import rounded
from ..facts import Turns


class ProcessorTurns:
    """Of one processor. The next one is drawn when the one before has been met."""

    def __init__(self, turns: Turns | TurnSetup, stream: Stream) -> None:
        self.turns, self.stream = turns, stream
        self.taken_until_ps = 0
        self.next_ps = rounded(stream.exponential(turns.every_ps))

    def there_ps(self, now_ps: int) -> int:
        """When the processor is there: now, or at the end of the turn that is under way."""
        while self.next_ps < now_ps:
            self._take()
        return max(now_ps, self.taken_until_ps)

    def moved_ps(self, end_ps: int, by_ps: int | None = None) -> int:
        """The end of work that began when the processor was there, moved by the turns that begin
        before it and ``by_ps``."""
        while self.next_ps < (end_ps if by_ps is None else min(end_ps, by_ps)):
            end_ps += self._take()
        return end_ps

    def _take(self) -> int:
        """How long the next one lasts."""
        kind = bisect_right(self.turns.share, self.stream.uniform())
        lasts_ps = rounded(self.turns.length_ps[kind])
        self.taken_until_ps = self.next_ps + lasts_ps
        self.next_ps = self.taken_until_ps + rounded(self.stream.exponential(self.turns.every_ps))
        return lasts_ps
