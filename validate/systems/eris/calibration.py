"""Calibration of ERIS: core times of its loops, by measured steps of an engine and by native runs.

What is fitted is in ``loops.py``; here, how measurements tell of it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ....sim.run.scenario import Scenario, load_scenario
from ....sim.systems.eris.costs import ErisCosts
from ....sim.systems.eris.engine import Eris
from ....sim.systems.eris.parts import ISSUE, RECEIVE, SCAN, WALK, ErisDemands
from ....topologies.measurements import Measurement
from ...calibrate.engine_calibration import EngineCalibration, NativeSteps, OwnEngine, Tried
from ...calibrate.host_reader import HostReader, bytes_text
from ...calibrate.native_prediction import NativeRun, native_step_s
from ...calibrate.observation import NO_PARAMETER, Kind, Observation
from . import loops
from .engine_predictions import routing_s
from .own_engine import row_settings

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


def _unseen(scenario: Scenario) -> set[str]:
    """Loops that none of its workers goes through; as it goes on, no data move."""
    kinds = {stored.kind for stored in scenario.workload.objects.values()}
    found = {"moving"}
    if "column" not in kinds:
        found.add("scanning")
    if "index" not in kinds:
        found.add("walking")
    return found


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
    label = f"routing to {targets} targets, buffers of {bytes_text(buffer.value)}"
    at = {"targets": targets, "buffer": buffer.value}
    return reader.observation(ROUTING, measurement, label, at, size_bytes=buffer.value)


def _index(reader: HostReader, measurement: Measurement) -> Observation | str:
    keys, batch = measurement.parameters.keys, measurement.parameters.batch
    if keys is None or batch is None:
        return NO_PARAMETER
    node = next((n for n in reader.machine.nodes if n.cores), reader.machine.nodes[0])
    last = max((cache.size_bytes for cache in node.caches), default=0.0)
    if keys * KEY_BYTES > PRIVATE_PART * last:
        return STALLS
    operation = measurement.name.removeprefix("walk-")
    label = f"{operation} of {keys:,} keys, {batch} at a time"
    at = {"run": index_run(operation, keys, batch), "step": WALK, "keys": keys, "batch": batch}
    return reader.observation(INDEX, measurement, label, at, size_bytes=keys * KEY_BYTES)


@lru_cache(maxsize=4)  # many figures are asked of one candidate, one after the other
def _costs(tried: Tried) -> ErisCosts:
    return ErisCosts(tried.machine)


def _routing_s(tried: Tried, observation: Observation) -> float:
    return routing_s(_costs(tried), observation.at["targets"], observation.at["buffer"])


CALIBRATION = EngineCalibration(
    keys=("loop", "core"),
    parameters=loops.loop_parameters,
    readers={
        "routing": _routing,
        "walk-lookup": _index,
        "walk-upsert": _index,
        "index-lookup": lambda reader, measurement: SPARSE,
        "index-upsert": lambda reader, measurement: SPARSE,
    },
    predictions={ROUTING: _routing_s, INDEX: native_step_s},
    written=loops.with_fitted_times,
    with_values=loops.with_values,
    run_facts=loops.run_facts,
    native=NativeSteps(STEPS, _commands_per_s, _unseen),
    own=OwnEngine("eris-mixed-amd", row_settings),
)
