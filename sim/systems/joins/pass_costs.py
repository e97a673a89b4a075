"""Seconds of single passes and exchanges on a host, between the points that were measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from .facts import JoinFacts, PassCost, Step

Point = tuple[float, float]


class PassCosts:
    """Of a tuple in a pass, and of a message and its counterpart.

    Between measured points in proportion to the logarithm of the size; beyond them as the nearest.
    Messages: in proportion to the size; beyond the last as the last two.
    """

    def __init__(self, facts: JoinFacts) -> None:
        self._passes: dict[str, list[PassCost]] = {}
        for measured in facts.passes:
            self._passes.setdefault(measured.step, []).append(measured)
        self._exchanges = facts.exchanges

    def seconds(self, step: Step, at: float = 1.0, buffer: float | None = None) -> float:
        """Of one tuple or group in that pass."""
        known = self._passes[step]
        if buffer is None:
            return between([(measured.at, measured.time.value) for measured in known], at)
        by_buffer: dict[float, list[Point]] = {}
        for measured in known:
            assert measured.buffer is not None
            by_buffer.setdefault(measured.buffer.value, []).append(
                (measured.at, measured.time.value)
            )
        return between([(size, between(curve, at)) for size, curve in by_buffer.items()], buffer)

    def probe_s(self, inner: float) -> float:
        """Of an outer tuple that is looked up among so many inner ones of its partition."""
        return max(self.seconds("join", inner) - self.seconds("build", inner), 0.0)

    def exchange_s(self, transport: str, operation: str, size: float) -> float:
        """Of one that is sent and one that is received."""
        known = sorted(
            (measured.size.value, measured.time.value)
            for measured in self._exchanges[transport]
            if measured.operation == operation
        )
        upper = next((k for k in range(1, len(known)) if size <= known[k][0]), len(known) - 1)
        if upper < 1 or size <= known[0][0]:
            return known[0][1]
        (x0, y0), (x1, y1) = known[upper - 1], known[upper]
        return max(y0 + (y1 - y0) * (size - x0) / (x1 - x0), 0.0)


def between(points: Iterable[Point], place: float) -> float:
    """Linear in the logarithm of the place; beyond the ends as there."""
    known = sorted(points)
    if place <= known[0][0]:
        return known[0][1]
    for (x0, y0), (x1, y1) in pairwise(known):
        if place <= x1:
            return y0 + (y1 - y0) * math.log(place / x0) / math.log(x1 / x0)
    return known[-1][1]
