"""The Record of a process of this host: what was seen, and nothing predicted."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...sim.planes.outcome import ControlEvent, ResourceUse
from ...sim.run.record import Record
from ...sim.run.runner import provenance
from ...topologies.draw import picture_data
from ...topologies.machine import Machine

OBSERVED = "observed"


def live_record(
    machine: Machine,
    *,
    title: str,
    settings: Mapping[str, Any],
    horizon_s: float,
    began_s: float,
    model: Mapping[str, Any],
    warnings: Sequence[str],
    series: Mapping[str, Any],
    resources: tuple[ResourceUse, ...] = (),
    bandwidth_Bps: Mapping[str, float | None] | None = None,
    events: tuple[ControlEvent, ...] = (),
    policy: str = "none",
) -> Record:
    """``began_s``: when all began, by ``time.perf_counter``."""
    return Record(
        scenario="process",
        title=title,
        scenario_hash=hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16],
        plane=OBSERVED,
        policy=policy,
        seed=0,
        horizon_s=horizon_s,
        machine=picture_data(machine),
        settings={"machine": machine.name, **settings},
        throughput={},
        operations={},
        bandwidth_Bps=bandwidth_Bps or {},
        resources=resources,
        latency_ns={},
        why={},
        energy_J=None,
        control_events=events,
        confidence={},
        model=model,
        warnings=tuple(warnings),
        provenance=provenance(time.perf_counter() - began_s, 0),
        series=dict(series),
    )
