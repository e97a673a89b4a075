"""The outcome of a run on this host whose processes send each other messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..sim.kernel.histogram import Histogram
from ..sim.planes.outcome import ControlEvent, Outcome, ResourceUse, Why


def network_outcome(
    operation: str,
    *,
    passed_s: float,
    operations: int,
    sent_bytes: int,
    resources: Sequence[ResourceUse],
    why: dict[str, Why],
    facts: Mapping[str, Any],
    warnings: Sequence[str],
    steps: int,
    latencies: Histogram,
    events: Sequence[ControlEvent] = (),
) -> Outcome:
    """Of so many operations, all of one kind, in ``passed_s``; this host does not say what memory
    they read and write, nor what energy they take.
    """
    return Outcome(
        throughput={operation: operations / passed_s},
        operations={operation: float(operations)},
        bandwidth_Bps={"memory": None, "links": None, "network": sent_bytes / passed_s},
        resources=tuple(resources),
        latency_ns={},
        why=why,
        energy_J=None,
        events=tuple(events),
        model={operation: facts},
        warnings=tuple(warnings),
        series={},
        steps=steps,
        latencies_ns={operation: latencies},
    )
