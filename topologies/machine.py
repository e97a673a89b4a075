"""The machine as the planes see it: numbers in SI units, a graph, a route for every pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from .schema import MachineDescription

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CacheLevel:
    """A cache level: bytes of one instance, cores that share it, latency (None: unknown)."""

    level: int
    size_bytes: float
    shared_by_cores: int
    line_bytes: float
    latency_ns: float | None


@dataclass(frozen=True)
class Node:
    """A NUMA node: cores, caches and memory; ``id`` is the operating system's number.

    Values that a description leaves out are None, never guessed here.
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
    reorder_window: float | None
    caches: tuple[CacheLevel, ...]
    core_active_W: float | None
    core_idle_W: float | None
    memory_energy_J_per_bit: float | None

    @property
    def threads(self) -> int:
        """Hardware threads of the node."""
        return self.cores * self.threads_per_core

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
class LinkEdge:
    """A link between two vertices; each direction has the full bandwidth.

    ``ends`` are positions in ``Machine.vertices``. ``kind`` is the link type's name, with
    ``-single`` or ``-dual`` for a split port.
    """

    ends: tuple[int, int]
    kind: str
    bandwidth_Bps: float
    latency_ns: float | None
    data_header_bytes: float
    request_bytes: float
    energy_J_per_bit: float | None


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
    distance_class: npt.NDArray[np.int64]
    """(n, n) position in ``description.distance_classes``, -1 where none fits."""
    slit: Floats | None
    loaded_latency: tuple[tuple[float, float], ...]
    """(total bandwidth in B/s, latency in ns), by rising bandwidth."""
    routes: Routes
    doubtful: tuple[str, ...] = field(default=())
    """Paths of the fields whose source leaves them in doubt."""

    @property
    def name(self) -> str:
        """The machine's name."""
        return self.description.name

    @property
    def threads(self) -> int:
        """Hardware threads in all."""
        return sum(node.threads for node in self.nodes)

    @property
    def hops(self) -> Floats:
        """(n, n) links on the route of each pair, NaN where no links are known."""
        return self.routes.hops

    @cached_property
    def graph(self) -> nx.Graph:
        """The machine as a NetworkX graph; vertices are node ids (int) and hub names (str)."""
        graph = nx.Graph(name=self.name)
        for node in self.nodes:
            graph.add_node(node.id, kind="node", group=node.group)
        for hub in self.hubs:
            graph.add_node(hub.id, kind=hub.kind, group=hub.group)
        for link in self.links:
            a, b = (self.vertex_name(end) for end in link.ends)
            if graph.has_edge(a, b):
                graph[a][b]["bandwidth_Bps"] += link.bandwidth_Bps
                graph[a][b]["count"] += 1
            else:
                graph.add_edge(a, b, kind=link.kind, bandwidth_Bps=link.bandwidth_Bps, count=1)
        return graph

    def vertex_name(self, vertex: int) -> int | str:
        """The id of a vertex, as the description has it."""
        n = len(self.nodes)
        return self.nodes[vertex].id if vertex < n else self.hubs[vertex - n].id

    def link_name(self, directed: int) -> str:
        """A readable name of a directed link: ``0→harp3 (qpi)``; parallel links get a number."""
        link = self.links[directed // 2]
        a, b = link.ends if directed % 2 == 0 else link.ends[::-1]
        twins = [k for k, other in enumerate(self.links) if set(other.ends) == {a, b}]
        number = f" #{twins.index(directed // 2) + 1}" if len(twins) > 1 else ""
        return f"{self.vertex_name(a)}→{self.vertex_name(b)} ({link.kind}{number})"

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
                {"id": node.id, "cpus": list(node.cpus), "memory_bytes": int(node.memory_bytes)}
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


class Routes:
    """One route per pair of nodes: fewest links, then widest, then lowest vertex; fixed for good.

    Held as the shortest-path tree of each node (``predecessor``), so that a machine of 1,024 nodes
    costs megabytes, and traffic or waiting on all routes is summed over trees, level by level.
    """

    def __init__(self, nodes: int, hubs: int, links: Sequence[LinkEdge]) -> None:
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import dijkstra

        self.nodes, self.vertices, self.link_count = nodes, nodes + hubs, len(links)
        n, v = nodes, self.vertices
        self.known = bool(links) or n == 1
        widest = max((link.bandwidth_Bps for link in links), default=1.0)
        best: dict[tuple[int, int], tuple[float, int]] = {}
        for k, link in enumerate(links):
            a, b = link.ends
            # One hop, plus a hair for narrowness, another for a port that is shared.
            cost = 1 + 1e-3 * (1 - link.bandwidth_Bps / widest) + 1e-4 * link.kind.endswith("-dual")
            for key, directed in (((a, b), 2 * k), ((b, a), 2 * k + 1)):
                if key not in best or cost < best[key][0]:
                    best[key] = (cost, directed)
        keys = sorted(best)
        costs = [best[key][0] + 1e-9 * (key[0] + key[1]) / v for key in keys]
        rows, columns = zip(*keys, strict=True) if keys else ((), ())
        matrix = csr_matrix((costs, (rows, columns)), shape=(v, v))
        distance, predecessor = dijkstra(
            matrix, directed=True, indices=np.arange(n), return_predecessors=True
        )
        self.reachable = np.isfinite(distance[:, :n])
        self._all_reachable = bool(np.isfinite(distance).all())
        # (n, v) directed link that leads into each vertex on the way from each node, -1 at it.
        edge_of = csr_matrix(
            (np.array([best[key][1] + 1 for key in keys], dtype=np.int64), (rows, columns)),
            shape=(v, v),
        )
        self.predecessor: Ints = predecessor.astype(np.int64)
        self.entering: Ints = np.full((n, v), -1, dtype=np.int64)
        row, column = np.nonzero(self.predecessor >= 0)
        if len(row):
            found = np.asarray(edge_of[self.predecessor[row, column], column]).ravel()
            self.entering[row, column] = found - 1
        # Depth: the cost is hops plus less than half a hop in all.
        depth = np.where(np.isfinite(distance), np.floor(distance + 0.25), -1)
        self.depth: Ints = depth.astype(np.int64)
        self.hops: Floats = np.where(
            self.reachable & (self.known | np.eye(n, dtype=bool)), depth[:, :n], np.nan
        )

    @property
    def connected(self) -> bool:
        """Whether every vertex reaches every other."""
        return self._all_reachable

    def links_of(self, initiator: int, home: int) -> list[int]:
        """Directed links from node ``initiator`` to node ``home``, in order."""
        route: list[int] = []
        vertex = home
        while vertex != initiator:
            route.append(int(self.entering[initiator, vertex]))
            vertex = int(self.predecessor[initiator, vertex])
            if vertex < 0:
                raise ValueError(f"no route from node {initiator} to node {home}")
        return route[::-1]

    @cached_property
    def _levels(self) -> list[tuple[Ints, Ints, Ints, Ints]]:
        """Per depth, deepest first: (root, vertex, predecessor, directed link) of tree edges."""
        levels = []
        for depth in range(int(self.depth.max(initial=0)), 0, -1):
            root, vertex = np.nonzero(self.depth == depth)
            levels.append(
                (root, vertex, self.predecessor[root, vertex], self.entering[root, vertex])
            )
        return levels

    def link_sums(self, traffic: Floats) -> Floats:
        """(2L,) sum of ``traffic`` (n, n) over the pairs whose route uses each directed link."""
        if self._matrix is not None:
            return np.asarray(self._matrix @ traffic.ravel(), dtype=np.float64)
        flow = np.zeros((self.nodes, self.vertices))
        flow[:, : self.nodes] = traffic
        total = np.zeros(2 * self.link_count)
        for root, vertex, before, edge in self._levels:
            amount = flow[root, vertex]
            total += np.bincount(edge, weights=amount, minlength=2 * self.link_count)
            np.add.at(flow, (root, before), amount)
        return total

    def route_sums(self, per_link: Floats) -> Floats:
        """(n, n) sum over the route i→j of ``per_link`` (2L,), a value per directed link."""
        if self._matrix is not None:
            sums = self._matrix.T @ per_link
            return np.asarray(sums, dtype=np.float64).reshape(self.nodes, self.nodes)
        total = np.zeros((self.nodes, self.vertices))
        for root, vertex, before, edge in reversed(self._levels):
            total[root, vertex] = total[root, before] + per_link[edge]
        return total[:, : self.nodes]

    @cached_property
    def _matrix(self) -> Any:
        """(2L, n²) incidence of links and routes, where it is small; else None."""
        if self.nodes > 128 or not self.link_count:
            return None
        from scipy.sparse import csr_matrix

        rows, columns = [], []
        root, vertex = np.nonzero(self.depth[:, : self.nodes] > 0)
        pair = root * self.nodes + vertex
        while len(root):
            rows.append(self.entering[root, vertex])
            columns.append(pair)
            vertex = self.predecessor[root, vertex]
            on = vertex != root
            root, vertex, pair = root[on], vertex[on], pair[on]
        if not rows:
            return None
        row, column = np.concatenate(rows), np.concatenate(columns)
        shape = (2 * self.link_count, self.nodes**2)
        return csr_matrix((np.ones(len(row)), (row, column)), shape=shape)
