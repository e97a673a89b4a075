"""How busy the parts of a cluster that joins are, and what binds it; of any plane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....topologies import Machine
from ...kernel.picoseconds import PS_PER_S
from ...planes.outcome import ControlEvent, ResourceUse
from .fan_out import LINE_BYTES
from .setup import Play
from .spec import JoinSystem

Floats = npt.NDArray[np.float64]

FULL = 0.9


@dataclass
class Busy:
    """Time, by node (n,): of all workers together, controllers, adapters' two sides."""

    workers: Floats
    memory: Floats
    out: Floats
    into: Floats

    def add(self, other: Busy, times: float) -> None:
        """So many times as much again."""
        for name, each in vars(other).items():
            setattr(self, name, getattr(self, name) + times * each)


def uses_of(play: Play, machine: Machine, busy: Busy, passed: float = 1.0) -> Iterator[ResourceUse]:
    """Of parts that are ``busy`` for so much of the time that ``passed``."""
    capacity_Bps, setup = play.adapter_Bps(machine), play.setup
    core_node = np.array(setup.machine.core_node)
    workers = np.bincount(core_node[np.array(setup.worker_core)])
    for k, node in enumerate(play.ids):
        for direction, side in (("out", busy.out), ("in", busy.into)):
            if capacity_Bps is not None:
                name, use = f"adapter of node {node}, {direction}", float(side[k]) / passed
                rate_Bps = use * capacity_Bps
                yield ResourceUse(name, f"nic {direction}", use, rate_Bps, capacity_Bps, node)
        part = float(busy.workers[k]) / workers[k] / passed
        yield ResourceUse(f"workers of node {node}", "threads", part, node=node)
        if setup.machine.read_ps[k]:
            peak_Bps = LINE_BYTES * PS_PER_S / setup.machine.read_ps[k]
            name, part = f"memory of node {node}", float(busy.memory[k]) / passed
            yield ResourceUse(name, "memory", part, part * peak_Bps, peak_Bps, node)


def network_Bps(uses: Sequence[ResourceUse]) -> float | None:
    """What adapters send; None without any."""
    sent_Bps = [use.Bps or 0.0 for use in uses if use.kind == "nic out"]
    return sum(sent_Bps) if sent_Bps else None


def binding(uses: Sequence[ResourceUse]) -> str:
    """The busiest part where it is full; else a query's time is the sum of several parts' times."""
    busiest = max(uses, key=lambda use: use.utilisation)
    if busiest.utilisation >= FULL:
        return busiest.name
    return f"the time that each query takes (busiest: {busiest.name})"


def plan_facts(play: Play, chosen: int, by_operator: Sequence[float]) -> dict[str, Any]:
    """Of the record: the plan that is in use, and queries by operator."""
    plan = play.plans[chosen]
    return {
        "operator": plan.name,
        "queries_by_operator": dict(zip(play.names, by_operator, strict=True)),
        "partitions": {"network": plan.fan.network, "final": plan.fan.final},
        "passes_in_memory": plan.fan.passes,
    }


def stragglers(system: JoinSystem) -> Iterator[ControlEvent]:
    """Nodes that the scenario slows down."""
    for slow in system.stragglers:
        text = f"node {slow.node} takes {slow.factor} times as long"
        yield ControlEvent(0.0, "fault", text, {"node": slow.node, "factor": slow.factor})
