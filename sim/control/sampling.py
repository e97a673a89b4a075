"""Samples a random plane at regular times: its time series, and the start of counting."""

import time
from collections.abc import Generator, Mapping

import numpy as np
import simpy

from ..planes.outcome import Series
from ..planes.plane import RandomPlane, is_real_time

INTERVALS = 1_000
REAL_LOOK_EVERY_S = 0.02  # who looks at a real engine takes time from it


class Sampling:
    """A process of the control plane; ``series`` are the rates per interval, once it has ended.

    The plane starts to count at ``warm_up_s``, where that is above 0. Times are whole nanoseconds,
    as those of the control plane: a very short run, and one in real time, has fewer intervals than
    ``INTERVALS``. Looks at a plane in real time are late at times: its rates are per second that
    went by between two looks.
    """

    def __init__(self, plane: RandomPlane, horizon_s: float, warm_up_s: float) -> None:
        self.plane = plane
        end = round(horizon_s * 1e9)
        self._warm_up = round(warm_up_s * 1e9)
        count = INTERVALS
        self._real = is_real_time(plane)
        self._looked_at_s = 0.0
        if self._real:
            look_s = getattr(plane, "LOOK_EVERY_S", REAL_LOOK_EVERY_S)
            count = min(count, max(int(horizon_s / look_s), 1))
        edges = {round(end * k / count) for k in range(1, count)} | {self._warm_up}
        self._edges = sorted(edge for edge in edges if 0 < edge < end)
        self._times_s = [0.0]
        self._before: Mapping[str, float] = {}
        self._rows: list[dict[str, float]] = []

    def process(self, clock: simpy.Environment) -> Generator[simpy.Event, None, None]:
        """Looks at all times but the last."""
        if self._real:
            self.plane.advance(0.0)  # its time starts
        self._before = self._totals()
        for edge in self._edges:
            yield clock.timeout(edge - clock.now)
            self.plane.advance(edge / 1e9)
            self._look(edge / 1e9)
            if edge == self._warm_up:
                self.plane.start_counting()
                self._before = self._totals()

    def series(self, horizon_s: float) -> Series:
        """All that was seen, once the plane has reached the horizon."""
        self._look(horizon_s)
        times_s = np.array(self._times_s)
        columns = dict.fromkeys(name for row in self._rows for name in row)
        return {
            "time_s": times_s[:-1],
            "duration_s": np.diff(times_s),
            **{name: np.array([row.get(name, 0.0) for row in self._rows]) for name in columns},
        }

    def _look(self, time_s: float) -> None:
        length_s, looked_at_s = time_s - self._times_s[-1], self._looked_at_s
        totals, before = self._totals(), self._before
        if self._real:
            length_s = max(self._looked_at_s - looked_at_s, 1e-9)
        row = {name: (total - before.get(name, 0.0)) / length_s for name, total in totals.items()}
        if self._real:  # what is in use was counted a little later than its sample ends
            row |= {
                name: min(use, 1.0) for name, use in row.items() if name.startswith("utilisation/")
            }
        self._rows.append(row)
        self._times_s.append(time_s)
        self._before = totals

    def _totals(self) -> Mapping[str, float]:
        self._looked_at_s = time.monotonic()
        return dict(self.plane.totals())
