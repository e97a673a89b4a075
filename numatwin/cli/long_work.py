"""Says how long work takes: long work before it begins, or once enough of it is done to tell."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..sim.run.scenario import Scenario
    from ..sim.studies.designs import Design
    from ..sim.studies.evaluate import Runs

FORECAST_AFTER_S, FORECAST_MIN_S = 10.0, 60.0
ENDLESS_S = 30 * 86_400.0
PROBES = 3  # points of a grid: the first, the middle one, the last


def announce(expected_s: float, work: str, advice: str) -> None:
    """Says of long work how long it takes; raises InputError where it takes more than a month."""
    from ..inputs import InputError

    if expected_s >= ENDLESS_S:
        raise InputError(
            f"this would take about {long_time(expected_s)}: {work} ({advice})",
            expected=f"at most {long_time(ENDLESS_S)}",
        )
    if expected_s >= FORECAST_MIN_S:
        print(
            f"numatwin: this takes about {long_time(expected_s)}: {work} ({advice})",
            file=sys.stderr,
        )


def announce_run(scenario: Scenario, advice: str) -> None:
    """The same of one run, which is played event by event."""
    from ..inputs.quantities import time_text
    from ..sim.run.expected_work import expected_wall_s

    horizon = time_text(scenario.horizon_s)
    announce(expected_wall_s(scenario), f"{scenario.statistics.replications} × {horizon}", advice)


def announce_points(runs: Runs, design: Design, left: int, jobs: int | None) -> None:
    """The same of ``left`` runs of a sweep or study, where they are played event by event; some of
    ``design`` tell how long one takes.
    """
    import joblib

    from ..inputs import DescriptionError, InputError
    from ..sim.run.expected_work import expected_cpu_s
    from ..sim.run.real_planes import DRAWING_PLANES

    tried = []
    for point in sorted({k * (design.count - 1) // (PROBES - 1) for k in range(PROBES)}):
        try:
            scenario = runs.base.load(*runs.settings(point, design.of(point)))
            if scenario.plane not in DRAWING_PLANES:
                return
            tried.append(expected_cpu_s(scenario))
        except (InputError, DescriptionError):
            continue  # its row will say so
    if tried:
        each_s, workers = sum(tried) / len(tried), jobs or joblib.effective_n_jobs(-1)
        announce(
            each_s * left / min(workers, left),
            f"{left:,} runs, on average {long_time(each_s)} each",
            "a shorter horizon, fewer replications or fewer points change that",
        )


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
