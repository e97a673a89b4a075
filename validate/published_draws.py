"""Published results as all that their sources leave open may have been: predictions by draws.

Facts of machines, assumptions and what a source does not tell (``Condition``) are drawn together,
for all results of a source the same, and every result is predicted with each draw. A published
figure is in none of them. ``benchmarks/published_draws.py`` writes ``published_draws.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..inputs import DescriptionError, InputError
from ..sim.run.assumptions import varied
from ..sim.run.doubts import Floats, doubts_of, drawn, drawn_machines, merged
from ..sim.run.model_error import OTHER, RATIO, THROUGHPUT, TRAFFIC, Class, class_of
from ..sim.run.record import Record
from ..sim.run.runner import run_scenario
from ..sim.run.scenario import load_scenario
from ..sim.run.uncertainty import DRAWS, shift_of, with_uncertainty
from ..sim.run.what_if import FLOW
from ..topologies import Machine
from .published import PUBLISHED
from .results import Condition, Runs
from .systems.registry import validations

STORED = Path(__file__).with_name("published_draws.json")
FIGURES = {"B/s": THROUGHPUT, "transactions/s": THROUGHPUT, "B": OTHER}


@dataclass(frozen=True)
class Drawn:
    """Of a result in numbers: what kind of figure it is, its prediction as published rows have it
    (``blind``), and with each draw (N,); NaN where a draw cannot be.
    """

    id: str
    of: Class
    blind: float
    draws: Floats


def source_of(id_: str) -> str:
    """The paper that a result is of."""
    return id_.partition("-")[0]


class DrawnRuns(Runs):
    """Runs as one of the draws has them; ``draw`` None: as they are. ``classes`` of the runs that
    were asked for. What events cost is not predicted again for each draw of the facts: their
    records move by the shifts of quick predictions (``with_uncertainty``).
    """

    def __init__(self, plane: str, conditions: Sequence[Condition], count: int) -> None:
        super().__init__(plane)
        self.conditions, self.count = conditions, count
        self.draw: int | None = None
        self.classes: list[Class] = []
        self._drawn: dict[tuple[Any, ...], Record] = {}
        self._machines: dict[str, list[Machine]] = {}

    def choice(self, condition: Condition) -> str:
        """The name of what is taken of what a source leaves open."""
        assert self.draw is not None
        part = drawn(condition.name, self.count)[self.draw]
        return list(condition.choices)[int(part * len(condition.choices))]

    def chosen(self, name: str, otherwise: str) -> str:
        known = {one.name: one for one in self.conditions}
        return otherwise if self.draw is None else self.choice(known[name])

    def machine(self, name: str) -> Machine:
        own = super().machine(name)
        if self.draw is None:
            return own
        if name not in self._machines:
            self._machines[name] = list(drawn_machines(own, self.count)) or [own] * self.count
        return self._machines[name][self.draw]

    def __call__(self, scenario: str, *settings: str, policy: str | None = None) -> Record:
        if self.draw is None:
            record = super().__call__(scenario, *settings, policy=policy)
            self.classes.append(class_of(record, None))
            return record
        settings = (*self._settings(scenario), *settings)
        if self.plane == FLOW:
            key = (scenario, settings, policy, self.draw)
            if key not in self._drawn:
                self._drawn[key] = self._played(scenario, settings, policy)
            return self._drawn[key]
        record = super().__call__(scenario, *settings, policy=policy)
        if (record.scenario_hash,) not in self._drawn:
            loaded = load_scenario(scenario, plane=self.plane, policy=policy, settings=settings)
            self._drawn[(record.scenario_hash,)] = with_uncertainty(record, loaded)
        return _shifted(self._drawn[(record.scenario_hash,)], self.draw % DRAWS)

    def _settings(self, scenario: str) -> Iterator[str]:
        for condition in self.conditions:
            if condition.scenarios and re.fullmatch(condition.scenarios, scenario):
                yield from condition.choices[self.choice(condition)]

    def _played(self, scenario: str, settings: Sequence[str], policy: str | None) -> Record:
        loaded = load_scenario(scenario, plane=self.plane, policy=policy, settings=settings)
        doubts = doubts_of(loaded)
        parts = np.array([doubt.draws(self.count)[self.draw] for doubt in doubts])
        with suppress(InputError, DescriptionError):  # facts that contradict each other
            loaded = varied(loaded, merged(doubts, parts))
        return run_scenario(loaded)


def _shifted(record: Record, draw: int) -> Record:
    def moved(name: str) -> dict[str, Any]:
        return {
            key: value if value is None else value * float(shift_of(record, (name, key))[draw])
            for key, value in getattr(record, name).items()
        }

    return replace(record, throughput=moved("throughput"), bandwidth_Bps=moved("bandwidth_Bps"))


def sources() -> list[str]:
    """Those with results in numbers."""
    numbers = (id_ for id_, result in PUBLISHED.items() if isinstance(result.value, float))
    return list(dict.fromkeys(map(source_of, numbers)))


def predicted(source: str, count: int) -> Iterator[Drawn]:
    """All results in numbers of a source, with so many draws; none of what is predicted as 0."""
    runs: dict[str, DrawnRuns] = {}
    last = Class(OTHER, FLOW, "scan", OTHER)
    conditions = [one for validation in validations() for one in validation.conditions]
    for id_, result in PUBLISHED.items():
        if source_of(id_) != source or not isinstance(result.value, float):
            continue
        plane = runs.setdefault(result.planes[0], DrawnRuns(result.planes[0], conditions, count))
        plane.draw, plane.classes = None, []
        blind = result.predict(plane).value
        if not isinstance(blind, float) or not blind > 0.0:
            continue
        figure = TRAFFIC if "fig12" in id_ else FIGURES.get(result.unit, RATIO)
        # What no run predicts is of the same system as the runs before.
        of = plane.classes[0] if plane.classes else replace(last, plane=plane.plane, kind="scan")
        last = of
        draws = np.full(count, np.nan)
        for plane.draw in range(count):
            with suppress(InputError, DescriptionError, ZeroDivisionError):
                draws[plane.draw] = result.predict(plane).value
        yield Drawn(id_, replace(of, figure=figure if plane.classes else OTHER), blind, draws)


@cache
def stored() -> Mapping[str, Drawn]:
    """As the file has them, by id."""
    rows = json.loads(STORED.read_text(encoding="utf-8"))["rows"]
    return {
        row["id"]: Drawn(
            row["id"], Class(**row["of"]), row["blind"], np.array(row["draws"], dtype=float)
        )
        for row in rows
    }
