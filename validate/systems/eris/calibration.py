"""Calibration of ERIS: core times of its loops, by measured steps of an engine and by native runs.

What is fitted is in ``loops.py``; here, how measurements tell of it.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ....inputs.quantities import size_text
from ....sim.machine.costs import LINE_BYTES
from ....sim.run.scenario import Scenario, load_scenario
from ....sim.systems.eris.costs import ErisCosts
from ....sim.systems.eris.engine import Eris
from ....sim.systems.eris.index import tree_of
from ....sim.systems.eris.parts import ISSUE, RECEIVE, SCAN, WALK, ErisDemands
from ....sim.systems.eris.routing import split_instructions
from ....topologies.machine import Machine
from ....topologies.measurements import Measurement, Parameters
from ....workloads.schema import DataObject
from ...calibrate.engine_rows import EngineRow, OwnEngine
from ...calibrate.observation import NO_PARAMETER, HostReader, Kind, Observation
from ...calibrate.predictions import (
    Candidate,
    EngineCalibration,
    NativeRun,
    NativeSteps,
    native_step_s,
)
from . import loops
from .engine_steps import COMMAND_BYTES, HEADER_BYTES


def _layout(scenario: Scenario, row: EngineRow) -> Iterator[str]:
    """Threads are spread evenly over the nodes; where a row does not say over how many, over as few
    of the first ones as have the hardware threads."""
    able = [node for node in scenario.machine.nodes if node.cores]
    nodes = row.nodes
    if nodes is not None and nodes > len(able):
        raise row.error(
            "nodes",
            f"nodes: {scenario.machine.name} has {len(able)} with cores",
            str(nodes),
            f"at most {len(able)}",
        )
    if row.threads is not None:
        room = [node.cores * node.threads_per_core for node in able]
        if nodes is None:
            nodes = next(
                (k for k in range(1, len(able)) if sum(room[:k]) >= row.threads), len(able)
            )
        if row.threads > sum(room[:nodes]):
            raise row.error(
                "threads",
                f"threads: {nodes} of {scenario.machine.name}'s nodes have {sum(room[:nodes])}",
                str(row.threads),
                f"at most {sum(room[:nodes])}",
            )
        if row.threads % nodes:
            raise row.error(
                "threads",
                f"threads: not the same number on each of {nodes} nodes",
                str(row.threads),
                f"a multiple of {nodes}",
            )
        yield f"system.threads={row.threads // nodes}"
    if nodes is not None:
        yield f"system.nodes={nodes}"


def _size(scenario: Scenario, row: EngineRow) -> Iterator[str]:
    if row.size is not None:
        name = scenario.workload.operations[row.operation].object
        field = "entries" if scenario.workload.objects[name].kind == "column" else "keys"
        yield f"workload.objects.{name}.{field}={row.size}"


ROUTING = Kind("routing", core=True)
INDEX = Kind("index operation", core=True, run=True)

# Steps of a real worker's loop -> the step of the model's that they are part of.
STEPS = {"issue": ISSUE, "flush": ISSUE, "receive": RECEIVE, "walk": WALK, "scan": SCAN}
INDEX_SCENARIOS = {"lookup": "eris-fig8-amd", "upsert": "eris-fig8-amd-upsert"}

# Buffers that a core's private cache holds with room to spare.
PRIVATE_PART = 0.5
MULTICAST_BYTES, FLUSHES_HELD = 4096, 8  # of the routing benchmark
KEY_BYTES = 9.0  # its value, and what the tree above takes

SPARSE = "keys from all of 64 bits: the cost model's are dense"
STALLS = "an index beyond the caches: memory, not the core, sets its pace"
SPILLS = "buffers beyond a core's private cache"


def _commands_per_s(plane: Any) -> float:
    """Commands that workers execute in the present state."""
    assert isinstance(plane.system, Eris)
    assert isinstance(plane.demands, ErisDemands)
    executed = plane.system.accesses(plane.demands, 0.0).values()
    return float(sum(counts.sum() for counts in executed))


def index_run(operation: str, keys: int, batch: int) -> NativeRun:
    """One worker on an index of its own: what walks cost alone."""
    settings = (
        f"workload.objects.index.keys={keys}",
        f"system.batch={batch}",
        "system.threads=1",
        "system.nodes=1",
        "horizon=1 ms",
    )
    return NativeRun(load_scenario(INDEX_SCENARIOS[operation], settings=settings))


def _routing(reader: HostReader, measurement: Measurement) -> Observation | str:
    targets, buffer = measurement.parameters.targets, measurement.parameters.buffer
    if targets is None or buffer is None:
        return NO_PARAMETER
    held = targets * (FLUSHES_HELD + 1) * (buffer.value + MULTICAST_BYTES)
    if held > PRIVATE_PART * reader.private_bytes():
        return SPILLS
    label = f"routing to {targets} targets, buffers of {size_text(buffer.value)}"
    at = {"targets": targets, "buffer": buffer.value}
    return reader.observation(ROUTING, measurement, label, at, size_bytes=buffer.value)


def _index(reader: HostReader, measurement: Measurement) -> Observation | str:
    keys, batch = measurement.parameters.keys, measurement.parameters.batch
    if keys is None or batch is None:
        return NO_PARAMETER
    last = max((cache.size_bytes for cache in reader.first.caches), default=0.0)
    if keys * KEY_BYTES > PRIVATE_PART * last:
        return STALLS
    operation = measurement.name.removeprefix("walk-")
    label = f"{operation} of {keys:,} keys, {batch} at a time"
    at = {"run": index_run(operation, keys, batch), "step": WALK, "keys": keys, "batch": batch}
    return reader.observation(INDEX, measurement, label, at, size_bytes=keys * KEY_BYTES)


@lru_cache(maxsize=4)  # many figures are asked of one candidate, one after the other
def _costs(tried: Candidate) -> ErisCosts:
    return ErisCosts(tried.machine)


CALIBRATION = EngineCalibration(
    parameters=loops.loop_parameters,
    readers={
        "routing": _routing,
        "walk-lookup": _index,
        "walk-upsert": _index,
        "index-lookup": lambda reader, measurement: SPARSE,
        "index-upsert": lambda reader, measurement: SPARSE,
    },
    predictions={
        ROUTING: lambda tried, one: routing_s(_costs(tried), one.at["targets"], one.at["buffer"]),
        INDEX: native_step_s,
    },
    written=loops.with_fitted_times,
    in_runs=True,
    native=NativeSteps(STEPS, _commands_per_s),
    own=OwnEngine("eris-mixed-amd", lambda run, row: [*_layout(run, row), *_size(run, row)]),
)


def routing_s(costs: ErisCosts, targets: int, buffer_bytes: float) -> float:
    """Core time of a command that is routed: the table's tree, the buffer, its part of a flush."""
    counts = costs.instructions
    commands = (buffer_bytes - HEADER_BYTES) / COMMAND_BYTES
    instructions = (
        split_instructions(costs, targets)
        + counts.flush_fixed / commands
        + counts.flush_line * buffer_bytes / LINE_BYTES / commands
    )
    return float(costs.core_s(instructions)[costs.first_node or 0])


def routing_measured_s(machine: Machine, given: Parameters) -> float | None:
    """The same, of a measurement with these parameters; None where they do not say enough."""
    if given.targets is None or given.buffer is None:
        return None
    return routing_s(ErisCosts(machine), given.targets, given.buffer.value)


def key_bytes(stored: DataObject) -> float:
    """Of a key of an index its entry, and its share of the tree's nodes."""
    return tree_of(stored, stored.value_size.value).bytes_per_key
