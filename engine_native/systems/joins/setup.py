"""From a scenario to what the engine runs: the same tables and operator, for real.

Where a real host differs from the scenario, this decides what to do, and says so in ``notes``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ....inputs import InputError
from ....sim.planes.experiment import Experiment
from ....sim.systems.joins.operators import TABLE_PART, Planner
from ....sim.systems.joins.setup import planner_of
from ....sim.systems.joins.spec import JoinSystem, own_cache_bytes
from ....workloads.keys import KeyDistribution, Uniform
from ....workloads.schema import Operation
from ....workloads.zipf import Zipf
from ..._engine import HAS_UCX
from ...host_mapping import amount
from ...host_room import SHARE, free_bytes, free_shared_bytes, processors
from ...transports import THREADS, usual_transport
from .cluster import operator_streams

TUPLE_BYTES = (8, 16)
GROUP_BYTES = 24  # of a group as it is sent: its key, how many tuples, their sum
COPIES = 3  # of the tables: as they were drawn, partitioned or received, and partitioned again
NODES_MAX = 64  # processes; more are only switches between them on one host
PROCESS_BYTES = 12 << 20  # of a process with its share of UCX's buffers, as seen


@dataclass(frozen=True)
class JoinPlan:
    """What will run. ``settings``: fields of the engine's JoinRun, but for ``rounds`` and the
    transport's; ``operators``: by name of each that may run, what else it takes."""

    settings: Mapping[str, Any]
    operators: Mapping[str, Mapping[str, Any]]
    first: str
    transport: str
    processors: int
    notes: tuple[str, ...]

    @property
    def nodes(self) -> int:
        """How many there are."""
        return int(self.settings["nodes"])

    def run_of(self, operator: str, rounds: int) -> dict[str, Any]:
        """All fields of a run of that operator."""
        return {**self.settings, **self.operators[operator], "name": operator, "rounds": rounds}


def join_plan(scenario: Experiment, replication: int, transport: str | None = None) -> JoinPlan:
    """What of ``scenario`` runs on this host. Raises InputError where it does not fit."""
    system, machine, workload = scenario.system, scenario.machine, scenario.workload
    assert isinstance(system, JoinSystem)
    _check_parts(system)
    planner = planner_of(scenario, replication)
    operators = system.operators(machine, workload)
    nodes, cpus = planner.nodes, processors()
    if nodes > NODES_MAX:
        raise InputError(
            f"{nodes} nodes, each a process of its own",
            expected=f"at most {NODES_MAX}, such as --set system.nodes={NODES_MAX}",
        )
    if transport is None and system.layout == "host":
        transport = system.used_host_transport if HAS_UCX else THREADS
    transport = transport or usual_transport(verbs=system.one_sided(machine))
    name, operation = system.operation(workload)
    buffer_bytes = int(system.buffer.value)
    allowed = sorted(os.sched_getaffinity(0))
    settings = {
        "nodes": nodes,
        "buffer_bytes": buffer_bytes,
        "message_bytes": max(buffer_bytes, 128),
        "signal_every": system.signal_every,
        "filter_error": system.filter_error,
        "streams": operator_streams(scenario.seed, replication, nodes),
        "cpus": allowed[:nodes] if nodes <= len(allowed) else [],
        **_tables(scenario, operation, workload.at(0.0).operations[name].keys),
    }
    node = machine.nodes[planner.positions[0]]
    more: dict[str, dict[str, int]] = {
        operator: {
            "partitions": _power_of_two(planner.plan(operator).fan.final),
            "table_bytes": max(int(TABLE_PART * own_cache_bytes(node)), 1_024),
        }
        for operator in operators
    }
    plan = JoinPlan(settings, more, operators[0], transport, cpus, ())
    _check_room(plan, scenario)
    return JoinPlan(
        settings, more, operators[0], transport, cpus, tuple(_notes(plan, planner, operation))
    )


def _check_parts(system: JoinSystem) -> None:
    """Nodes of this host are the same, and each has its own queue."""
    if system.stragglers:
        raise InputError(
            "the engine does not support stragglers",
            token="stragglers",
            expected="--set system.stragglers=[]",
        )
    if system.queue != "own":
        raise InputError(
            "the engine has no central queue", token="queue", expected="--set system.queue=own"
        )


def _tables(
    scenario: Experiment, operation: Operation, keys: KeyDistribution | None
) -> dict[str, Any]:
    objects = scenario.workload.objects
    names = [operation.object, *([operation.outer] if operation.kind == "join" else [])]
    tables = [objects[name] for name in names]
    sizes = {table.record_size.value for table in tables if table.record_size is not None}
    if len(sizes) != 1 or not sizes <= set(TUPLE_BYTES):
        raise InputError(
            "the engine's tuples have 8 or 16 bytes, half of them the key",
            token=" and ".join(f"{size:g} B" for size in sorted(sizes)),
            expected="record_size: 8 B or 16 B, of both tables",
        )
    if not isinstance(keys, Uniform | Zipf):
        raise InputError(
            "the engine does not support this distribution of keys", expected="uniform or zipf keys"
        )
    found = {
        "tuple_bytes": int(sizes.pop()),
        "outer": tables[-1].records,
        "exponent": keys.exponent if isinstance(keys, Zipf) else 0.0,
    }
    if operation.kind == "join":
        return found | {"inner": tables[0].records, "selectivity": operation.selectivity}
    return found | {"groups": keys.keys}


def _power_of_two(partitions: int) -> int:
    return max(1 << (partitions - 1).bit_length(), 2)


def _notes(plan: JoinPlan, planner: Planner, operation: Operation) -> list[str]:
    notes = []
    if plan.nodes > plan.processors:
        notes.append(
            f"{plan.nodes} busy nodes on {amount(plan.processors, 'processor')}: "
            "they are time-sliced"
        )
    if max(planner.workers) > 1:
        notes.append(f"a node has one thread here, not {max(planner.workers)}")
    if operation.kind == "aggregate" and operation.result_size.value != GROUP_BYTES:
        notes.append(f"groups have {GROUP_BYTES} B here, not {operation.result_size.value:g} B")
    return notes


def _check_room(plan: JoinPlan, scenario: Experiment) -> None:
    """All tables fit into the memory that is free; else says what would."""
    settings = plan.settings
    tuples = settings["outer"] + settings.get("inner", 0)
    held = tuples * settings["tuple_bytes"]
    room = (free_bytes() * SHARE - plan.nodes * PROCESS_BYTES) / COPIES
    if plan.transport not in (THREADS, "tcp"):
        room = min(room, free_shared_bytes() * SHARE)
    if held <= room:
        return
    raise InputError(
        f"{held / 2**30:.2g} GiB of tuples, some {COPIES} times, on a host with "
        f"{free_bytes() / 2**30:.2g} GiB of free memory "
        f"({free_shared_bytes() / 2**30:.2g} GiB in /dev/shm)",
        expected=f"--scale {max(scenario.scale * room / held, 0.0):.1g} or less",
    )
