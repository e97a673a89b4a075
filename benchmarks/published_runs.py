"""Runs that predictions of published results ask for, with draws of what is not known exactly."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

from numatwin.sim.run.model_error import OTHER, RATIO, THROUGHPUT, TRAFFIC, Class, class_of
from numatwin.sim.run.record import Record
from numatwin.sim.run.uncertainty import shift_of
from numatwin.validate.results import Published, Runs

FIGURES = {"B/s": THROUGHPUT, "transactions/s": THROUGHPUT, "B": OTHER}


class RunsWithDraws(Runs):
    """Runs with the ``draw`` of their doubts, or as they are (None); ``classes`` of those that were
    asked for.
    """

    def __init__(self, plane: str) -> None:
        super().__init__(plane)
        self.draw: int | None = None
        self.classes: list[Class] = []

    def __call__(self, scenario: str, *settings: str, policy: str | None = None) -> Record:
        if self.draw is not None:
            return self.drawn(scenario, settings, policy)
        record = super().__call__(scenario, *settings, policy=policy)
        self.classes.append(class_of(record, None))
        return record

    @abstractmethod
    def drawn(self, scenario: str, settings: tuple[str, ...], policy: str | None) -> Record:
        """The record with the present draw."""

    def blind(self, key: str, result: Published, otherwise: Class) -> tuple[float, Class] | None:
        """What is predicted of a result in numbers without draws, and its class (``otherwise`` of
        what no run predicts); None of what is predicted as 0, or in words.
        """
        self.draw, self.classes = None, []
        value = result.predict(self).value
        if not isinstance(result.value, float) or not isinstance(value, float) or not value > 0.0:
            return None
        if not self.classes:
            return value, replace(otherwise, plane=self.plane, kind="scan", figure=OTHER)
        figure = TRAFFIC if "fig12" in key else FIGURES.get(result.unit, RATIO)
        return value, replace(self.classes[0], figure=figure)


def shifted(record: Record, draw: int) -> Record:
    """``record`` as one draw of its doubts has it (``with_uncertainty``)."""

    def moved(name: str) -> dict[str, Any]:
        return {
            key: value if value is None else value * float(shift_of(record, (name, key))[draw])
            for key, value in getattr(record, name).items()
        }

    return replace(record, throughput=moved("throughput"), bandwidth_Bps=moved("bandwidth_Bps"))
