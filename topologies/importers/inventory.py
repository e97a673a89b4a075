"""What importers find, collected into a MachineDescription.

Which processors a machine has, from /proc/cpuinfo or from hwloc's infos.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ...inputs import Quantity
from ...inputs.grouping import by_key
from ...inputs.number_sets import format_list
from ...inputs.quantities import read_quantity
from ..schema import (
    Cache,
    LoadedPoint,
    MachineDescription,
    Memory,
    MemorySideCache,
    NodeGroup,
    NodeType,
    ReadWriteMix,
)
from ..schema_types import ProcessorIdentity

Pair = tuple[int, int]
"""Initiator and home, both node numbers."""

CACHE_LEVEL_MAX = 4  # what the schema has

T = TypeVar("T")


@dataclass(frozen=True)
class Core:
    """A core: its hardware threads by CPU number, and what is known of it."""

    cpus: frozenset[int]
    package: str | None = None
    clock: Quantity | None = None
    processor: ProcessorIdentity | None = None


@dataclass(frozen=True)
class CacheFacts:
    """One instance of a cache, with the CPUs that share it."""

    level: int
    size_bytes: int
    line_bytes: int | None
    cpus: frozenset[int]
    ways: int | None = None


@dataclass(frozen=True)
class NodeFacts:
    """A NUMA node. ``cpus`` None: which CPUs it has is unknown; ``memory_bytes`` None likewise.

    ``side_caches``: (bytes, bytes of a line) of each cache in front of its memory. ``package``: its
    own, where that is not the one of its cores. ``memory_kind`` empty: DRAM if it may have CPUs.
    """

    id: int
    cpus: frozenset[int] | None
    memory_bytes: int | None
    memory_kind: str = ""
    side_caches: tuple[tuple[int, int | None], ...] = ()
    package: str | None = None


@dataclass
class Inventory:
    """A machine as a tool sees it; what is unknown stays empty."""

    name: str
    source: str
    title: str = ""
    nodes: list[NodeFacts] = field(default_factory=list)
    cores: list[Core] = field(default_factory=list)
    caches: list[CacheFacts] = field(default_factory=list)
    slit: Mapping[Pair, int] | None = None
    latency: dict[Pair, Quantity] = field(default_factory=dict)
    bandwidth: dict[Pair, Quantity] = field(default_factory=dict)
    loaded_latency: list[LoadedPoint] = field(default_factory=list)
    read_write_mixes: list[ReadWriteMix] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def description(self) -> MachineDescription:
        """The description; raises ValueError (pydantic's) for a value beyond its bounds."""
        nodes = sorted(self.nodes, key=lambda node: node.id)
        kinds, groups = self._kinds_and_groups(nodes)
        names = _type_names(kinds)
        sizes = by_key(zip(kinds, (node.memory_bytes for node in nodes), strict=True))
        usual = {kind: _most_common(size) for kind, size in sizes.items()}
        return MachineDescription(
            name=self.name,
            title=self.title,
            source=self.source,
            notes=tuple(self.notes),
            node_types={names[kind]: _with_size(kind, size) for kind, size in usual.items()},
            nodes=tuple(
                NodeGroup(
                    id=node.id,
                    type=names[kind],
                    group=group,
                    cpus=format_list(node.cpus) if node.cpus else None,
                    memory_size=_bytes(node.memory_bytes)
                    if node.memory_bytes != usual[kind]
                    else None,
                )
                for node, kind, group in zip(nodes, kinds, groups, strict=True)
            ),
            slit=None
            if self.slit is None
            else tuple(tuple(self.slit[a.id, b.id] for b in nodes) for a in nodes),
            pair_latency=_matrix(nodes, self.latency),
            pair_bandwidth=_matrix(nodes, self.bandwidth),
            loaded_latency=tuple(self.loaded_latency),
            read_write_mixes=tuple(self.read_write_mixes),
        )

    def _kinds_and_groups(
        self, nodes: Sequence[NodeFacts]
    ) -> tuple[list[NodeType], list[str | None]]:
        core_of = {cpu: core for core in self.cores for cpu in core.cpus}
        cores_of_cache = [
            {core_of[cpu] for cpu in cache.cpus if cpu in core_of} for cache in self.caches
        ]
        caches_of = by_key((core, k) for k, cores in enumerate(cores_of_cache) for core in cores)
        kinds, groups = [], []
        for node in nodes:
            cores = {core_of[cpu] for cpu in node.cpus or () if cpu in core_of}
            packages = {core.package for core in cores} or {node.package}
            if len(packages) > 1:
                self._note(
                    f"{len(packages)} packages are one node: right where firmware joins them (NUMA "
                    "off, a common bus), not where the tool lacked the system's facts of nodes."
                )
            groups.append(node.package or (packages.pop() if len(packages) == 1 else None))
            kinds.append(self._node_type(node, cores, caches_of, cores_of_cache))
        return kinds, groups

    def _node_type(
        self,
        node: NodeFacts,
        cores: set[Core],
        caches_of: Mapping[Core, list[int]],
        cores_of_cache: Sequence[set[Core]],
    ) -> NodeType:
        memory = Memory(
            kind=node.memory_kind or ("DRAM" if node.cpus is None or node.cpus else "unknown"),
            side_caches=tuple(
                MemorySideCache(size=Quantity.exact(size), line=_bytes(line or None))
                for size, line in node.side_caches
            ),
        )
        if node.cpus is None:
            return NodeType(memory=memory)
        caches_seen = ((k, self.caches[k]) for core in cores for k in caches_of.get(core, ()))
        seen = by_key(
            (cache.level, (cache.size_bytes, len(cores_of_cache[k]), cache.line_bytes, cache.ways))
            for k, cache in caches_seen
        )
        if len({(len(core.cpus), core.clock) for core in cores}) > 1:
            self._note("The cores within a node differ in threads or clock: taken as equal.")
        caches = []
        for level in sorted(seen):
            size, shared, line, ways = _most_common(seen[level])
            if len(set(seen[level])) > 1:
                self._note(f"The L{level} caches within a node differ: the most common is given.")
            caches.append(
                Cache(
                    level=level,
                    size=Quantity.exact(size),
                    shared_by_cores=shared,
                    line=_bytes(line or None),
                    ways=ways,
                )
            )
        return NodeType(
            processor=_identity(cores),
            cores=len(cores),
            threads_per_core=max((len(core.cpus & node.cpus) for core in cores), default=1),
            clock=_most_common([core.clock for core in cores]) if cores else None,
            caches=tuple(caches),
            memory=memory,
        )

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def quantity(text: str, dimension: str, *, doubt: str | None = None) -> Quantity | None:
    """``text`` (``351762.1 MB/s``) as a Quantity, None where it is zero: unknown, in these tools.

    ``doubt`` says why the value is in doubt. Raises ValueError.
    """
    value = read_quantity(text, dimension, zero_allowed=True).value
    if not value:
        return None
    return Quantity(value, value, value, source=doubt, doubtful=doubt is not None)


def clock_of_model(model: str) -> Quantity | None:
    """The nominal clock in a name such as ``Intel(R) Xeon(R) CPU E7-4870 @ 2.40GHz``."""
    match = re.search(r"@ ?(\d{1,3}(?:\.\d{1,6})?) ?([MG]Hz)\b", model, re.ASCII)
    found = quantity(f"{match[1]} {match[2]}", "frequency") if match else None
    if found is None:
        return None
    return Quantity(found.value, found.value, found.value, source="nominal, from the model's name")


def machine_title(models: Iterable[str], packages: int, nodes: int) -> str:
    """``4 × Intel Xeon E7-4870, 4 nodes`` from the processors' own names."""
    names = sorted({re.sub(r"\s+", " ", m).strip() for m in models} - {""})
    count = f"{nodes} node{'s' if nodes != 1 else ''}"
    if not names:
        return f"{packages} packages, {count}" if packages > 1 else count
    model = " and ".join(names)[:200]
    return f"{packages} × {model}, {count}" if packages > 1 else f"{model}, {count}"


def _most_common(values: Sequence[T]) -> T:
    """The value found most often; of several, the first in the order of their text."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], str(value)))


def _type_names(kinds: Sequence[NodeType]) -> dict[NodeType, str]:
    """A short name for each type: what it has, and a number where several have the same."""
    bases: dict[NodeType, str] = {}
    for kind in kinds:
        bases.setdefault(kind, "memory" if kind.cores == 0 else "node")
    counts, taken = Counter(bases.values()), Counter[str]()
    names = {}
    for kind, base in bases.items():
        taken[base] += 1
        names[kind] = base if counts[base] == 1 else f"{base}-{taken[base]}"
    return names


def _identity(cores: Iterable[Core]) -> ProcessorIdentity | None:
    """What most of the cores say, with the number of packages that they are in."""
    processors = [core.processor for core in cores if core.processor is not None]
    if not processors:
        return None
    packages = len({core.package for core in cores})
    return _most_common(processors).model_copy(update={"packages": packages})


def _with_size(kind: NodeType, size_bytes: int | None) -> NodeType:
    memory = kind.memory.model_copy(update={"size": _bytes(size_bytes)})
    return kind.model_copy(update={"memory": memory})


def _bytes(size: int | None) -> Quantity | None:
    return None if size is None else Quantity.exact(size)


def _matrix(
    nodes: Sequence[NodeFacts], values: Mapping[Pair, Quantity]
) -> tuple[tuple[Quantity | None, ...], ...] | None:
    """Rows of initiators, columns of homes; None where nothing is known."""
    if not values:
        return None
    return tuple(tuple(values.get((a.id, b.id)) for b in nodes) for a in nodes)


# /proc/cpuinfo, on each architecture, then hwloc's infos, then lscpu.
_FACTS = {
    "model name": "model_name",
    "vendor_id": "vendor",
    "vendor": "vendor",
    "cpu family": "family",
    "family": "family",
    "model": "model",
    "stepping": "stepping",
    "CPU implementer": "implementer",
    "CPU part": "part",
    "CPUModel": "model_name",
    "CPUVendor": "vendor",
    "CPUFamilyNumber": "family",
    "CPUModelNumber": "model",
    "CPUStepping": "stepping",
    "CPUImplementer": "implementer",
    "CPUPart": "part",
    "Model name": "model_name",
    "Vendor ID": "vendor",
    "CPU family": "family",
    "Model": "model",
    "Stepping": "stepping",
}
_TEXTS = ("model_name", "vendor")
_PVR = re.compile(r"\(pvr ([0-9a-fA-F]{4}) [0-9a-fA-F]{4}\)", re.ASCII)


def cpuinfo_identities(text: str, board: str | None) -> dict[int, ProcessorIdentity]:
    """The processor of each CPU in /proc/cpuinfo; what is not understood is left out."""
    found: dict[int, ProcessorIdentity] = {}
    cpu: int | None = None
    facts: dict[str, object] = {}
    for line in [*text.splitlines(), "processor: end"]:
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        if key == "processor":
            if cpu is not None and facts:
                found[cpu] = _processor(facts, board)
            cpu = int(value) if re.fullmatch(r"\d{1,5}", value, re.ASCII) else None
            facts = {}
        elif key in _FACTS:
            _put(facts, _FACTS[key], value)
        elif key == "cpu" and "POWER" in value.upper():
            facts |= {"model_name": value[:200], "vendor": "IBM-POWER"}
        elif key == "revision" and (match := _PVR.search(value)):
            facts |= {"pvr": int(match[1], 16), "vendor": "IBM-POWER"}
        elif key == "flags" and re.search(r"\bhypervisor\b", value):
            facts["virtual"] = True
    return found


def identity_of(known: Mapping[str, str], board: str | None = None) -> ProcessorIdentity | None:
    """The processor in hwloc's infos of a package, or in the fields of lscpu; None where they say
    nothing of it.
    """
    facts: dict[str, object] = {}
    for name, fact in _FACTS.items():
        if known.get(name, "-") != "-":
            _put(facts, fact, known[name])
    if match := _PVR.search(known.get("CPURevision", known.get("Model", ""))):
        facts["pvr"] = int(match[1], 16)
    if "pvr" in facts or "POWER" in str(facts.get("model_name", "")).upper():
        facts["vendor"] = "IBM-POWER"
    if facts and "Hypervisor vendor" in known:
        facts["virtual"] = True
    return _processor(facts, board) if facts else None


def _put(facts: dict[str, object], field: str, value: str) -> None:
    if field in _TEXTS:
        if value and value.isprintable():
            facts[field] = re.sub(r"\s+", " ", value)[:200]
    elif re.fullmatch(r"\d{1,9}|0x[0-9a-fA-F]{1,8}", value, re.ASCII):
        facts[field] = int(value, 0) if value.startswith("0x") else int(value)


def _processor(facts: Mapping[str, object], board: str | None) -> ProcessorIdentity:
    values = dict(facts)
    if "implementer" in values:
        values["vendor"] = "Arm"
    if board:
        values["board"] = board[:200]
    return ProcessorIdentity.model_validate(values)
