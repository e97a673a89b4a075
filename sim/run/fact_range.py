"""How far an answer is off if the machine's doubtful facts are at the ends of their ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ...topologies import build_machine
from ...topologies.corners import doubtful_corners, ranged_doubts
from .scenario import Scenario


def fact_range(
    scenario: Scenario,
    throughput: Mapping[str, float],
    play: Callable[[Scenario], Mapping[str, float]],
) -> dict[str, Any]:
    """``Record.fact_range`` of a scenario that the flow plane plays at ``throughput``.

    ``play`` plays it once more for each corner of the doubtful facts' ranges; {} without these.
    """
    description = scenario.machine.description
    corners = {
        name: dict(play(replace(scenario, machine=build_machine(at))))
        for name, at in doubtful_corners(description).items()
    }
    if not corners:
        return {}
    seen = [throughput, *corners.values()]
    return {
        "facts": ranged_doubts(description),
        "throughput": {
            operation: [min(one[operation] for one in seen), max(one[operation] for one in seen)]
            for operation in throughput
        },
        "corners": corners,
    }
