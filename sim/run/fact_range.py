"""The range of a result over the ranges of the machine's uncertain facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ...topologies import build_machine
from ...topologies.corners import doubtful_corners, ranged_doubts
from .scenario import Scenario
from .what_if import Predictor

Throughput = Mapping[str, float]


def fact_range(
    scenario: Scenario,
    throughput: Throughput,
    play: Callable[[Scenario], Throughput] | None = None,
) -> dict[str, Any]:
    """``Record.fact_range`` of a scenario that was simulated at ``throughput``.

    ``play`` simulates it once more for each corner of the uncertain facts' ranges. Without it, what
    differs is predicted for the first moments (see ``what_if``), as a part of ``throughput``. {}
    where no uncertain fact has a range.
    """
    machines = doubtful_corners(scenario.machine.description)
    if not machines:
        return {}
    scenarios = {
        name: replace(scenario, machine=build_machine(machine))
        for name, machine in machines.items()
    }
    if play is None:
        play = _predicted(scenario, throughput)
    corners = {name: dict(play(scenario)) for name, scenario in scenarios.items()}
    seen = [throughput, *corners.values()]
    return {
        "facts": ranged_doubts(scenario.machine.description),
        "throughput": {
            operation: [
                min(rates[operation] for rates in seen),
                max(rates[operation] for rates in seen),
            ]
            for operation in throughput
        },
        "corners": corners,
    }


def _predicted(scenario: Scenario, throughput: Throughput) -> Callable[[Scenario], Throughput]:
    predictor = Predictor(scenario)

    def play(scenario: Scenario) -> Throughput:
        own, found = predictor.own.throughput, predictor(scenario).throughput
        return {
            name: value * (1.0 + predictor.relative(found[name] / own[name] - 1.0))
            if own.get(name)
            else value
            for name, value in throughput.items()
        }

    return play
