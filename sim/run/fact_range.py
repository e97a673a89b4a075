"""The range of a result over the ranges of the machine's uncertain facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ...topologies import build_machine
from ...topologies.corners import doubtful_corners, ranged_doubts
from ..systems.registry import system_of
from .scenario import Scenario
from .what_if import Predictor

Throughput = Mapping[str, float]
Corners = Mapping[str, Scenario]


def corners_of(scenario: Scenario) -> Corners:
    """The scenario on its machine at the corners of the uncertain facts' ranges, by name; {} where
    no uncertain fact has a range.
    """
    machines = doubtful_corners(scenario.machine.description)
    return {
        name: replace(scenario, machine=build_machine(machine))
        for name, machine in machines.items()
    }


def fact_range(
    scenario: Scenario,
    throughput: Throughput,
    corners: Corners,
    play: Callable[[Scenario], Throughput] | None = None,
) -> dict[str, Any]:
    """``Record.fact_range`` of a scenario that was simulated at ``throughput``; ``corners`` of it.

    ``play`` simulates each of them. Without it, what differs is predicted for the first moments
    (see ``what_if``), as a part of ``throughput``.
    """
    if not corners:
        return {}
    if play is None:
        play = _predicted(scenario, throughput)
    found = {name: dict(play(corner)) for name, corner in corners.items()}
    seen = [throughput, *found.values()]
    return {
        "facts": ranged_doubts(scenario.machine.description, system_of(scenario.system).reads),
        "throughput": {
            operation: [
                min(rates[operation] for rates in seen),
                max(rates[operation] for rates in seen),
            ]
            for operation in throughput
        },
        "corners": found,
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
