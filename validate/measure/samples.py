"""Repetitions of a measurement: their median, their quartiles, and which of them count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
DIGITS = 4
# With fewer undisturbed repetitions than this the disturbed ones count too: a median of one tells
# nothing of its spread.
UNDISTURBED_MIN = 3


@dataclass(frozen=True)
class Windows:
    """What a team did: (windows, members) amounts and nanoseconds, (windows,) whether disturbed."""

    amounts: Floats
    elapsed_ns: Floats
    disturbed: npt.NDArray[np.bool_]

    def of(self, values: Floats) -> Samples:
        """The samples among ``values``, one for each window, that count."""
        undisturbed = ~self.disturbed
        if undisturbed.sum() < UNDISTURBED_MIN:
            return Samples(values, 0, noisy=bool(self.disturbed.any()))
        return Samples(values[undisturbed], int((~undisturbed).sum()))

    def ns_each(self, member: int = 0) -> Samples:
        """Nanoseconds that one of the member's amount took."""
        return self.of(self.elapsed_ns[:, member] / self.amounts[:, member])

    def rates(self, *members: int) -> Samples:
        """Amounts per second of the members together; of all, where none is named."""
        chosen = list(members) or list(range(self.amounts.shape[1]))
        rate = self.amounts[:, chosen] / self.elapsed_ns[:, chosen] * 1e9
        return self.of(rate.sum(axis=1))


@dataclass(frozen=True)
class Samples:
    """Repetitions of one figure; ``disturbed`` more were left out.

    ``noisy``: there were too few others, so that disturbed ones are among them.
    """

    values: Floats
    disturbed: int = 0
    noisy: bool = False

    @property
    def median(self) -> float:
        """The figure itself."""
        return _rounded(float(np.median(self.values)))

    @property
    def quartiles(self) -> tuple[float, float]:
        """Between them lies half of the repetitions."""
        low, high = np.percentile(self.values, [25, 75])
        # Rounded alike, so that they still stand on both sides of the median.
        return min(_rounded(float(low)), self.median), max(_rounded(float(high)), self.median)

    @property
    def spread(self) -> float:
        """Interquartile range over the median."""
        low, high = self.quartiles
        return (high - low) / self.median if self.median else 0.0

    def scaled(self, factor: float) -> Samples:
        """Each value times ``factor``."""
        return Samples(self.values * factor, self.disturbed, self.noisy)


def _rounded(value: float) -> float:
    """To as many digits as a measurement can have."""
    return float(f"{value:.{DIGITS}g}")
