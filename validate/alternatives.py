"""One side of a check: a scenario whose replications are played as they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..sim.planes.plane import Maker, Outcome
from ..sim.record import Record
from ..sim.replications import play_numbers, warm_up_of
from ..sim.run import RANDOM_PLANES, run_scenario
from ..sim.scenario import Scenario
from .metrics import Metric


@dataclass
class Played:
    """A scenario's outcomes so far, in the order of their replications.

    ``warm_up_s``: None until it is known; two sides of a check have the same.
    """

    scenario: Scenario
    workers: int | None = None
    warm_up_s: float | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    record: Record | None = None
    _wall_s: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether the plane draws nothing: one run tells all."""
        return self.scenario.plane not in RANDOM_PLANES

    def own_warm_up_s(self) -> float:
        """The warm-up that it has on its own: stated, or shown by a pilot run."""
        if self.exact:
            return 0.0
        if self.warm_up_s is None:
            found = warm_up_of(self._make, self.scenario)
            self.warm_up_s, self._wall_s = found.warm_up_s, found.wall_s
        return self.warm_up_s

    def play(self, count: int) -> None:
        """Sees to it that ``count`` replications are there; raises InputError as a run does."""
        if self.exact:
            if self.record is None:
                self.record = run_scenario(self.scenario)
            return
        warm_up_s = self.own_warm_up_s()
        numbers = range(len(self.outcomes) + 1, count + 1)
        for one in play_numbers(
            self._make, self.scenario, numbers, warm_up_s, self.workers, self._wall_s
        ):
            self._wall_s = one.wall_s
            self.outcomes.append(one.outcome)

    def values(self, metric: Metric, count: int) -> list[float]:
        """The figure of each of the first ``count`` replications; of an exact run, one."""
        if self.exact:
            assert self.record is not None
            return [metric.of_record(self.record)]
        return [metric.of_outcome(one) for one in self.outcomes[:count]]

    @property
    def _make(self) -> Maker:
        return RANDOM_PLANES[self.scenario.plane][self.scenario.system.kind]
