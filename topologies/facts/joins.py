"""How nodes are joined, guessed from packages, the SLIT and a processor's links.

No tree tells which socket is wired to which. What is guessed here: sockets at the shortest distance
of the SLIT are wired to each other, where they have as many links; else all hang on one hub, which
bounds what each socket draws without saying over which way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ...inputs import Quantity
from ...inputs.quantities import rounded
from ..schema import Hub, Link, LinkType
from ..schema_types import EndId
from .catalogue import Entry, facts
from .nodes import origin_of
from .schema import Guess, Links, Origin, bounds

# Beyond this SLIT distance a node controller is between, whose makers put in what they measured.
GLUED = 30
# A hub stands for links that may be crossed more than once on a way.
HUB_SHARE_MIN = 0.4
# Of all links of a socket, what one socket draws through node controllers: 22% to 32% on an SGI UV
# 2000 (Kissinger et al., ADMS 2014), 26% and 28% on a UV 300H, 14% and 28% on 32 sockets of
# Haswell-EX (Psaroudakis et al., PVLDB 10, 2016).
GLUED_SHARE, GLUED_RANGE = 0.26, (0.12, 0.4)
LEAST_S = 2e-9


@dataclass(frozen=True)
class Situation:
    """What is known: nodes with CPUs by package, distances, and nodes of memory alone.

    ``distances``: by (smaller, larger) id, empty without a SLIT. ``memory_nodes``: id → (node with
    CPUs that it hangs on, bandwidth of its memory).
    """

    packages: Mapping[str, Sequence[int]]
    distances: Mapping[tuple[int, int], float]
    local: Quantity
    node_Bps: Quantity
    memory_nodes: Mapping[int, tuple[int, Quantity]] = field(default_factory=dict)


@dataclass
class Joined:
    """Links, what they are made of, and one line on what was guessed."""

    hubs: list[Hub] = field(default_factory=list)
    link_types: dict[str, LinkType] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def link(self, a: EndId, b: EndId, kind: str) -> None:
        """One more link."""
        self.links.append(Link(ends=(a, b), type=kind))


def join(found: Situation, entry: Entry | Guess) -> Joined:
    """The guess for a machine."""
    return _Joiner(found, entry).joined()


class _Joiner:
    def __init__(self, found: Situation, entry: Entry | Guess) -> None:
        self.found, self.entry, self.origin = found, entry, origin_of(entry)
        self.latency = entry.processor.latency if isinstance(entry, Entry) else entry.latency
        self.made = Joined()
        self.hub_of: dict[str, str] = {}
        self.glued = False  # node controllers between sockets

    def joined(self) -> Joined:
        split = any(len(nodes) > 1 for nodes in self.found.packages.values())
        if split and isinstance(self.entry, Entry) and self.entry.processor.within == "dies":
            self._dies()
        else:
            if split:
                self._fabric()
            units = {package: list(nodes) for package, nodes in self.found.packages.items()}
            self._sockets(units)
        for node, (near, bandwidth) in self.found.memory_nodes.items():
            self._memory_node(node, near, bandwidth)
        return self.made

    # Links within a package.

    def _fabric(self) -> None:
        """Nodes of a package hang on its mesh or I/O die."""
        kind = self.entry.processor.within if isinstance(self.entry, Entry) else "fabric"
        for package in self.found.packages:
            name = f"{kind}-{package}"
            self.hub_of[package] = name
            self.made.hubs.append(Hub(id=name, kind=kind, group=package))
            for node in self.found.packages[package]:
                self.made.link(node, name, "fabric")
        node_Bps = self.found.node_Bps
        self.made.link_types["fabric"] = LinkType(
            bandwidth=self._guess(
                1.5 * node_Bps.value,
                node_Bps.value,
                2 * max(node_Bps.high, node_Bps.value),
                "a node's way to the rest of its package: at least its own memory's bandwidth",
            ),
            latency=self._each_of_two(self._added(self.latency.neighbour, "in the package")),
        )

    def _dies(self) -> None:
        """Dies have links of their own: all to all in a package, to others as the SLIT says."""
        assert isinstance(self.entry, Entry)
        processor, packages = self.entry.processor, list(self.found.packages.values())
        own = processor.die_link
        assert own is not None
        for nodes in packages:
            for a, b in combinations(nodes, 2):
                self.made.link(a, b, "in-package")
        if any(len(nodes) > 1 for nodes in packages):
            added = self._added(self.latency.neighbour, "in the package")
            self._link_type("in-package", own, own.count, own.fewest or own.count, added)
        links = self.entry.links
        if len(packages) == 1 or links is None:
            return
        pairs = [(a, b) for one, other in combinations(packages, 2) for a in one for b in other]
        near = min((self._distance(a, b) for a, b in pairs), default=0.0)
        chosen = [pair for pair in pairs if self._distance(*pair) == near]
        usable = links.count - links.io
        if _degree(chosen) > usable:  # each die to the one of its rank in the others
            chosen = [
                pair
                for one, other in combinations(packages, 2)
                for pair in zip(one, other, strict=False)
            ]
        made = [link.ends for link in self.made.links]
        if not _joins_all([*chosen, *made], [n for nodes in packages for n in nodes]):
            chosen = pairs
        for a, b in chosen:
            self.made.link(a, b, "socket")
        added = self._added(self.latency.remote, "between packages")
        self._link_type("socket", links, 1, 1, added)
        self._note_guess(
            "which dies are wired to which", "by the SLIT" if self._slit else "by their rank"
        )

    # Links between sockets.

    def _sockets(self, units: Mapping[str, list[int]]) -> None:
        if len(units) < 2:
            return
        between = {
            (a, b): min(self._distance(x, y) for x in units[a] for y in units[b])
            for a, b in combinations(units, 2)
        }
        levels = sorted(set(between.values()))
        links = self.entry.links if isinstance(self.entry, Entry) else None
        usable = links.count - links.io if links is not None else 4
        nearest = [pair for pair, distance in between.items() if distance == levels[0]]
        degree = _degree(nearest)
        self.glued = self._slit and levels[0] > GLUED
        whole = len(levels) > 1 or links is not None
        if degree <= usable and whole and not self.glued and _joins_all(nearest, list(units)):
            added = self._less_fabric(self._added(self.latency.remote, "a hop between sockets"))
            if links is None:
                self._share_type("socket", added, 1 / degree)
            else:
                fewest = max(1, ((links.fewest or links.count) - links.io) // degree)
                self._link_type("socket", links, max(1, usable // degree), fewest, added)
            for a, b in nearest:
                self.made.link(self._end(a), self._end(b), "socket")
            self._note_guess(
                "which sockets are wired to which",
                "all to all"
                if len(nearest) == len(between)
                else "those at the SLIT's shortest distance",
            )
        elif len(levels) > 1 and (groups := _cliques(nearest, list(units))):
            self._tiers(groups, links, levels)
        else:
            self.made.hubs.append(Hub(id="interconnect", kind="interconnect"))
            for unit in units:
                self.made.link(self._end(unit), "interconnect", "socket")
            remote = self._far(levels[0], levels[0], levels[-1])
            self._spoke("socket", links, self._each_of_two(self._less_fabric(remote)))
            self._note_guess("which sockets are wired to which", "all on one hub")

    def _tiers(self, groups: list[list[str]], links: Links | None, levels: list[float]) -> None:
        """Groups of near sockets, each on a hub; those on one more."""
        near = self._less_fabric(self._far(levels[0], levels[0], levels[0]))
        far = self._less_fabric(self._far(levels[0], levels[1], levels[-1]))
        self.made.hubs.append(Hub(id="interconnect", kind="interconnect"))
        for k, group in enumerate(groups):
            self.made.hubs.append(Hub(id=f"group-{k}", kind="node-controller"))
            for unit in group:
                self.made.link(self._end(unit), f"group-{k}", "socket")
            self.made.link(f"group-{k}", "interconnect", "group")
        self._spoke("socket", links, self._each_of_two(near))
        between = _beyond(far, near.value)
        spoke = self.made.link_types["socket"]
        Bps, size = spoke.bandwidth, len(groups[0])
        self.made.link_types["group"] = spoke.model_copy(
            update={
                "bandwidth": self._guess(
                    Bps.value * size / 2,
                    Bps.low / 2,
                    Bps.value * size,
                    "of a group of sockets: between half of one socket's links and those of all",
                ),
                "latency": self._each_of_two(between),
            }
        )
        self._note_guess(
            "how groups of sockets are joined", "each group on a hub, those on one more"
        )

    def _memory_node(self, node: int, near: int, bandwidth: Quantity) -> None:
        package = next((p for p, nodes in self.found.packages.items() if near in nodes), None)
        end: EndId = near if package is None else self.hub_of.get(package, near)
        kind = f"memory-{len(self.made.link_types)}"
        same = [
            name
            for name, known in self.made.link_types.items()
            if name.startswith("memory-") and known.bandwidth.value == rounded(bandwidth.value)
        ]
        if same:
            kind = same[0]
        else:
            origin = Origin("memory without CPUs", guessed=True)
            self.made.link_types[kind] = LinkType(
                bandwidth=origin.quantity(
                    bandwidth.value, bandwidth.low, 2 * bandwidth.high, "no slower than the memory"
                ),
                latency=origin.quantity(
                    5e-9, 1e-9, 20e-9, "the memory's own latency has most of it"
                ),
            )
        self.made.link(node, end, kind)

    # What links are made of.

    def _link_type(self, name: str, links: Links, count: int, fewest: int, added: Quantity) -> None:
        known = facts().interconnects[links.type]
        rate = links.rate
        each, (low, high) = known.width.value, bounds(known.reached)
        self.made.link_types[name] = LinkType(
            bandwidth=self._guess(
                count * rate.value * each * known.reached.value,
                min(fewest, count) * rate.low * each * low,
                count * rate.high * each * high,
                f"{known.reached.value:.0%} of {count * rate.value * each / 1e9:.4g} GB/s, "
                f"{count} × {links.type} of {rate.value / 1e9:g} GT/s and {each:g} B a direction"
                + (f", perhaps {fewest}" if fewest < count else "")
                + f"; {known.source}; {known.reached.source}",
            ),
            latency=added,
            data_header=known.data_header,
            request=known.request,
        )

    def _spoke(self, name: str, links: Links | None, added: Quantity) -> None:
        """All links of a socket as one, to a hub."""
        if links is None:
            self._share_type(name, added, 1.0)
            return
        usable = links.count - links.io
        self._link_type(
            name, links, usable, max(1, (links.fewest or links.count) - links.io), added
        )
        made = self.made.link_types[name]
        Bps = made.bandwidth
        share, why = (1.0, (HUB_SHARE_MIN, 1.0)), "less where a way takes several"
        if self.glued:
            share, why = (GLUED_SHARE, GLUED_RANGE), "a share of it through node controllers"
        value, (low, high) = share
        Bps = Quantity(
            rounded(value * Bps.value),
            rounded(low * Bps.low),
            rounded(high * Bps.high),
            f"{Bps.source}; {why}",
            True,
        )
        self.made.link_types[name] = made.model_copy(update={"bandwidth": Bps})

    def _share_type(self, name: str, added: Quantity, part: float) -> None:
        """Of a processor whose links are unknown: a share of its node's memory bandwidth."""
        assert isinstance(self.entry, Guess)
        share, own = self.entry.link_share, self.found.node_Bps
        low, high = share.range or (share.value, share.value)
        self.made.link_types[name] = LinkType(
            bandwidth=self._guess(
                share.value * own.value * part**0.5,
                low * own.low * part,
                high * own.high,
                share.source or "",
            ),
            latency=added,
        )

    # Latencies.

    def _added(self, total: Quantity | None, what: str) -> Quantity:
        """What a way adds to the latency of the home's own memory."""
        local = self.found.local
        if total is None:
            return self._guess(60e-9, 10e-9, 300e-9, f"{what}: not in the catalogue")
        added = _beyond(total, local.value)
        source = f"{what}, {total.value * 1e9:.0f} ns in all: {total.source}"
        return self._guess(added.value, added.low, added.high, source)

    def _far(self, near: float, first: float, last: float) -> Quantity:
        """What is added at the SLIT's distances from ``first`` to ``last``; ``near`` is its least
        between sockets, the typical remote latency of the processor unless controllers glue them.
        """
        typical = self._added(self.latency.remote, "a hop between sockets")
        if not self._slit or last == near <= GLUED:
            return typical
        local = self.found.local
        unit = local.value / 10 if near > GLUED else (local.value + typical.value) / near
        added = [unit * distance - local.value for distance in (first, (first + last) / 2, last)]
        return self._guess(
            max(added[1], typical.value),
            max(min(typical.low, 0.6 * added[0]), LEAST_S),
            max(typical.high, 1.4 * added[2]),
            f"the SLIT's distances {first:g} to {last:g}, taken as ratios of latency",
        )

    def _less_fabric(self, added: Quantity) -> Quantity:
        """Of a way between packages, what is left of it beside the ways to their hubs."""
        if "fabric" not in self.made.link_types:
            return added
        fabric = self.made.link_types["fabric"].latency
        own = 2 * fabric.value if fabric is not None else 0.0
        return _beyond(added, own)

    def _each_of_two(self, added: Quantity) -> Quantity:
        value, low, high = (rounded(part / 2) for part in (added.value, added.low, added.high))
        return Quantity(value, low, high, added.source, True)

    # The rest.

    def _guess(self, value: float, low: float, high: float, source: str) -> Quantity:
        made = self.origin.quantity(value, low, high, source)
        return Quantity(made.value, made.low, made.high, made.source, True)

    @property
    def _slit(self) -> bool:
        return bool(self.found.distances)

    def _distance(self, a: int, b: int) -> float:
        return self.found.distances.get((min(a, b), max(a, b)), 20.0)

    def _end(self, unit: str) -> EndId:
        return self.hub_of.get(unit) or self.found.packages[unit][0]

    def _note_guess(self, what: str, how: str) -> None:
        self.made.notes.append(f"{what} is a guess: {how}")


def _beyond(whole: Quantity, part: float) -> Quantity:
    """What is left of a latency beside a part of it, some at least."""
    value, low, high = (end - part for end in (whole.value, whole.low, whole.high))
    ends = max(value, LEAST_S), max(low, LEAST_S), max(high, 2 * LEAST_S)
    return Quantity(*ends, whole.source, True)


def _degree(pairs: Sequence[tuple[EndId, EndId]]) -> int:
    import networkx as nx  # slow to import

    graph = nx.Graph(pairs)
    return max((degree for _, degree in graph.degree), default=0)


def _joins_all(pairs: Sequence[tuple[EndId, EndId]], ends: Sequence[EndId]) -> bool:
    import networkx as nx  # slow to import

    graph = nx.Graph(pairs)
    graph.add_nodes_from(ends)
    return len(graph) > 0 and bool(nx.is_connected(graph))


def _cliques(pairs: Sequence[tuple[str, str]], units: Sequence[str]) -> list[list[str]]:
    """The groups of units that are all near each other, [] where they are no such groups."""
    import networkx as nx  # slow to import

    graph = nx.Graph(pairs)
    graph.add_nodes_from(units)
    groups = [sorted(group, key=list(units).index) for group in nx.connected_components(graph)]
    whole = all(
        graph.subgraph(group).number_of_edges() == len(group) * (len(group) - 1) // 2
        for group in groups
    )
    return groups if whole and 1 < len(groups) < len(units) else []
