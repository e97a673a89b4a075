"""What cores hand over to each other: lines, descriptors of buffers, parts of batches.

Latencies of lines and how many are under way come from the machine's facts, or from what its engine
was seen to do; how a worker takes part in a hand-over is the engine's own way where it has one.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...inputs import Quantity

if TYPE_CHECKING:
    from .costs import CostModel

Floats = npt.NDArray[np.float64]

# What was measured as nothing is still a time.
TIME_MIN_S = 1e-12


class HandOvers:
    """Costs of hand-overs on the machine of a cost model; arrays are in node order."""

    def __init__(self, costs: CostModel) -> None:
        self._costs, self._engine = costs, costs.engine

    @cached_property
    def line_s(self) -> Floats:
        """(n, n) latency of a line that a core of j hands over to one of i.

        Within a node it comes from the shared cache, or as fast as messages were seen to go there.
        """
        costs = self._costs
        handed = costs.idle_s.copy()
        cached, diagonal = costs.last_cache.latency_s, np.diag_indices_from(handed)
        handed[diagonal] = np.where(cached > 0, cached, handed[diagonal])
        if self._engine is not None and self._engine.message is not None:
            handed[diagonal] = self._engine.message.value / costs.scales.latency
        return handed

    @cached_property
    def slots(self) -> tuple[Floats, Floats]:
        """(n,) lines that one core gets from others at a time, when it streams them: to write them,
        and to read them.

        As many as from memory, or what the engine was seen to do: a line that one core writes and
        another reads takes ``handed_line`` on both together, and the reader ``handed_line_read``.
        """
        seen, streaming, scales = self._engine, self._costs.streaming_misses, self._costs.scales
        if seen is None or seen.handed_line is None:
            return streaming, streaming
        both_s, read = seen.handed_line.value, seen.handed_line_read
        read_s = both_s / 2.0 if read is None else read.value
        write, read_ = (
            np.diag(self.line_s) * scales.latency / max(each_s, TIME_MIN_S)
            for each_s in (both_s - read_s, read_s)
        )
        return write * scales.misses, read_ * scales.misses

    @cached_property
    def read_waits(self) -> float:
        """Waits for a line of another core's of who takes what others have sent, however much.

        0 where they were not measured: then all waits are put to who flushes.
        """
        return self._waits(None if self._engine is None else self._engine.message_read)

    @cached_property
    def part_waits(self) -> float:
        """The same for each header of a part of a batch: where it lies, only the one before it
        tells. Headers of whole batches lie evenly, and are there when they are read.
        """
        return self._waits(None if self._engine is None else self._engine.part_read)

    def _waits(self, time: Quantity | None) -> float:
        """How often one waits for another core's line in that time; 0 if it is not known."""
        if time is None or self._engine is None or self._engine.message is None:
            return 0.0
        return time.value / max(self._engine.message.value, TIME_MIN_S)

    @property
    def beside(self) -> bool:
        """Whether what lines from other cores take comes on top of instructions: so it was measured
        of the native engine. Else the two overlap.
        """
        return self._engine is not None and self._engine.handed_line is not None

    @property
    def exchanged_at_once(self) -> bool:
        """Whether a buffer's descriptor comes to be written at once, as in our engine: nobody can
        change it between a writer's look at it and its exchange.
        """
        return self._engine is not None

    @property
    def flushed_late(self) -> bool:
        """Whether a full buffer waits for the next command that goes there, as in our engine; else
        it is flushed at once.
        """
        return self._engine is not None

    @property
    def own_cached(self) -> bool:
        """Whether what a worker sends to itself stays in its own cache, at no cost beside the
        loops': so it was measured of the native engine.
        """
        return self._engine is not None
