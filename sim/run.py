"""Runs a scenario: control plane over data plane, and what they saw as a Record."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from .._version import __version__
from ..topologies.draw import picture_data
from .control.control_plane import ControlPlane
from .planes.flow import FlowPlane
from .planes.plane import Plane
from .record import Record
from .scenario import Scenario

PLANES: Mapping[str, Callable[[Scenario], Plane]] = {"flow": FlowPlane}


def run_scenario(scenario: Scenario, *, progress: Callable[[float], None] | None = None) -> Record:
    """The Record of ``scenario``; ``progress`` is told the part of the horizon that is done.

    Raises InputError where the scenario cannot be run, or a user's policy fails.
    """
    began = time.perf_counter()
    plane = PLANES[scenario.plane](scenario)
    control = ControlPlane(scenario, plane)
    control.run(progress)
    outcome = plane.outcome()
    events = sorted([*control.events, *outcome.events], key=lambda event: event.time_s)
    return Record(
        scenario=scenario.name,
        title=scenario.title,
        scenario_hash=scenario.hash,
        plane=scenario.plane,
        policy=scenario.policy_name,
        seed=scenario.seed,
        horizon_s=scenario.horizon_s,
        machine=picture_data(scenario.machine),
        settings=scenario.settings,
        throughput=outcome.throughput,
        operations=outcome.operations,
        bandwidth_Bps=outcome.bandwidth_Bps,
        resources=outcome.resources,
        latency_ns=outcome.latency_ns,
        why=outcome.why,
        energy_J=outcome.energy_J,
        control_events=tuple(events),
        confidence={},
        model=outcome.model,
        warnings=outcome.warnings,
        provenance=_provenance(time.perf_counter() - began, outcome.steps),
        series=outcome.series,
    )


def _provenance(wall_s: float, events: int) -> dict[str, Any]:
    return {
        "wall_s": wall_s,
        "events": events,
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": {
            "machine": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
        },
    }
