"""Records made up for reports: a real machine, invented figures, a hot range that moves."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numatwin.sim.planes.outcome import ControlEvent, Gain, ResourceUse, Why
from numatwin.sim.run.record import Record
from numatwin.topologies import load_machine
from numatwin.topologies.picture import picture_data

# Policy -> (depth of a drop, seconds until it is made up for).
POLICIES = {
    "none": (0.6, np.inf),
    "one-shot": (0.75, 3.0),
    "ma-1": (0.25, 18.0),
    "ma-8": (0.4, 6.0),
}
CHANGES_S = (10.0, 30.0, 50.0, 70.0, 90.0)
HORIZON_S = 110.0


def machine_data(name: str) -> dict[str, Any]:
    """What a Record holds of a bundled machine."""
    machine = load_machine(name)
    return machine.as_json() | picture_data(machine)


def resources_of(machine: dict[str, Any], rng: np.random.Generator) -> tuple[ResourceUse, ...]:
    """Cores and memory of every node, each link both ways."""
    uses = [
        ResourceUse(f"cores of node {n['id']}", "cores", rng.uniform(0.2, 0.6), node=n["id"])
        for n in machine["nodes"]
    ]
    for node in machine["nodes"]:
        use = rng.uniform(0.3, 0.97)
        uses.append(
            ResourceUse(
                f"memory of node {node['id']}", "memory", use, use * 16.4e9, 16.4e9, node=node["id"]
            )
        )
    for link in machine["links"]:
        for a, b in (link["ends"], link["ends"][::-1]):
            use, capacity = rng.uniform(0.0, 0.9), link["bandwidth_Bps"]
            name = f"link {a}→{b} ({link['kind']})"
            uses.append(ResourceUse(name, "link", use, use * capacity, capacity, ends=(a, b)))
    return tuple(uses)


def phased_record(
    policy: str = "ma-8", machine: str = "amd-8n-ht", pieces: int = 330, **fields: Any
) -> Record:
    """110 s of lookups whose hot range moves five times, in so many pieces."""
    depth, back_s = POLICIES.get(policy, (0.5, 5.0))
    rng = np.random.default_rng(7)
    data = machine_data(machine)
    time_s = np.linspace(0, HORIZON_S, pieces, endpoint=False)
    rate, moved = np.full(pieces, 2.4e9), np.zeros(pieces)
    events = [ControlEvent(0.0, "phase", "uniform")]
    for k, change_s in enumerate(CHANGES_S):
        until_s = (*CHANGES_S, HORIZON_S)[k + 1]
        inside = (time_s >= change_s) & (time_s < until_s)
        gone = 1.0 - np.clip((time_s[inside] - change_s) / back_s, 0.0, 1.0)
        rate[inside] = 2.3e9 * (1.0 - depth * gone)
        moved[inside] = gone
        events.append(ControlEvent(change_s, "phase", "hot-range" if k == 0 else f"move {k}"))
        for step in range(0 if policy == "none" else 3):
            at_s = change_s + 1.0 + 1.5 * step
            events += [
                ControlEvent(at_s, "balance", f"{policy}: 24 of 64 AEUs get new bounds"),
                ControlEvent(
                    at_s + 0.1, "transfer", "AEU 5 → 6: 1.2 GB copied", {"copied_bytes": 1.2e9}
                ),
                ControlEvent(at_s + 0.9, "done", "bounds published"),
            ]
    resources = resources_of(data, rng)
    wave = 0.5 + 0.5 * np.sin(np.arange(len(resources))[:, None] / 3 + time_s[None, :] / 12)
    series = {
        "time_s": time_s,
        "duration_s": np.full(pieces, HORIZON_S / pieces),
        "throughput/lookup": rate,
        "imbalance/index": 0.1 + moved,
    } | {
        f"utilisation/{use.name}": use.utilisation * row
        for use, row in zip(resources, wave, strict=True)
    }
    return _record(policy, data, resources, tuple(events), series, **fields)


def steady_record(
    machine: str = "intel-4s-qpi", operations: Sequence[str] = ("lookup",), **fields: Any
) -> Record:
    """A run whose rates never change."""
    data = machine_data(machine)
    resources = resources_of(data, np.random.default_rng(3))
    series = {"time_s": np.zeros(1), "duration_s": np.full(1, HORIZON_S)}
    series |= {f"throughput/{name}": np.full(1, 1e9) for name in operations}
    series |= {f"utilisation/{use.name}": np.full(1, use.utilisation) for use in resources}
    fields = {"throughput": dict.fromkeys(operations, 1000000000.0)} | fields
    return _record("none", data, resources, (), series, **fields)


def _record(
    policy: str,
    machine: dict[str, Any],
    resources: tuple[ResourceUse, ...],
    events: tuple[ControlEvent, ...],
    series: dict[str, Any],
    **fields: Any,
) -> Record:
    throughput = fields.get("throughput") or {"lookup": float(series["throughput/lookup"].mean())}
    why = Why(
        "memory of node 3",
        (
            Gain("memory bandwidth", 0.062),
            Gain("outstanding misses", 0.031),
            Gain("L3 cache", 0.008),
            Gain("links (ht-split)", 0.002),
            Gain("core clock", 0.0),
        ),
        {"tree walk": 96.0, "memory stall": 410.0, "routing": 52.0, "buffers": 17.0},
    )
    values: dict[str, Any] = {
        "scenario": "eris-fig13",
        "title": "A hot range moves over the keys",
        "scenario_hash": "5f0c9a4bd2e1",
        "plane": "flow",
        "policy": policy,
        "policies": {"balancing": policy},
        "seed": 1,
        "horizon_s": HORIZON_S,
        "machine": machine,
        "settings": {"machine": machine["name"], "policy": policy, "horizon": "110 s", "seed": 1},
        "operations": {name: rate * HORIZON_S for name, rate in throughput.items()},
        "bandwidth_Bps": {"memory": 98.3e9, "links": 61.2e9},
        "resources": resources,
        "latency_ns": {name: {"mean": 27_700.0, "p99": None} for name in throughput},
        "why": dict.fromkeys(throughput, why),
        "energy_J": None,
        "control_events": events,
        "confidence": {},
        "model": {
            "cache hit rate": {"L2": 0.31, "L3": 0.12},
            "index_bytes": 12.8e9,
            "bytes_per_operation": {"memory": 246.0, "links": 12.0},
            "partition_bytes": [200e6 + k * 1e6 for k in range(64)],
        },
        "warnings": (
            "uncertain value used: node_types.opteron-6274-die.ipc",
            "derived: outstanding misses shared by two cores of a module",
        ),
        "provenance": {"wall_s": 0.61, "events": 212, "version": "0.1.0", "host": {"cpus": 2}},
        "series": series,
    }
    return Record(**(values | {"throughput": throughput} | fields))
