"""Estimates how long an event-driven plane takes to run, from its first moments."""

from __future__ import annotations

import time
from typing import Protocol

# A probe runs for at most this part of the horizon, in about so much time: what ends by then is
# short.
PART_MAX, PROBE_S = 1 / 64, 0.1
FIRST_PART, FIRST_MAX_S = 2.0**-24, 1e-3


class EventDriven(Protocol):
    """A plane that runs event by event."""

    def advance(self, until_s: float, /) -> None:
        """Runs until that time."""


def expected_time_s(plane: EventDriven, horizon_s: float) -> float:
    """From the simulated time per second of a probe, once the first moments are over."""
    until_s, took_s = min(horizon_s * FIRST_PART, FIRST_MAX_S), 0.0
    simulated_s = until_s
    plane.advance(until_s)
    while took_s < PROBE_S and until_s < horizon_s * PART_MAX:
        began = time.perf_counter()
        plane.advance(2.0 * until_s)
        took_s, simulated_s, until_s = time.perf_counter() - began, until_s, 2.0 * until_s
    return took_s / simulated_s * horizon_s
