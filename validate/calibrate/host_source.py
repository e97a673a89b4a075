"""What ``numatwin machine measure`` found, as observations; which figures are not used, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, get_args

from ...inputs import Document
from ...sim.systems.commits.facts import EndOperation
from ...sim.systems.eris.parts import WALK
from ...topologies import description_from_document
from ...topologies.build import build_machine
from ...topologies.machine import Machine
from ...topologies.measurements import Measurement
from ...topologies.schema import MachineDescription
from ..measure.bandwidth import TRAFFICS
from .native_prediction import index_run
from .observation import (
    ATOMIC,
    BLOCK,
    CACHE,
    IDLE,
    INDEX,
    LINE,
    LOADED,
    MACHINE_READ,
    MESSAGE,
    MIX,
    NO_PARAMETER,
    RANDOM,
    READ,
    ROUTING,
    Measured,
    Observation,
    Origin,
)
from .process_costs import BLOCK_STEPS, PARTS

# Of a normal distribution: standard deviations between its quartiles.
QUARTILES = 1.349
# A noisy figure holds others' work too: so many times its spread.
NOISY = 3.0
# A working set from which a cache level answers for sure: around the size that was chosen for it.
NEAR_LEVEL = (0.75, 1.5)
# Buffers that a core's private cache holds with room to spare.
PRIVATE_PART = 0.5
MULTICAST_BYTES, FLUSHES_HELD = 4096, 8  # of the routing benchmark
MEMORY_CACHES = 4.0  # a working set this many times the last cache lies in memory

DERIVED = "derived from other figures"
BETWEEN = "between two levels of the caches"
SPARSE = "keys from all of 64 bits: the cost model's are dense"
STALLS = "an index beyond the caches: memory, not the core, sets its pace"
KEY_BYTES = 9.0  # its value, and what the tree above takes
SPILLS = "buffers beyond a core's private cache"
TAKES_NONE = "0: less than a clock tells"
SLOTS = "the cores, not the memory, set its pace"

Reader = Callable[["HostReader", Measurement], Observation | str]


def read_measured(document: Document) -> Measured:
    """The measurements of a machine file; raises InputError where there are none."""
    description = description_from_document(document)
    if not description.measurements:
        raise document.error(
            (), "no measurements", expected="a file that 'numatwin machine measure' wrote"
        )
    machine = build_machine(description)
    return HostReader(document, description, machine).measured()


class HostReader:
    """Reads one file; ``machine`` is the one that it describes, by which sizes are judged."""

    def __init__(
        self, document: Document, description: MachineDescription, machine: Machine
    ) -> None:
        self.document, self.description, self.machine = document, description, machine
        host = description.host
        date = host.date[:10] if host is not None else "date unknown"
        name = document.file.rsplit("/", 1)[-1]
        label = "".join(c if c.isprintable() else "?" for c in name)
        self.origin = Origin(document.file, label, date)
        self.by_delay: dict[tuple[object, ...], Measurement] = {
            (m.parameters.threads, m.parameters.delay): m
            for m in description.measurements
            if m.name == "loaded.bandwidth"
        }

    def measured(self) -> Measured:
        """All that is used, and how many figures are not."""
        found: list[Observation] = []
        unused: Counter[str] = Counter()
        for at, one in enumerate(self.description.measurements):
            self.at = at
            read = READERS.get(one.name)
            result: Observation | str = NO_PARAMETER
            if read is not None:
                result = read(self, one) if one.value.value > 0 else TAKES_NONE
            if isinstance(result, str):
                if result:
                    unused[result] += 1
            else:
                found.append(result)
        return Measured(self.origin, tuple(found), dict(unused))

    def observation(
        self, kind: str, one: Measurement, label: str, at: Mapping[str, Any], **more: Any
    ) -> Observation:
        """One figure, with its spread and its line."""
        mark = self.document.marks.get(("measurements", self.at))
        value = one.value
        return Observation(
            kind,
            label,
            value.value,
            value.unit,
            self.origin,
            spread=spread_of(one),
            at=at,
            line=mark[0] if mark else None,
            **more,
        )

    def ends(self, one: Measurement) -> dict[str, int]:
        """Node and home; of a host with one node they go without saying."""
        first = next((n.id for n in self.machine.nodes if n.cores), self.machine.nodes[0].id)
        node = one.parameters.node if one.parameters.node is not None else first
        home = one.parameters.home if one.parameters.home is not None else node
        return {"node": node, "home": home}

    def sizes(self) -> list[tuple[int, float, float]]:
        """(level, smallest, largest) working sets that a level of the first node answers."""
        node = next((n for n in self.machine.nodes if n.cores), self.machine.nodes[0])
        found, before = [], 0.0
        for cache in node.caches:
            chosen = min(3 * before, math.sqrt(before * cache.size_bytes))
            chosen = chosen or cache.size_bytes / 2
            low = 0.0 if not before else NEAR_LEVEL[0] * chosen
            found.append((cache.level, low, min(NEAR_LEVEL[1] * chosen, 0.8 * cache.size_bytes)))
            before = cache.size_bytes
        return found

    def node_of(self, cpu: int | None) -> int | None:
        """The id of the node that a CPU belongs to; None where that is not told."""
        return next((n.id for n in self.machine.nodes if cpu in n.cpus), None)

    def private_bytes(self) -> float:
        """The largest cache that a core of the first node has to itself."""
        node = next((n for n in self.machine.nodes if n.cores), self.machine.nodes[0])
        own = [cache.size_bytes for cache in node.caches if cache.shared_by_cores == 1]
        return max(own, default=0.0)


def spread_of(one: Measurement) -> float:
    """Relative standard deviation of the figure: by its quartiles, as if it were normal."""
    if one.quartiles is None:
        return 0.01
    low, high = one.quartiles
    spread = (high.value - low.value) / QUARTILES / max(one.value.value, 1e-300)
    return max(spread, 0.005) * (NOISY if one.noisy else 1.0)


def _memory_latency(reader: HostReader, one: Measurement) -> Observation | str:
    ends = reader.ends(one)
    label = f"idle latency, {ends['node']} from {ends['home']}"
    return reader.observation(IDLE, one, label, ends, size_bytes=_size(one))


def _latency(reader: HostReader, one: Measurement) -> Observation | str:
    size, sizes = _size(one) or 0.0, reader.sizes()
    ends = reader.ends(one)
    for level, low, high in sizes:
        if low <= size <= high:
            at = {"node": ends["node"], "level": level}
            label = f"L{level} cache latency, {_bytes(size)}"
            return reader.observation(CACHE, one, label, at, size_bytes=size)
    node = next((n for n in reader.machine.nodes if n.id == ends["node"]), None)
    last = max((cache.size_bytes for cache in node.caches), default=0.0) if node else 0.0
    if size >= MEMORY_CACHES * last:
        label = f"idle latency, {ends['node']} from {ends['home']}, {_bytes(size)}"
        return reader.observation(IDLE, one, label, ends, size_bytes=size)
    return BETWEEN


def _cache_latency(reader: HostReader, one: Measurement) -> Observation | str:
    at = {"node": reader.ends(one)["node"], "level": one.parameters.level}
    label = f"L{one.parameters.level} cache latency"
    return reader.observation(CACHE, one, label, at, size_bytes=_size(one))


def _read(reader: HostReader, one: Measurement) -> Observation | str:
    ends = reader.ends(one)
    threads = one.parameters.threads
    label = f"read bandwidth, {ends['node']} from {ends['home']}"
    if threads is not None:
        label += f", {threads} thread{'s' if threads != 1 else ''}"
    return reader.observation(READ, one, label, {**ends, "threads": threads})


def _machine_read(reader: HostReader, one: Measurement) -> Observation | str:
    return reader.observation(MACHINE_READ, one, "read bandwidth of the machine", {})


def _random(reader: HostReader, one: Measurement) -> Observation | str:
    return reader.observation(
        RANDOM, one, "random reads of one core", reader.ends(one), size_bytes=_size(one)
    )


def _loaded(reader: HostReader, one: Measurement) -> Observation | str:
    load = reader.by_delay.get((one.parameters.threads, one.parameters.delay))
    if load is None:
        return "without the bandwidth that goes with it"
    label = f"loaded latency at {load.value.value / 1e9:.4g} GB/s"
    at = {"load": load.value.value}
    return reader.observation(LOADED, one, label, at, load_spread=spread_of(load))


def _mix(reader: HostReader, one: Measurement) -> Observation | str:
    traffic = TRAFFICS.get(str(one.parameters.traffic))
    if traffic is None or traffic.mix is None:
        return NO_PARAMETER
    name, written = traffic.mix, traffic.written
    if written > 0.5:
        return "writes alone: the memory's bus need not turn round"
    node = reader.ends(one)["home"]
    reads = [
        m.value.value
        for m in reader.description.measurements
        if m.name == "memory.bandwidth" and reader.ends(m) == {"node": node, "home": node}
    ]
    if reads and one.value.value > 1.1 * max(reads):
        return SLOTS
    several = len(reader.machine.nodes) > 1
    label = f"{name}{f', node {node}' if several else ''}"
    return reader.observation(MIX, one, label, {"written": written, "name": name, "node": node})


def _routing(reader: HostReader, one: Measurement) -> Observation | str:
    targets, buffer = one.parameters.targets, one.parameters.buffer
    if targets is None or buffer is None:
        return NO_PARAMETER
    held = targets * (FLUSHES_HELD + 1) * (buffer.value + MULTICAST_BYTES)
    if held > PRIVATE_PART * reader.private_bytes():
        return SPILLS
    label = f"routing to {targets} targets, buffers of {_bytes(buffer.value)}"
    at = {"targets": targets, "buffer": buffer.value}
    return reader.observation(ROUTING, one, label, at, size_bytes=buffer.value)


def _index(reader: HostReader, one: Measurement) -> Observation | str:
    keys, batch = one.parameters.keys, one.parameters.batch
    if keys is None or batch is None:
        return NO_PARAMETER
    node = next((n for n in reader.machine.nodes if n.cores), reader.machine.nodes[0])
    last = max((cache.size_bytes for cache in node.caches), default=0.0)
    if keys * KEY_BYTES > PRIVATE_PART * last:
        return STALLS
    operation = one.name.removeprefix("walk-")
    label = f"{operation} of {keys:,} keys, {batch} at a time"
    at = {"run": index_run(operation, keys, batch), "step": WALK, "keys": keys, "batch": batch}
    return reader.observation(INDEX, one, label, at, size_bytes=keys * KEY_BYTES)


def _line(reader: HostReader, one: Measurement) -> Observation | str:
    """A message between two cores of a node, or what atomic operations make of it."""
    threads = one.parameters.threads or 2
    if one.name != "message.latency":
        if threads == 1:
            return reader.observation(ATOMIC, one, f"{one.name}, one thread", {})
        at = {"operation": one.name, "threads": threads}
        return reader.observation(LINE, one, f"{one.name}, {threads} threads", at)
    cpu, peer = one.parameters.cpu, one.parameters.peer
    if reader.node_of(cpu) != reader.node_of(peer):
        return "between nodes: the cost model takes the latency of their memory"
    at = {"operation": "message", "threads": 2}
    return reader.observation(LINE, one, f"message between cores {cpu} and {peer}", at)


def _word_add(reader: HostReader, one: Measurement) -> Observation | str:
    return reader.observation(ATOMIC, one, "an atomic add to a word of shared memory", {})


def _block(reader: HostReader, one: Measurement) -> Observation | str:
    size, region = _size(one), one.parameters.region
    if size is None or region is None:
        return NO_PARAMETER
    step = one.name.rsplit("-", 1)[-1]
    label = f"{step} of {_bytes(size)} among {_bytes(region.value)}"
    at = {"step": step, "size": size, "region": region.value}
    return reader.observation(BLOCK, one, label, at, size_bytes=size)


def _message(reader: HostReader, one: Measurement) -> Observation | str:
    """One end of messages over a transport."""
    _, part, operation = one.name.split("-", 2)
    size, count = _size(one), one.parameters.batch
    transport = one.parameters.transport
    if size is None or count is None or transport is None:
        return NO_PARAMETER
    label = f"{part} {operation} over {transport}, {_bytes(size)}, {count} at once"
    at = {
        "transport": str(transport), "operation": operation, "part": part, "size": size,
        "count": count,
    }  # fmt: skip
    return reader.observation(MESSAGE, one, label, at, size_bytes=size)


def _size(one: Measurement) -> float | None:
    return one.parameters.size.value if one.parameters.size is not None else None


def _bytes(size: float) -> str:
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size:g} B"


READERS: Mapping[str, Reader] = {
    "memory.latency": _memory_latency,
    "latency": _latency,
    "cache.latency": _cache_latency,
    "memory.bandwidth": _read,
    "read-bandwidth": _read,
    "machine.bandwidth": _machine_read,
    "random_reads": _random,
    "outstanding_misses": lambda reader, one: DERIVED,
    "streaming_misses": lambda reader, one: DERIVED,
    "loaded.latency": _loaded,
    "loaded.bandwidth": lambda reader, one: "",  # stands with its latency
    "mix-bandwidth": _mix,
    "stream-bandwidth": lambda reader, one: DERIVED,
    "routing": _routing,
    "walk-lookup": _index,
    "walk-upsert": _index,
    "index-lookup": lambda reader, one: SPARSE,
    "index-upsert": lambda reader, one: SPARSE,
    "message.latency": _line,
    "fetch-add": _line,
    "cas-increment": _line,
    "step-word-add": _word_add,
    **{f"step-block-{step}": _block for step in BLOCK_STEPS},
    **{f"step-{part}-{verb}": _message for part in PARTS for verb in get_args(EndOperation)},
}
