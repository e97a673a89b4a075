"""The calibration set: the measurements behind a machine file, predicted from that file.

``machine measure`` times primitives alone; a few of its figures become facts of the machine, the
others stand beside them. Each row here compares such a figure with what the cost model makes of the
facts: how much is lost between the measurements and the model, before any real run. A figure that
is itself the fact is left out, as it would say nothing; and so are index operations on keys from
all of 64 bits, as the cost model's indexes have dense ones.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ...sim.machine.costs import CostModel
from ...sim.machine.streams import streamed_Bps
from ...sim.run.statistics import Interval
from ...topologies import Machine
from ...topologies.measurements import Measurement, Parameters
from ..calibrate.predictions import contended_s
from ..measure.bandwidth import TRAFFICS
from ..measure.copying_ahead import double_buffered_s
from ..systems.registry import validations
from .rows import Kind, Row

PLANE = "model"
# From here on a copy is a stream, whose beginning does not count.
COPY_MIN_BYTES = 64 << 10

Known = Callable[["_Model", Parameters], float | None]


def primitive_rows(machine: Machine) -> Iterator[Row]:
    """A row of each figure of the machine file that the cost model can predict."""
    model = _Model(machine, CostModel(machine))
    of_systems = {
        name: predict
        for validation in validations()
        for name, predict in validation.predicted.items()
    }
    for measurement in machine.description.measurements:
        name, given = measurement.name, measurement.parameters
        value: float | None = None
        if name in PREDICTED:
            value = PREDICTED[name](model, given)
        elif name in of_systems:
            value = of_systems[name](machine, given)
        if value is not None:
            yield _row(measurement, value)


def _row(measurement: Measurement, value: float) -> Row:
    is_time = measurement.value.kind == "time"
    scale, unit = (1e9, "ns") if is_time else (1.0, measurement.value.unit)
    low, high = measurement.ends
    kind: Kind = "time" if is_time else "bandwidth"
    texts = _parameter_texts(measurement.parameters)
    size = measurement.parameters.size
    return Row(
        scenario=f"{measurement.name}: {', '.join(texts)}",
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


def _parameter_texts(parameters: Parameters) -> Iterator[str]:
    for name, value in parameters.model_dump(mode="json", exclude_none=True).items():
        if name not in ("node", "home") and value != "read":
            yield f"{name} {value}"


@dataclass(frozen=True)
class _Model:
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
        """Threads stream as fast as their slots let them, or memory gives. One thread alone is how
        these slots were found.
        """
        if given.node != given.home or given.threads is None or given.threads == 1:
            return None
        node = self._node(given)
        return streamed_Bps(self.costs, node, node, given.threads)

    def mix_Bps(self, given: Parameters) -> float | None:
        """Reads and writes of plain stores, in other parts than those that the turnaround is of."""
        mix = TRAFFICS.get(given.traffic or "")
        if mix is None or mix.kind not in ("COPY", "TRIAD") or given.node != given.home:
            return None
        return float(self.costs.mixed_memory_Bps(mix.written)[self._node(given)])

    def atomic_s(self, operation: str, given: Parameters) -> float | None:
        """On a word: of one core, or of several that take the line from one another."""
        costs = self.machine.description.processes
        if costs is None or given.threads is None:
            return None
        if given.threads == 1:
            return costs.word_add.value
        if costs.line is None or len(self.machine.nodes) > 1:
            return None
        return contended_s(operation, given.threads, costs.line.value, costs.word_add.value)

    def copy_s(self, given: Parameters) -> float | None:
        """A copy within memory: each line is read, another one fetched, and written back, as fast
        as a core streams. Short copies are not streams.
        """
        if given.size is None or given.place != "memory" or given.size.value < COPY_MIN_BYTES:
            return None
        if given.node != given.home:
            return None
        node = self._node(given)
        return 2.0 * given.size.value / streamed_Bps(self.costs, node, node, 1, written=0.5)

    def copied_scan_s(self, given: Parameters) -> float | None:
        """A scan that a thread copies ahead for: from its copies and its scans of a cache, each
        measured alone, by the rule of double buffering.
        """
        alone = [
            measurement.value.value
            for name in ("copies-ahead", "cached-scan")
            for measurement in self.machine.description.measurements
            if measurement.name == name and measurement.parameters == given
        ]
        if len(alone) != 2 or given.size is None or given.buffer is None:
            return None
        chunks = -(-given.size.value // given.buffer.value)
        return double_buffered_s(alone[0], alone[1], chunks)

    def _node(self, given: Parameters) -> int:
        return next(k for k, node in enumerate(self.machine.nodes) if node.id == given.node)


PREDICTED: Mapping[str, Known] = {
    "latency": _Model.latency_s,
    "read-bandwidth": _Model.read_Bps,
    "mix-bandwidth": _Model.mix_Bps,
    "copy": _Model.copy_s,
    "copied-scan": _Model.copied_scan_s,
    "fetch-add": lambda model, given: model.atomic_s("fetch-add", given),
    "cas-increment": lambda model, given: model.atomic_s("cas-increment", given),
}
