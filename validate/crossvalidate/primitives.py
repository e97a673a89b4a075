"""The calibration set: what a machine file was made of, predicted back from it.

``machine measure`` times primitives alone; a few of its figures become facts of the machine, the
others stand beside them. Each row here compares such a figure with what the cost model makes of the
facts: how much is lost between the measurements and the model, before any real run. A figure that
is itself the fact is left out, as it would say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...sim.costs import LINE_BYTES, CostModel
from ...sim.eris.parts import WALK
from ...sim.eris.routing import split_instructions
from ...sim.run import run_scenario
from ...sim.scenario import load_scenario
from ...sim.statistics import Interval
from ...topologies import Machine
from ...topologies.measurements import Measurement, Parameters
from .rows import Kind, Row

PLANE = "model"
LOOKUP, UPSERT = "eris-fig8-amd", "eris-fig8-amd-upsert"
# Of an outgoing buffer (engine_native/routing), and of a command as it is measured.
HEADER_BYTES, COMMAND_BYTES = 16.0, 16.0

Known = Callable[["_Model", Parameters], float | None]


def primitive_rows(machine_path: Path, machine: Machine) -> Iterator[Row]:
    """A row of each figure of the machine file that the cost model can predict."""
    model = _Model(machine_path, machine, CostModel(machine))
    for measurement in machine.description.measurements:
        predict = PREDICTED.get(measurement.name)
        value = predict(model, measurement.parameters) if predict is not None else None
        if value is not None:
            yield _row(measurement, value)


def _row(measurement: Measurement, value: float) -> Row:
    is_time = measurement.value.kind == "time"
    scale, unit = (1e9, "ns") if is_time else (1.0, measurement.value.unit)
    low, high = measurement.quartiles or (measurement.value, measurement.value)
    kind: Kind = "time" if is_time else "bandwidth"
    told = _told(measurement.parameters)
    size = measurement.parameters.size
    return Row(
        scenario=f"{measurement.name}: {', '.join(told)}",
        group=measurement.name,
        plane=PLANE,
        metric=measurement.name,
        kind=kind,
        unit=unit,
        measured=Interval(measurement.value.value * scale, low.value * scale, high.value * scale),
        predicted=Interval(value * scale, value * scale, value * scale),
        set="calibration",
        size_bytes=None if size is None else size.value,
    )


def _told(parameters: Parameters) -> Iterator[str]:
    for name, value in parameters.model_dump(mode="json", exclude_none=True).items():
        if name not in ("node", "home", "traffic"):
            yield f"{name} {value}"


@dataclass(frozen=True)
class _Model:
    path: Path
    machine: Machine
    costs: CostModel

    def latency_s(self, given: Parameters) -> float | None:
        """A random cycle stays in the first cache that holds it; else each load misses them all."""
        assert given.size is not None
        if given.node != given.home:
            return None
        node = self._node(given)
        caches = sorted(self.machine.nodes[node].caches, key=lambda cache: cache.level)
        for cache in caches:
            if given.size.value <= cache.size_bytes and cache.latency_ns is not None:
                return cache.latency_ns * 1e-9
        return float(self.costs.idle_s[node, node])

    def read_Bps(self, given: Parameters) -> float | None:
        """Threads stream as fast as their slots let them, or memory gives."""
        if given.node != given.home or given.threads is None:
            return None
        node = self._node(given)
        one = self.costs.streaming_misses[node] * LINE_BYTES / self.costs.idle_s[node, node]
        return float(np.fmin(given.threads * one, self.costs.memory_Bps[node]))

    def lookup_s(self, given: Parameters) -> float | None:
        """A key of a batch, looked up by one worker."""
        return self._walk_s(LOOKUP, "lookup", given)

    def upsert_s(self, given: Parameters) -> float | None:
        """A key of a batch, upserted by one worker."""
        return self._walk_s(UPSERT, "upsert", given)

    def _walk_s(self, scenario: str, operation: str, given: Parameters) -> float | None:
        """What the flow plane counts for the walk alone, without routing."""
        if given.keys is None or given.batch is None:
            return None
        settings = (
            f"workload.objects.index.keys={given.keys}",
            f"system.batch={given.batch}",
            "system.threads=1",
            "system.nodes=1",
            "horizon=1 ms",
        )
        record = run_scenario(load_scenario(scenario, machine=str(self.path), settings=settings))
        found = record.why[operation].demands.get(WALK)
        return None if found is None else found * 1e-9

    def routing_s(self, given: Parameters) -> float | None:
        """A command looked up in the partition table, appended, and its part of a flush."""
        if given.targets is None or given.buffer is None:
            return None
        counts = self.costs.instructions
        commands = (given.buffer.value - HEADER_BYTES) / COMMAND_BYTES
        flush = counts.flush_fixed + counts.flush_line * given.buffer.value / LINE_BYTES
        instructions = split_instructions(self.costs, given.targets)
        first = next(k for k, node in enumerate(self.machine.nodes) if node.cores)
        return float(self.costs.core_s(instructions + flush / commands)[first])

    def contended_s(self, given: Parameters) -> float | None:
        """A change of a word that all threads change: its line goes from core to core for each."""
        if given.threads is None or given.threads < 2 or given.home is None:
            return None
        home = next(k for k, node in enumerate(self.machine.nodes) if node.id == given.home)
        return float(given.threads * self.costs.handed_s[home, home])

    def _node(self, given: Parameters) -> int:
        return next(k for k, node in enumerate(self.machine.nodes) if node.id == given.node)


PREDICTED: Mapping[str, Known] = {
    "latency": _Model.latency_s,
    "read-bandwidth": _Model.read_Bps,
    "index-lookup": _Model.lookup_s,
    "index-upsert": _Model.upsert_s,
    "routing": _Model.routing_s,
    "fetch-add": _Model.contended_s,
    "cas-increment": _Model.contended_s,
}
