"""The sides of a suite's checks: scenarios whose replications run on demand."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..sim.planes.outcome import Outcome
from ..sim.run.real_planes import DRAWING_PLANES
from ..sim.run.record import Record
from ..sim.run.replications import play_numbers, warm_up_of
from ..sim.run.runner import maker_of, run_scenario
from ..sim.run.scenario import Scenario
from .emulated import EmulatedRun
from .metrics import Metric

Side = Scenario | EmulatedRun


def is_exact(scenario: Side) -> bool:
    """Whether its plane draws nothing: one run tells all."""
    return scenario.plane not in DRAWING_PLANES


@dataclass
class AlternativeRun:
    """A scenario's outcomes so far, in the order of their replications.

    ``warm_up_s``: what they leave out; the two sides of a check leave out the same.
    """

    scenario: Side
    warm_up_s: float
    workers: int | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    record: Record | None = None
    wall_s: float = 0.0
    """How long a run took, so far as is known."""

    @property
    def exact(self) -> bool:
        """Whether one run tells all."""
        return is_exact(self.scenario)

    @property
    def counted_s(self) -> float:
        """The time of each replication that counts."""
        return self.scenario.horizon_s - self.warm_up_s

    def play(self, count: int) -> None:
        """Sees to it that ``count`` replications are there; raises InputError as a run does."""
        if self.exact:
            if self.record is None:
                self.record = (
                    self.scenario.record()
                    if isinstance(self.scenario, EmulatedRun)
                    else run_scenario(self.scenario)
                )
            return
        assert isinstance(self.scenario, Scenario)
        numbers = range(len(self.outcomes) + 1, count + 1)
        for number in play_numbers(
            maker_of(self.scenario),
            self.scenario,
            numbers,
            self.warm_up_s,
            self.workers,
            self.wall_s,
        ):
            self.wall_s = number.wall_s
            self.outcomes.append(number.outcome)

    def values(self, metric: Metric, count: int) -> list[float]:
        """The figure of each of the first ``count`` replications; of an exact run, one."""
        if self.exact:
            assert self.record is not None
            return [metric.of_record(self.record)]
        return [metric.of_outcome(outcome) for outcome in self.outcomes[:count]]


class Sides:
    """All sides of a suite; what several checks share is run once.

    ``workers``: processes at most, by default as many as there are processors to use.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers
        self._played: dict[tuple[str, int, float], AlternativeRun] = {}
        self._warm_ups: dict[tuple[str, int], tuple[float, float]] = {}

    def of(self, scenario: Side, warm_up_s: float | None = None) -> AlternativeRun:
        """The scenario as run so far, with that warm-up or with its own."""
        if warm_up_s is None:
            warm_up_s = self._own_warm_up(scenario)[0]
        key = (scenario.hash, scenario.seed, warm_up_s)
        if key not in self._played:
            wall_s = self._warm_ups.get(key[:2], (0.0, 0.0))[1]
            self._played[key] = AlternativeRun(scenario, warm_up_s, self._workers, wall_s=wall_s)
        return self._played[key]

    def both(self, one: Side, other: Side) -> tuple[AlternativeRun, AlternativeRun]:
        """Two scenarios that are compared: both leave out the longer one's warm-up."""
        if is_exact(one) or is_exact(other):
            return self.of(one), self.of(other)
        warm_up_s = max(self._own_warm_up(each)[0] for each in (one, other))
        return self.of(one, warm_up_s), self.of(other, warm_up_s)

    def _own_warm_up(self, scenario: Side) -> tuple[float, float]:
        """The warm-up that is stated, or shown by a pilot run, and how long that run took."""
        if is_exact(scenario):
            return 0.0, 0.0
        assert isinstance(scenario, Scenario)
        key = (scenario.hash, scenario.seed)
        if key not in self._warm_ups:
            found = warm_up_of(maker_of(scenario), scenario)
            self._warm_ups[key] = found.warm_up_s, found.wall_s
        return self._warm_ups[key]
