"""Says of long work how much longer it takes, once enough of it is done to tell."""

from __future__ import annotations

import sys
import time
from typing import Protocol

FORECAST_AFTER_S, FORECAST_MIN_S = 10.0, 60.0


class Progress(Protocol):
    """Takes the part of the work that is done, 0 to 1, and what is being done."""

    def __call__(self, share: float, part: str | None = None, /) -> None:
        """``part`` None: as before."""


def forecast(what: str) -> Progress:
    """Says once of long work how much longer it will take."""
    began, announced = time.monotonic(), False

    def tell(fraction: float, part: str | None = None, /) -> None:
        nonlocal announced
        elapsed_s = time.monotonic() - began
        if announced or elapsed_s < FORECAST_AFTER_S or not 0.0 < fraction < 1.0:
            return
        left_s = elapsed_s * (1.0 / fraction - 1.0)
        announced = left_s >= FORECAST_MIN_S
        if announced:
            print(
                f"numatwin: {part or what}: {fraction:.1%} done, about {long_time(left_s)} to go",
                file=sys.stderr,
            )

    return tell


def long_time(time_s: float) -> str:
    """``0.3 s``, ``90 s``, ``12 min``, ``30 h``, ``3 days``."""
    for unit, length_s in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if time_s >= 2 * length_s:
            return f"{time_s / length_s:,.0f} {unit}"
    return f"{time_s:.0f} s" if time_s >= 2 else f"{time_s:.2g} s"
