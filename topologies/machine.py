"""The machine as the planes see it: numbers in SI units, a graph, a route for every pair."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .copy_engines import CopyEngine
from .routes import Floats, Ints, LinkEdge, Routes
from .schema import KernelFacts, MachineDescription

__all__ = [
    "CacheLevel",
    "Floats",
    "HubVertex",
    "Ints",
    "LinkEdge",
    "Machine",
    "Node",
    "Routes",
    "TlbLevel",
]


@dataclass(frozen=True)
class CacheLevel:
    """A cache level: bytes of one instance, cores that share it, latency, ways of a set (None:
    unknown).
    """

    level: int
    size_bytes: float
    shared_by_cores: int
    line_bytes: float
    latency_ns: float | None
    ways: int | None = None


@dataclass(frozen=True)
class TlbLevel:
    """A translation buffer for pages of one size: entries, and cores that share them."""

    page_bytes: float
    entries: int
    shared_by_cores: int


@dataclass(frozen=True)
class Node:
    """A NUMA node: cores, caches and memory; ``id`` is the operating system's number.

    Values that a description leaves out are None (``memory_bytes``: NaN; ``cores``: 0), never
    guessed here.
    """

    id: int
    cpus: tuple[int, ...]
    cores: int
    threads_per_core: int
    group: str | None
    memory_bytes: float
    memory_bandwidth_Bps: float | None
    memory_latency_ns: float | None
    memory_kind: str
    side_cache_bytes: tuple[float, ...]
    clock_Hz: float | None
    ipc: float | None
    outstanding_misses: float | None
    outstanding_misses_together: float | None
    streaming_misses: float | None
    reorder_window: float | None
    caches: tuple[CacheLevel, ...]
    tlbs: tuple[TlbLevel, ...]
    core_active_W: float | None
    core_idle_W: float | None
    memory_energy_J_per_bit: float | None
    stream_stall: float | None = None
    stream_uncovered: float | None = None
    die_Bps: float | None = None
    die_cores: int | None = None
    write_turnaround: float | None = None
    home_agent_entries: float | None = None
    system_call_ns: float | None = None
    kernel: KernelFacts = field(default_factory=KernelFacts)

    @property
    def threads(self) -> int:
        """Hardware threads of the node."""
        return len(self.cpus)

    @property
    def bytes_above_last_cache(self) -> float:
        """Of the caches between the first level, which counts as part of its core, and a last-level
        cache: of as many as one of these has above it.
        """
        last = max(self.caches, key=lambda cache: cache.level, default=None)
        if last is None:
            return 0.0
        cores = max(1, min(self.cores, last.shared_by_cores))
        return sum(
            cache.size_bytes * -(-cores // cache.shared_by_cores)
            for cache in self.caches
            if 1 < cache.level < last.level
        )

    @property
    def exclusive(self) -> bool:
        """Whether a last-level cache is too small to include those above it: then it holds what
        these have dropped.
        """
        last = max(self.caches, key=lambda cache: cache.level, default=None)
        return last is not None and self.bytes_above_last_cache > last.size_bytes

    def cache(self, level: int) -> CacheLevel | None:
        """The cache of that level, None where the description has none."""
        return next((cache for cache in self.caches if cache.level == level), None)


@dataclass(frozen=True)
class HubVertex:
    """A vertex of the graph without cores or memory."""

    id: str
    kind: str
    group: str | None
    bandwidth_Bps: float | None


@dataclass(frozen=True)
class Machine:
    """A machine. Matrices are (n, n) in the order of ``nodes``, row initiator, column home.

    NaN is an unknown value. ``vertices`` are the nodes, then the hubs. Directed link 2k leads from
    the first end of ``links[k]`` to the second, 2k + 1 back.
    """

    description: MachineDescription
    nodes: tuple[Node, ...]
    hubs: tuple[HubVertex, ...]
    links: tuple[LinkEdge, ...]
    latency_ns: Floats
    bandwidth_Bps: Floats
    distance_class: Ints
    """(n, n) position in ``description.distance_classes``, -1 where none fits."""
    slit: Floats | None
    loaded_latency: tuple[tuple[float, float], ...]
    """(total bandwidth in B/s, latency in ns), by rising bandwidth."""
    routes: Routes
    copy_engines: tuple[CopyEngine, ...] = ()
    """By vertex."""
    doubtful: tuple[str, ...] = field(default=())
    """Paths of the fields whose source leaves them in doubt."""
    drawn_from: "Machine | None" = field(default=None, compare=False, repr=False)
    """The machine whose facts this one's are drawn around: what holds transfers there holds them
    here, too, so that a draw moves a limit and does not put another in its place."""

    svg: "ClassVar[Callable[[Machine], str]]"
    """Its picture; the package has what draws it."""

    @property
    def name(self) -> str:
        """The machine's name."""
        return self.description.name

    @cached_property
    def plain(self) -> dict[str, Any]:
        """Its description as plain JSON values, not to be changed; without what facts were measured
        by, which no plane reads and each record would take along.
        """
        return self.description.model_dump(mode="json", exclude_none=True, exclude={"measurements"})

    @cached_property
    def plain_text(self) -> str:
        """The same as JSON text, its keys sorted."""
        return json.dumps(self.plain, sort_keys=True)

    @property
    def threads(self) -> int:
        """Hardware threads in all."""
        return sum(node.threads for node in self.nodes)

    @property
    def hops(self) -> Floats:
        """(n, n) links on the route of each pair, NaN where no links are known."""
        return self.routes.hops

    def _repr_html_(self) -> str:
        """Its picture, in a notebook."""
        return self.svg()

    def vertex_name(self, vertex: int) -> int | str:
        """The id of a vertex, as the description has it."""
        n = len(self.nodes)
        return self.nodes[vertex].id if vertex < n else self.hubs[vertex - n].id

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """(2L,) readable names of the directed links: ``0→harp3 (qpi)``."""
        names = []
        for link in self.links:
            a, b = (self.vertex_name(end) for end in link.ends)
            names += [f"{a}→{b} ({link.kind})", f"{b}→{a} ({link.kind})"]
        return tuple(names)

    def link_name(self, directed: int) -> str:
        """The readable name of one directed link."""
        return self.link_names[directed]

    def as_json(self) -> dict[str, Any]:
        """The stable JSON form of ``numatwin machine show --json``."""

        def square(matrix: Floats | None) -> list[list[float | None]] | None:
            if matrix is None:
                return None
            return [[None if math.isnan(x) else _plain(x) for x in row] for row in matrix.tolist()]

        n = len(self.nodes)
        unknown = np.full((n, n), np.nan)
        return {
            "name": self.name,
            "nodes": [
                {"id": node.id, "cpus": list(node.cpus), "memory_bytes": _whole(node.memory_bytes)}
                for node in self.nodes
            ],
            "slit": square(self.slit if self.slit is not None else unknown),
            "hops": square(self.hops),
            "latency_ns": square(self.latency_ns),
            "bandwidth_Bps": square(self.bandwidth_Bps),
            "links": [
                {
                    "ends": [self.vertex_name(end) for end in link.ends],
                    "bandwidth_Bps": _plain(link.bandwidth_Bps),
                }
                for link in self.links
            ],
            "loaded_latency": [
                {"bandwidth_Bps": _plain(bandwidth), "latency_ns": _plain(latency)}
                for bandwidth, latency in self.loaded_latency
            ],
        }


def _plain(x: float) -> float:
    """Without the binary dust of a unit conversion: 129.00000000000003 -> 129."""
    rounded = float(f"{x:.12g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def kept_machines(machine: Machine) -> int:
    """How many of its size may be kept: a machine of 1,024 nodes takes some 60 MB."""
    return min(64, 2 + 2**22 // len(machine.nodes) ** 2)


def _whole(x: float) -> int | None:
    return None if math.isnan(x) else int(x)
