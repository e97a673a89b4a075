"""The Record of a command whose memory traffic was counted in the emulator: bytes, and no times."""

import hashlib
import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...topologies.emulator.guest import GuestRun
from ...topologies.emulator.traffic import MATRICES, Counts, Traffic
from ...topologies.picture import picture_data
from ..planes.outcome import Outcome
from .real_planes import EMULATOR
from .record import Record
from .runner import identity, provenance
from .scenario import Scenario


def counted_record(
    traffic: Traffic, command: Sequence[str], wall_s: float, run: GuestRun | None = None
) -> Record:
    """What was counted of ``command`` as a Record; ``wall_s`` is how long the guest took in all.

    ``run``: how the command ended, by default well.
    """
    text = shlex.join(command)
    settings = {"machine": traffic.machine.name, "command": list(command)}
    digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    return Record(
        scenario="command",
        title=text,
        scenario_hash=digest[:16],
        plane=EMULATOR,
        policy="none",
        seed=0,
        horizon_s=0.0,
        machine=picture_data(traffic.machine),
        settings=settings,
        model=_hit_rates(traffic),
        warnings=(*traffic.notes, *_ending(run)),
        provenance=provenance(wall_s, int(traffic.whole.accesses.sum())),
        traffic=traffic_json(traffic),
    )


def _ending(run: GuestRun | None) -> Iterator[str]:
    if run is not None and run.stopped is not None:
        yield f"counted until then: {run.stopped}"
    elif run is not None and run.status:
        yield f"the command failed: its exit status is {run.status}"


def with_traffic(scenario: Scenario, outcome: Outcome, traffic: Traffic, wall_s: float) -> Record:
    """The Record of a scenario whose engine ran in a guest: what it did, and its traffic."""
    return Record(
        **identity(scenario, whole=True),
        operations=outcome.operations,
        control_events=outcome.events,
        model=_hit_rates(traffic) | dict(outcome.model),
        warnings=(*outcome.warnings, *traffic.notes),
        provenance=provenance(wall_s, int(traffic.whole.accesses.sum())),
        traffic=traffic_json(traffic),
    )


def _hit_rates(traffic: Traffic) -> dict[str, Any]:
    """Of the lines looked for at each level, the part that it had; of all nodes together."""
    found = traffic.counted.found.sum(axis=0).astype(np.float64)
    looked_for = found[::-1].cumsum()[::-1]
    return {
        f"hit rate, level {level}": float(found[k] / looked_for[k]) if looked_for[k] else None
        for k, level in enumerate(traffic.levels)
    }


def traffic_json(traffic: Traffic) -> dict[str, Any]:
    """``Record.traffic``: see there."""
    counts, machine = traffic.counted, traffic.machine
    data, messages = traffic.link_bytes()
    read, written = traffic.memory_bytes()
    ends = [
        [machine.vertex_name(end) for end in pair]
        for link in machine.links
        for pair in (link.ends, link.ends[::-1])
    ]
    return {
        "span": "regions" if traffic.regions else "command",
        "regions": counts.regions,
        "line_bytes": traffic.line_bytes,
        "levels": list(traffic.levels),
        "remote_share": traffic.remote_share,
        "user_remote_share": traffic.user_remote_share,
        "pairs": {name: counts.pairs[name].tolist() for name in MATRICES},
        "found": counts.found.tolist(),
        "memory": [
            {"node": node.id, "read_bytes": int(r), "written_bytes": int(w)}
            for node, r, w in zip(machine.nodes, read, written, strict=True)
        ],
        "links": [
            {
                "name": name,
                "ends": end,
                "data_bytes": int(d),
                "message_bytes": int(m),
                "bandwidth_Bps": machine.links[k // 2].bandwidth_Bps,
            }
            for k, (name, end, d, m) in enumerate(
                zip(machine.link_names, ends, data, messages, strict=True)
            )
        ],
        "unknown": counts.unknown,
        "instructions": _instructions(counts),
        "predicted": _predicted(traffic) if traffic.intervals else None,
        "whole_command": None if traffic.regions is None else _sums(traffic.whole),
    }


def _instructions(counts: Counts) -> int | None:
    """Of all processors; None where they were not counted."""
    executed = counts.executed.get("instructions")
    return None if executed is None else int(executed.sum()) or None


def _predicted(traffic: Traffic) -> dict[str, Any]:
    """How long it would take on the machine; the flow plane is loaded for this alone."""
    from .counted_time import counted_time

    return counted_time(traffic).as_json()


def _sums(counts: Counts) -> dict[str, int]:
    """Of the whole command, where regions were counted."""
    return {
        "accesses": int(counts.accesses.sum()),
        "misses": int(counts.misses.sum()),
        "transfers": int(counts.pairs["transfers"].sum()),
    }
