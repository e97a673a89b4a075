"""A row of a cross-validation: one figure, as it was measured and as a plane predicts it.

Measured is the median of the rounds; its interval reaches from the least to the largest of them,
which holds the true median with a probability of 1 - 2^(1 - n), whatever the distribution (the
chance that n independent values do not all lie on one side of it).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from ...sim.run.statistics import Interval

Set = Literal["calibration", "test"]
Kind = Literal[
    "throughput",
    "memory traffic",
    "p99 latency",
    "latency",
    "recovery",
    "time",
    "bandwidth",
    "other",
]


@dataclass(frozen=True)
class Row:
    """One figure. ``group``: what it is a figure of (a run of the suite, a primitive).

    ``values``: of each round; ``size_bytes``: of the data, None where unknown. ``set``:
    ``calibration`` for what the machine file was made of, ``test`` for what nothing was fitted to.
    """

    scenario: str
    group: str
    plane: str
    metric: str
    kind: Kind
    unit: str
    measured: Interval
    predicted: Interval
    set: Set
    values: tuple[float, ...] = ()
    size_bytes: float | None = None

    @property
    def relative_error(self) -> float:
        """Predicted less measured, over measured."""
        return relative(self.predicted.value, self.measured.value)

    @property
    def error(self) -> float:
        """How far the prediction is off, without its sign: what the aim is held against."""
        return abs(self.relative_error)

    @property
    def interval_holds(self) -> bool:
        """Whether the measured value lies in the predicted interval."""
        return self.predicted.low <= self.measured.value <= self.predicted.high

    def as_json(self) -> dict[str, Any]:
        """A row of ``numatwin crossvalidate --json``."""
        return {
            "scenario": self.scenario,
            "plane": self.plane,
            "metric": self.metric,
            "measured": self.measured.value,
            "measured_interval": [self.measured.low, self.measured.high],
            "predicted": self.predicted.value,
            "predicted_interval": [self.predicted.low, self.predicted.high],
            "relative_error": self.relative_error,
            "set": self.set,
            "kind": self.kind,
            "unit": self.unit,
            "group": self.group,
            "rounds": len(self.values),
            "values": list(self.values),
            "interval_holds": self.interval_holds,
            "size_bytes": self.size_bytes,
        }


def relative(predicted: float, measured: float) -> float:
    """(predicted - measured) / measured; both 0 are no error, 0 alone counts as wholly off."""
    if predicted == measured:
        return 0.0
    if measured == 0.0:
        return 1.0 if predicted > 0 else -1.0
    return (predicted - measured) / measured


def measured_interval(values: Sequence[float]) -> Interval:
    """Of the rounds' ``values``, at least one: their median, and the range that they span."""
    return Interval(float(median(values)), min(values), max(values))
