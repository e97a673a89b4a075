"""What ``numatwin machine measure`` found, as observations; which figures are not used, and why."""

from collections import Counter
from collections.abc import Mapping

from ...inputs import Document
from ...inputs.quantities import size_text
from ...topologies import description_from_document
from ...topologies.build import build_machine
from ...topologies.measurements import Measurement
from ..measure.bandwidth import TRAFFICS
from .observation import (
    ATOMIC,
    CACHE,
    IDLE,
    LINE,
    LOADED,
    MACHINE_READ,
    MIX,
    NO_PARAMETER,
    RANDOM,
    READ,
    HostReader,
    Measured,
    Observation,
    size_of,
    spread_of,
)
from .predictions import Reader, engine_calibrations

MEMORY_CACHES = 4.0  # a working set this many times the last cache lies in memory

DERIVED = "derived from other figures"
BETWEEN = "between two levels of the caches"
TAKES_NONE = "0: below the resolution of the clock"
SLOTS = "the cores, not the memory, set its pace"


def read_measured(document: Document) -> Measured:
    """The measurements of a machine file; raises InputError where there are none."""
    description = description_from_document(document)
    if not description.measurements:
        raise document.error(
            (), "no measurements", expected="a file that 'numatwin machine measure' wrote"
        )
    machine = build_machine(description)
    reader = HostReader(document, description, machine)
    readers = dict(READERS)
    for engine in engine_calibrations():
        readers |= engine.readers
    found: list[Observation] = []
    unused: Counter[str] = Counter()
    for reader.at, measurement in enumerate(description.measurements):
        read = readers.get(measurement.name)
        result: Observation | str = NO_PARAMETER
        if read is not None:
            result = read(reader, measurement) if measurement.value.value > 0 else TAKES_NONE
        if isinstance(result, str):
            if result:
                unused[result] += 1
        else:
            found.append(result)
    cpu = description.host.cpu_model if description.host is not None else None
    homes = frozenset(node.id for node in machine.nodes if node.memory_bytes != 0)
    return Measured(reader.origin, tuple(found), dict(unused), homes=homes, cpu_model=cpu or "")


def _idle(reader: HostReader, measurement: Measurement) -> Observation | str:
    ends, size = reader.ends(measurement), size_of(measurement)
    label = f"idle latency, {ends['node']} from {ends['home']}"
    if measurement.name == "latency" and size is not None:
        label += f", {size_text(size)}"
    return reader.observation(IDLE, measurement, label, ends, size_bytes=size)


def _latency(reader: HostReader, measurement: Measurement) -> Observation | str:
    size, at = size_of(measurement) or 0.0, reader.ends(measurement)["node"]
    for level, low, high in reader.sizes():
        if low <= size <= high:
            return _cache(reader, measurement, level, f", {size_text(size)}")
    caches = [node.caches for node in reader.machine.nodes if node.id == at]
    last = max((cache.size_bytes for cache in sum(caches, ())), default=0.0)
    return _idle(reader, measurement) if size >= MEMORY_CACHES * last else BETWEEN


def _cache(
    reader: HostReader, measurement: Measurement, level: int | None = None, of: str = ""
) -> Observation | str:
    level = measurement.parameters.level if level is None else level
    at, size = {"node": reader.ends(measurement)["node"], "level": level}, size_of(measurement)
    label = f"L{level} cache latency{of}"
    return reader.observation(CACHE, measurement, label, at, size_bytes=size)


def _read(reader: HostReader, measurement: Measurement) -> Observation | str:
    ends, threads = reader.ends(measurement), measurement.parameters.threads
    label = f"read bandwidth, {ends['node']} from {ends['home']}"
    if threads is not None:
        label += f", {threads} thread{'s' if threads != 1 else ''}"
    return reader.observation(READ, measurement, label, {**ends, "threads": threads})


def _random(reader: HostReader, measurement: Measurement) -> Observation | str:
    at, size = reader.ends(measurement), size_of(measurement)
    return reader.observation(RANDOM, measurement, "random reads of one core", at, size_bytes=size)


def _loaded(reader: HostReader, measurement: Measurement) -> Observation | str:
    load = reader.by_delay.get((measurement.parameters.threads, measurement.parameters.delay))
    if load is None:
        return "without the bandwidth that goes with it"
    at, label = {"load": load.value.value}, f"loaded latency at {load.value.value / 1e9:.4g} GB/s"
    return reader.observation(LOADED, measurement, label, at, load_spread=spread_of(load))


def _mix(reader: HostReader, measurement: Measurement) -> Observation | str:
    traffic = TRAFFICS.get(str(measurement.parameters.traffic))
    if traffic is None or traffic.mix is None:
        return NO_PARAMETER
    name, written = traffic.mix, traffic.written
    if written > 0.5:
        return "only writes: the memory bus has no turnaround"
    node = reader.ends(measurement)["home"]
    reads = [
        m.value.value
        for m in reader.description.measurements
        if m.name == "memory.bandwidth" and reader.ends(m) == {"node": node, "home": node}
    ]
    if reads and measurement.value.value > 1.1 * max(reads):
        return SLOTS
    label = f"{name}, node {node}" if len(reader.machine.nodes) > 1 else name
    at = {"written": written, "name": name, "node": node}
    return reader.observation(MIX, measurement, label, at)


def _line(reader: HostReader, measurement: Measurement) -> Observation | str:
    """A message between two cores of a node, or what atomic operations make of it."""
    threads = measurement.parameters.threads or 2
    if measurement.name != "message.latency":
        if threads == 1:
            return reader.observation(ATOMIC, measurement, f"{measurement.name}, one thread", {})
        at = {"operation": measurement.name, "threads": threads}
        return reader.observation(LINE, measurement, f"{measurement.name}, {threads} threads", at)
    cpu, peer = measurement.parameters.cpu, measurement.parameters.peer
    if reader.node_of(cpu) != reader.node_of(peer):
        return "between nodes: the cost model takes the latency of their memory"
    at = {"operation": "message", "threads": 2}
    return reader.observation(LINE, measurement, f"message between cores {cpu} and {peer}", at)


READERS: Mapping[str, Reader] = {
    "memory.latency": _idle,
    "latency": _latency,
    "cache.latency": _cache,
    "memory.bandwidth": _read,
    "read-bandwidth": _read,
    "machine.bandwidth": lambda reader, measurement: reader.observation(
        MACHINE_READ, measurement, "read bandwidth of the machine", {}
    ),
    "random_reads": _random,
    "outstanding_misses": lambda reader, measurement: DERIVED,
    "streaming_misses": lambda reader, measurement: DERIVED,
    "loaded.latency": _loaded,
    "loaded.bandwidth": lambda reader, measurement: "",  # stands with its latency
    "mix-bandwidth": _mix,
    "stream-bandwidth": lambda reader, measurement: DERIVED,
    "message.latency": _line,
    "fetch-add": _line,
    "cas-increment": _line,
    "step-word-add": lambda reader, measurement: reader.observation(
        ATOMIC, measurement, "an atomic add to a word of shared memory", {}
    ),
}
