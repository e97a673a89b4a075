"""What the flow plane has simulated since a family of policies was last asked, as samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .commands import SAMPLE_S
from .steady_state import Rates

Floats = npt.NDArray[np.float64]


class Watched:
    """Pieces of time since a family of policies was last asked: begin, length, rates."""

    def __init__(self) -> None:
        self.pieces: list[tuple[float, float, Rates]] = []

    def add(self, begin_s: float, step_s: float, rates: Rates) -> None:
        """One more; while the rates are the same ones, the last piece gets longer."""
        if self.pieces and self.pieces[-1][2] is rates:
            first_s, length_s, _ = self.pieces[-1]
            self.pieces[-1] = (first_s, length_s + step_s, rates)
        else:
            self.pieces.append((begin_s, step_s, rates))

    def samples(self, now_s: float) -> int:
        """S, how many samples of ``SAMPLE_S`` there are."""
        return max(round((now_s - self.pieces[0][0]) / SAMPLE_S), 1)

    def weights(self, now_s: float, samples: int) -> list[tuple[Floats, Rates]]:
        """For each piece the part of each sample (S,) that it fills, and its rates."""
        if len(self.pieces) == 1:
            return [(np.ones(samples), self.pieces[0][2])]
        edges = np.linspace(self.pieces[0][0], now_s, samples + 1)
        length = edges[1] - edges[0]
        found = []
        for begin, step, rates in self.pieces:
            inside = np.minimum(edges[1:], begin + step) - np.maximum(edges[:-1], begin)
            found.append((np.clip(inside, 0.0, None) / length, rates))
        return found
