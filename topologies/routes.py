"""Routes: one for every pair of nodes, and sums over all routes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..inputs.shared_work import once

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LinkEdge:
    """A link between two vertices; each direction has the full bandwidth.

    ``ends`` are positions in ``Machine.vertices``. ``kind`` is the link type's name, with
    ``-single`` or ``-dual`` for a split port. ``dimension`` orders the links of generated graphs
    for routing: of equal routes the one whose last hop has a higher one is taken. ``count``: the
    parallel links that act as this one. ``drawn_Bps``: the most that a node was seen to draw over
    one link of this type alone; ``carried_Bps``: what all of them were seen to carry, headers
    included; None where that is not known.
    """

    ends: tuple[int, int]
    kind: str
    bandwidth_Bps: float
    latency_ns: float | None
    data_header_bytes: float
    request_bytes: float
    response_bytes: float
    energy_J_per_bit: float | None
    dimension: int = 0
    count: int = 1
    drawn_Bps: float | None = None
    carried_Bps: float | None = None

    @property
    def width_Bps(self) -> float:
        """What routes compare: no more than was seen to be drawn, whatever the wire may do."""
        drawn = self.drawn_Bps if self.drawn_Bps is not None else float("inf")
        return min(self.bandwidth_Bps, self.count * drawn)


@dataclass(frozen=True)
class _Level:
    """Edges of all shortest-path trees that end at one depth, those of one parent together.

    ``below``, ``above``: flat positions, in an array (n, v), of an edge's ends; ``link``: its
    directed link; ``first``: where the edges of each parent begin; ``parents``: its position.
    """

    below: Ints
    above: Ints
    link: Ints
    first: Ints
    parents: Ints


class Routes:
    """One route per pair of nodes: fewest links, then widest, then spread; fixed for good.

    Among equals the last hop is in the highest dimension of a generated graph, as in
    dimension-ordered routing (Dally and Towles, Principles and Practices of Interconnection
    Networks, 2004, chapter 8), which loads the links of a mesh, torus or hypercube evenly; where
    that leaves a choice too, such as the halves of a ring or the spine of a fat tree, the way that
    is least used by the routes chosen before; initiators take turns on machines so large that
    this would take seconds.

    Held as the shortest-path tree of each node (``predecessor``), so that a machine of 1,024 nodes
    costs megabytes, and traffic or waiting on all routes is summed over trees, level by level;
    up to ``listed_nodes_max`` nodes a list of which route uses which link is quicker.
    """

    listed_nodes_max = 128

    def __init__(self, nodes: int, hubs: int, links: Sequence[LinkEdge]) -> None:
        self.nodes, self.vertices, self.link_count = nodes, nodes + hubs, len(links)
        self.known = bool(links) or nodes == 1
        edges = _Edges(links, self.vertices)
        distance = edges.distances(nodes)
        # Whether every vertex reaches every other.
        self.connected = bool(np.isfinite(distance).all())
        self.reachable = np.isfinite(distance[:, :nodes])
        # The cost of a way is its hops and less than one more (see _Edges).
        self.depth: Ints = np.where(np.isfinite(distance), distance + 1e-6, -1).astype(np.int64)
        self.hops: Floats = np.where(
            self.reachable & (self.known | np.eye(nodes, dtype=bool)), self.depth[:, :nodes], np.nan
        )
        # (n, v) directed link that leads into each vertex on the way from each node, -1 at it,
        # and the vertex that it comes from.
        self.entering, self.predecessor = edges.choose(distance)

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
    def _levels(self) -> list[_Level]:
        """The trees' edges by depth, deepest first."""
        levels = []
        for depth in range(int(self.depth.max(initial=0)), 0, -1):
            root, vertex = np.nonzero(self.depth == depth)
            above = root * self.vertices + self.predecessor[root, vertex]
            order = np.argsort(above, kind="stable")
            root, vertex, above = root[order], vertex[order], above[order]
            first = np.flatnonzero(np.diff(above, prepend=-1))
            levels.append(
                _Level(
                    root * self.vertices + vertex,
                    above,
                    self.entering[root, vertex],
                    first,
                    above[first],
                )
            )
        return levels

    def link_sums(self, traffic: Floats) -> Floats:
        """(2L,) sum of ``traffic`` (n, n) over the pairs whose route uses each directed link."""
        if self._uses is not None:
            link, pair = self._uses
            sums = np.bincount(link, weights=traffic.ravel()[pair], minlength=2 * self.link_count)
            return np.asarray(sums, dtype=np.float64)
        flow = self._at_vertices(traffic)
        total = np.zeros(2 * self.link_count)
        for level in self._levels:
            amount = flow[level.below]
            total += np.bincount(level.link, weights=amount, minlength=2 * self.link_count)
            flow[level.parents] += np.add.reduceat(amount, level.first)
        return total

    def link_rows(self, traffic: Floats) -> Floats:
        """(n, 2L) like ``link_sums``, for each row of ``traffic`` (n, n) alone."""
        return self._grouped_sums(traffic, lambda row, column: row)

    def link_columns(self, traffic: Floats) -> Floats:
        """(n, 2L) like ``link_sums``, for each column of ``traffic`` (n, n) alone."""
        return self._grouped_sums(traffic, lambda row, column: column)

    def _grouped_sums(self, traffic: Floats, group: Callable[[Ints, Ints], Ints]) -> Floats:
        n, links = self.nodes, 2 * self.link_count
        link, pair = self._uses if self._uses is not None else self._list_uses(traffic != 0.0)
        cell = link + links * group(pair // n, pair % n)
        sums = np.bincount(cell, weights=traffic.ravel()[pair], minlength=n * links)
        return np.asarray(sums.reshape(n, links), dtype=np.float64)

    def link_maxima(self, per_pair: Floats) -> Floats:
        """(2L,) largest of ``per_pair`` (n, n) over the pairs whose route uses each directed link.

        0 for a link that no route uses.
        """
        best = self._at_vertices(per_pair)
        maxima = np.zeros(2 * self.link_count)
        for level in self._levels:
            value = best[level.below]
            np.maximum.at(maxima, level.link, value)
            above = np.maximum.reduceat(value, level.first)
            best[level.parents] = np.maximum(best[level.parents], above)
        return maxima

    def _at_vertices(self, per_pair: Floats) -> Floats:
        """``per_pair`` (n, n) as a flat array (n · v,), 0 at hubs."""
        wide = np.zeros((self.nodes, self.vertices))
        wide[:, : self.nodes] = per_pair
        return wide.ravel()

    def route_sums(self, per_link: Floats) -> Floats:
        """(n, n) sum over the route i→j of ``per_link`` (2L,), a value per directed link."""
        if self._uses is not None:
            link, pair = self._uses
            sums = np.bincount(pair, weights=per_link[link], minlength=self.nodes**2)
            return np.asarray(sums.reshape(self.nodes, self.nodes), dtype=np.float64)
        total = np.zeros(self.nodes * self.vertices)
        for level in reversed(self._levels):
            total[level.below] = total[level.above] + per_link[level.link]
        return total.reshape(self.nodes, self.vertices)[:, : self.nodes]

    @cached_property
    def uses(self) -> tuple[Ints, Ints, Ints] | None:
        """(uses,) of links by routes: the link, and the two nodes of the route; None on machines
        where they are too many."""
        if self._uses is None:
            return None
        link, pair = self._uses
        start, end = np.divmod(pair, self.nodes)
        return link.astype(np.int64), start.astype(np.int64), end.astype(np.int64)

    @cached_property
    def _uses(self) -> tuple[Ints, Ints] | None:
        """(uses,) of links by routes: the link and the flat position of the pair in (n, n), in this
        order; None on machines where they are too many.
        """
        if self.nodes > self.listed_nodes_max or not self.link_count:
            return None
        link, pair = self._list_uses(np.ones((self.nodes, self.nodes), dtype=bool))
        order = np.lexsort((pair, link))
        return (link[order], pair[order]) if len(link) else None

    def _list_uses(self, pairs: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """(uses,) of links by the routes of ``pairs`` (n, n): the link and the pair's position."""
        root, vertex = np.nonzero(pairs & (self.depth[:, : self.nodes] > 0))
        pair = root * self.nodes + vertex
        links, of = [], []
        while len(root):
            links.append(self.entering[root, vertex])
            of.append(pair)
            vertex = self.predecessor[root, vertex]
            on = vertex != root
            root, vertex, pair = root[on], vertex[on], pair[on]
        none = [np.zeros(0, dtype=np.int64)]
        return np.concatenate(links or none), np.concatenate(of or none)


# Up to so many nodes routes are balanced one by one.
BALANCED_NODES_MAX = 128
# Up to so many edges times nodes, distances take less time than SciPy takes to import.
RELAXED_MAX = 2**16


class _Edges:
    """The directed links, of parallel ones those of least cost, by the vertex they lead to."""

    def __init__(self, links: Sequence[LinkEdge], vertices: int) -> None:
        self.vertices = vertices
        widest = max((link.width_Bps for link in links), default=1.0)
        bundles: dict[tuple[int, int], list[tuple[float, int]]] = {}
        for k, link in enumerate(links):
            a, b = link.ends
            # A hop, a little for narrowness, less for a shared port; the extras of any way without
            # a loop add up to less than a hop.
            extra = 1.0 - link.width_Bps / widest + 0.1 * link.kind.endswith("-dual")
            cost = 1.0 + 0.5 * extra / vertices
            bundles.setdefault((b, a), []).append((cost, 2 * k))
            bundles.setdefault((a, b), []).append((cost, 2 * k + 1))
        kept: list[tuple[float, ...]] = []
        for (to, of), bundle in sorted(bundles.items()):
            least = min(cost for cost, _ in bundle)
            equal = [k for cost, k in bundle if cost == least]
            # Parallel links are alike, also where only one of them is part of a regular graph.
            of_bundle = max(links[k // 2].dimension for k in equal)
            kept += [(to, of, of_link, of_bundle, least) for of_link in equal]
        columns = np.array(kept, dtype=np.float64).reshape(-1, 5).T.copy()
        self.target, self.source, self.directed, self.dimension = columns[:4].astype(np.int64)
        self.cost: Floats = columns[4]

    def distances(self, nodes: int) -> Floats:
        """(n, v) least cost from each node to each vertex, infinite where there is no way."""
        if nodes * len(self.target) <= RELAXED_MAX:
            return self._relaxed(nodes)
        # slow to import
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import dijkstra

        # Of parallel links one, or their costs would add up.
        pair = self.source * self.vertices + self.target
        _, once = np.unique(pair, return_index=True)
        ends = self.source[once], self.target[once]
        matrix = csr_matrix((self.cost[once], ends), shape=(self.vertices, self.vertices))
        return np.asarray(dijkstra(matrix, indices=np.arange(nodes)), dtype=np.float64)

    def _relaxed(self, nodes: int) -> Floats:
        """The same by Bellman and Ford's relaxation of all edges at once, for small machines."""
        distance = np.full((nodes, self.vertices), np.inf)
        distance[np.arange(nodes), np.arange(nodes)] = 0.0
        if len(self.target) == 0:
            return distance
        first, _ = self._groups
        targets = self.target[first]
        while True:
            over = np.minimum.reduceat(distance[:, self.source] + self.cost, first, axis=1)
            if (over >= distance[:, targets]).all():
                return distance
            distance[:, targets] = np.minimum(over, distance[:, targets])

    def choose(self, distance: Floats) -> tuple[Ints, Ints]:
        """(n, v) the directed link into each vertex from each node, and its source; -1 at roots."""
        roots, vertices = distance.shape
        entering = np.full((roots, vertices), -1, dtype=np.int64)
        source = np.full((roots, vertices), -1, dtype=np.int64)
        if len(self.target) == 0:
            return entering, source
        if roots <= BALANCED_NODES_MAX:
            self._balance(distance, entering, source)
            return entering, source
        rows_max = max(1, 4_000_000 // len(self.target))
        for start in range(0, roots, rows_max):
            rows = np.arange(start, min(roots, start + rows_max))
            chosen, edge = np.nonzero(self._in_turn(self._fitting(distance[rows]), rows))
            entering[rows[chosen], self.target[edge]] = self.directed[edge]
            source[rows[chosen], self.target[edge]] = self.source[edge]
        return entering, source

    @cached_property
    def _groups(self) -> tuple[Ints, Ints]:
        """Where the edges into each target begin, and (edges,) the group of each edge."""
        vertices = np.flatnonzero(np.bincount(self.target, minlength=self.vertices))
        return np.searchsorted(self.target, vertices), np.searchsorted(vertices, self.target)

    def _fitting(self, distance: Floats) -> Any:
        """(rows, edges) whether an edge may be the last hop to its target, by dimension order."""
        first, group = self._groups
        with np.errstate(invalid="ignore"):  # inf - inf, where there is no way
            beyond = distance[:, self.source] + self.cost - distance[:, self.target]
        fits = np.abs(beyond) < 1e-9
        highest = np.maximum.reduceat(np.where(fits, self.dimension, -1), first, axis=1)
        return fits & (self.dimension == highest[:, group])

    def _in_turn(self, fits: Any, rows: Ints) -> Any:
        """(rows, edges) at most one edge per target of those that fit; initiators take turns."""
        first, group = self._groups
        rank = np.cumsum(fits, axis=1, dtype=np.int32)
        count = np.add.reduceat(fits, first, axis=1, dtype=np.int32)
        before = rank[:, first] - fits[:, first]
        turn = (rows[:, None] + self.target[first]) % np.maximum(count, 1)
        return fits & (rank - before[:, group] - 1 == turn[:, group])

    def _balance(self, distance: Floats, entering: Ints, source: Ints) -> None:
        """Chooses, for one pair after the other, near ones first, the way that is least used yet.

        A way to a hub counts for all nodes at the hub, and these not again.
        """
        roots = len(distance)
        weight = np.ones(self.vertices)
        at_hub = self.target[self.source < roots]
        weight[roots:] = np.bincount(at_hub, minlength=self.vertices)[roots:]
        fits = self._fitting(distance)
        used = np.zeros(int(self.directed.max()) + 1)
        ways: list[list[list[int]]] = [[[] for _ in range(self.vertices)] for _ in range(roots)]
        candidates: dict[tuple[int, int], list[int]] = {}
        for row, edge in zip(*(found.tolist() for found in np.nonzero(fits)), strict=True):
            candidates.setdefault((row, int(self.target[edge])), []).append(edge)
        # Within a distance those without a choice come first: they are what others go around.
        order = sorted(
            candidates,
            key=lambda pair: (round(float(distance[pair]), 6), len(candidates[pair]) > 1, pair),
        )
        for row, target in order:
            best, least = -1, float("inf")
            for edge in candidates[row, target]:
                way = ways[row][int(self.source[edge])]
                load = used[self.directed[edge]] + sum(used[link] for link in way)
                if load < least:
                    best, least = edge, load
            before, link = int(self.source[best]), int(self.directed[best])
            entering[row, target], source[row, target] = link, before
            ways[row][target] = [*ways[row][before], link]
            alone = before >= roots and target < roots
            used[[link] if alone else ways[row][target]] += weight[target]


def routes_between(nodes: int, hubs: int, links: Sequence[LinkEdge]) -> Routes:
    """The routes over ``links``; within ``shared`` work, once for all machines alike in what
    chooses them: ends, dimensions and relative widths of their links.
    """
    widest = max((link.width_Bps for link in links), default=1.0)
    link_key = tuple(
        (link.ends, f"{link.width_Bps / widest:.12g}", link.kind.endswith("-dual"), link.dimension)
        for link in links
    )
    return once(
        "routes",
        (nodes, hubs, link_key),
        lambda: Routes(nodes, hubs, links),
        lambda made: min(64, 2 + 2**22 // made.vertices**2),
    )
