"""From a description to a Machine: numbers the nodes, derives link kinds, routes, pair tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..inputs.quantities import Quantity
from ..inputs.yaml_file import Place
from .generators import Generated, generate
from .machine import CacheLevel, HubVertex, Machine, Node
from .routes import Floats, LinkEdge, Routes
from .schema import (
    NODES_MAX,
    DescriptionError,
    DistanceClass,
    Fact,
    LinkType,
    MachineDescription,
    NodeGroup,
)

DEFAULT_LINE_BYTES = 64.0


def build_machine(description: MachineDescription) -> Machine:
    """The machine that ``description`` stands for; raises DescriptionError."""
    nodes = _nodes(description)
    hubs = tuple(HubVertex(h.id, h.kind, h.group, _si(h.bandwidth)) for h in description.hubs)
    generated = _generated(description, nodes, hubs)
    hubs += tuple(hub for part in generated for hub in part.hubs)
    _check_unique([hub.id for hub in hubs], ("hubs",), "hub")
    _check_nics(description, nodes)
    links = _links(description, nodes, hubs, generated)
    routes = Routes(len(nodes), len(hubs), links)
    if (links or hubs) and not routes.connected:
        raise DescriptionError(
            ("links",) if description.links else (),
            "the graph is disconnected: " + _apart(nodes, routes),
        )
    kinds = _kind_counts(routes, links)
    classes = _classes(description, nodes, routes, kinds)
    latency, bandwidth = _pair_tables(description, nodes, links, routes, classes)
    slit = _slit(description, len(nodes))
    return Machine(
        description=description,
        nodes=nodes,
        hubs=hubs,
        links=links,
        latency_ns=latency,
        bandwidth_Bps=bandwidth,
        distance_class=classes,
        slit=slit,
        loaded_latency=tuple(
            sorted((p.bandwidth.value, p.latency.value * 1e9) for p in description.loaded_latency)
        ),
        routes=routes,
        doubtful=tuple(_doubtful(description.model_dump(round_trip=True), ())),
    )


def _nodes(description: MachineDescription) -> tuple[Node, ...]:
    groups = [(g, index) for index, g in enumerate(description.nodes)]
    ids: list[int] = []
    for g, index in groups:
        first, last = g.id_range()
        ids += range(first, last + 1)
        if len(ids) > NODES_MAX:
            raise DescriptionError(("nodes", index), f"more than {NODES_MAX} nodes")
        if g.type not in description.node_types:
            known = ", ".join(description.node_types)
            raise DescriptionError(
                ("nodes", index, "type"), f"unknown node type: expected one of {known}"
            )
    _check_unique(ids, ("nodes",), "node")
    nodes: list[Node] = []
    next_cpu = 0
    for g, index in groups:
        first, last = g.id_range()
        for offset, node_id in enumerate(range(first, last + 1)):
            node = _node(description, g, index, node_id, offset, next_cpu)
            next_cpu += node.threads
            nodes.append(node)
    _check_unique([cpu for node in nodes for cpu in node.cpus], ("nodes",), "CPU")
    return tuple(sorted(nodes, key=lambda node: node.id))


def _node(
    description: MachineDescription,
    g: NodeGroup,
    index: int,
    node_id: int,
    offset: int,
    next_cpu: int,
) -> Node:
    kind = description.node_types[g.type]
    cores = kind.cores or 0
    threads = cores * kind.threads_per_core
    cpus = tuple(range(next_cpu, next_cpu + threads))
    if g.cpus is not None:
        cpus = _cpu_list(g.cpus, ("nodes", index, "cpus"))
        if not cores <= len(cpus) <= threads:
            raise DescriptionError(
                ("nodes", index, "cpus"),
                f"{len(cpus)} CPUs: expected from one per core ({cores}) to "
                f"cores × threads_per_core ({threads})",
            )
    group = g.group
    if g.group_size is not None:
        group = f"{g.group or 'group'}{offset // g.group_size}"
    memory, energy = kind.memory, kind.energy
    size = g.memory_size or memory.size
    return Node(
        id=node_id,
        cpus=cpus,
        cores=cores,
        threads_per_core=kind.threads_per_core,
        group=group,
        memory_bytes=_nan(_si(size)),
        memory_bandwidth_Bps=_si(memory.bandwidth),
        memory_latency_ns=_ns(memory.latency),
        memory_kind=memory.kind,
        side_cache_bytes=tuple(cache.size.value for cache in memory.side_caches),
        clock_Hz=_si(kind.clock),
        ipc=_fact(kind.ipc),
        outstanding_misses=_fact(kind.outstanding_misses),
        reorder_window=_fact(kind.reorder_window),
        caches=tuple(
            CacheLevel(
                cache.level,
                cache.size.value,
                cache.shared_by_cores,
                cache.line.value if cache.line else DEFAULT_LINE_BYTES,
                _ns(cache.latency),
            )
            for cache in sorted(kind.caches, key=lambda cache: cache.level)
        ),
        core_active_W=_si(energy.core_active) if energy else None,
        core_idle_W=_si(energy.core_idle) if energy else None,
        memory_energy_J_per_bit=_si(energy.memory) if energy else None,
    )


def _cpu_list(text: str, place: Place) -> tuple[int, ...]:
    """``0-3,8`` as numbers, as the kernel writes them; an empty text is no CPU."""
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.strip().partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise DescriptionError(place, f"'{part}': expected CPU numbers such as '0-3,8'")
        low, high = int(first), int(last or first)
        if high < low or high - low > 65_536:
            raise DescriptionError(
                place, f"'{part}': expected a rising range of at most 65,536 CPUs"
            )
        cpus += range(low, high + 1)
        if len(cpus) > 65_536:
            raise DescriptionError(place, "more than 65,536 CPUs")
    return tuple(cpus)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 7


def _generated(
    description: MachineDescription, nodes: tuple[Node, ...], hubs: tuple[HubVertex, ...]
) -> list[Generated]:
    """What each of the file's generators adds; a later one may name the hubs of an earlier one."""
    made: list[Generated] = []
    hub_ids = [hub.id for hub in hubs]
    for index, generator in enumerate(description.generate):
        try:
            made.append(generate(generator, [node.id for node in nodes], hub_ids))
        except DescriptionError as failure:
            raise DescriptionError(("generate", index, *failure.place), str(failure)) from None
        hub_ids += [hub.id for hub in made[-1].hubs]
    return made


def _links(
    description: MachineDescription,
    nodes: tuple[Node, ...],
    hubs: tuple[HubVertex, ...],
    generated: list[Generated],
) -> tuple[LinkEdge, ...]:
    """All links; parallel ones of one kind act as one of their joint bandwidth."""
    vertex: dict[int | str, int] = {node.id: k for k, node in enumerate(nodes)}
    vertex |= {hub.id: len(nodes) + k for k, hub in enumerate(hubs)}
    ports = Counter(
        (end, port)
        for link in description.links
        if link.ports
        for end, port in zip(link.ends, link.ports, strict=True)
    )
    merged: dict[tuple[int, int, str], LinkEdge] = {}

    def add(
        ends: tuple[int | str, int | str], type_name: str, shared: bool, dimension: int
    ) -> None:
        facts = description.link_types.get(type_name)
        if facts is None:
            known = ", ".join(description.link_types) or "one that link_types describes"
            raise ValueError(f"unknown link type '{type_name}': expected {known}")
        a, b = vertex[ends[0]], vertex[ends[1]]
        link = _link(facts, type_name, (a, b), shared, dimension)
        key = (min(a, b), max(a, b), link.kind)
        twin = merged.get(key)
        merged[key] = (
            link
            if twin is None
            else replace(twin, bandwidth_Bps=twin.bandwidth_Bps + link.bandwidth_Bps)
        )

    for k, link in enumerate(description.links):
        for end in link.ends:
            if end not in vertex:
                raise DescriptionError(
                    ("links", k, "ends"), f"unknown end {end!r}: expected a node or hub"
                )
        if link.ends[0] == link.ends[1]:
            raise DescriptionError(
                ("links", k, "ends"), "a link to itself: expected two different ends"
            )
        shared = link.ports is not None and any(
            ports[end, port] > 1 for end, port in zip(link.ends, link.ports, strict=True)
        )
        facts = description.link_types.get(link.type)
        if shared and facts is not None and not facts.splits:
            raise DescriptionError(
                ("links", k, "ports"), f"a whole '{link.type}' on a port of another link"
            )
        with _placed("links", k, "type"):
            add(link.ends, link.type, shared, 0)
    base = 1
    for k, part in enumerate(generated):
        with _placed("generate", k, "link"):
            for ends, type_name, dimension in part.links:
                add(ends, type_name, False, base + dimension)
        base += 1 + max((dimension for _, _, dimension in part.links), default=0)
    return tuple(merged.values())


@contextmanager
def _placed(*place: str | int) -> Iterator[None]:
    """Gives a ValueError raised inside its place in the description."""
    try:
        yield
    except ValueError as failure:
        raise DescriptionError(place, str(failure)) from None


def _link(
    facts: LinkType, kind: str, ends: tuple[int, int], shared: bool, dimension: int
) -> LinkEdge:
    if facts.splits:
        kind += "-dual" if shared else "-single"
    return LinkEdge(
        ends=ends,
        kind=kind,
        bandwidth_Bps=facts.bandwidth.value,
        latency_ns=_ns(facts.latency),
        data_header_bytes=facts.data_header.value if facts.data_header else 0.0,
        request_bytes=facts.request.value if facts.request else 0.0,
        energy_J_per_bit=_si(facts.energy),
        dimension=dimension,
    )


def _apart(nodes: tuple[Node, ...], routes: Routes) -> str:
    reached = routes.depth[0] >= 0
    lost = int(np.argmin(reached))
    what = f"node {nodes[lost].id}" if lost < len(nodes) else "a hub"
    return f"{what} has no route to node {nodes[0].id}"


def _kind_counts(routes: Routes, links: tuple[LinkEdge, ...]) -> dict[str, Floats]:
    """Per kind of link, (n, n) how many of it each route has."""
    kinds = sorted({link.kind for link in links})
    counts = {}
    for kind in kinds:
        per_link = np.repeat([float(link.kind == kind) for link in links], 2)
        counts[kind] = routes.route_sums(per_link)
    return counts


def _classes(
    description: MachineDescription,
    nodes: tuple[Node, ...],
    routes: Routes,
    counts: dict[str, Floats],
) -> Any:
    n = len(nodes)
    found = np.full((n, n), -1, dtype=np.int64)
    known_kinds = set(counts) | {
        name
        for base, t in description.link_types.items()
        for name in ([f"{base}-single", f"{base}-dual"] if t.splits else [base])
    }
    for k, wanted in enumerate(description.distance_classes):
        for kind in wanted.route:
            if kind not in known_kinds:
                raise DescriptionError(
                    ("distance_classes", k, "route", kind),
                    f"unknown kind of link '{kind}': "
                    f"expected one of {', '.join(sorted(known_kinds)) or 'none'}",
                )
        fits = _fits(wanted, routes, counts, n)
        found[(found < 0) & fits] = k
    return found


def _fits(wanted: DistanceClass, routes: Routes, counts: dict[str, Floats], n: int) -> Any:
    fits = np.array(routes.reachable)
    if wanted.hops is not None:
        fits &= routes.depth[:, :n] == wanted.hops
    if not wanted.route and wanted.hops is None:
        fits &= np.eye(n, dtype=bool)
    for kind, count in counts.items():
        rule = wanted.route.get(kind, 0)
        if rule == "some":
            fits &= count >= 1
        elif rule != "any":
            fits &= count == rule
    fits &= np.eye(n, dtype=bool) if not any(wanted.route.values()) else ~np.eye(n, dtype=bool)
    return fits


def _pair_tables(
    description: MachineDescription,
    nodes: tuple[Node, ...],
    links: tuple[LinkEdge, ...],
    routes: Routes,
    classes: Any,
) -> tuple[Floats, Floats]:
    n = len(nodes)
    latency, bandwidth = np.full((n, n), np.nan), np.full((n, n), np.nan)
    _derive(nodes, links, routes, latency, bandwidth)
    for name in ("pair_write_latency", "pair_write_bandwidth"):
        if (matrix := getattr(description, name)) is not None:
            _check_square(matrix, n, name)
    for k, row in enumerate(description.distance_classes):
        if row.latency is not None:
            latency[classes == k] = row.latency.value * 1e9
        if row.bandwidth is not None:
            bandwidth[classes == k] = row.bandwidth.value
    for name, matrix, table, scale in (
        ("pair_latency", description.pair_latency, latency, 1e9),
        ("pair_bandwidth", description.pair_bandwidth, bandwidth, 1.0),
    ):
        if matrix is None:
            continue
        _check_square(matrix, n, name)
        for i, matrix_row in enumerate(matrix):
            for j, value in enumerate(matrix_row):
                if value is not None:
                    table[i, j] = value.value * scale
    # A home without memory has neither latency nor bandwidth.
    empty = np.array([node.memory_bytes == 0 for node in nodes])
    latency[:, empty] = np.nan
    bandwidth[:, empty] = np.nan
    return latency, bandwidth


def _derive(
    nodes: tuple[Node, ...],
    links: tuple[LinkEdge, ...],
    routes: Routes,
    latency: Floats,
    bandwidth: Floats,
) -> None:
    """Pair values from the parts, where the parts are known: sums of latencies, narrowest part.

    A cache line of payload shares each link with its header.
    """
    home_ns = np.array([_nan(node.memory_latency_ns) for node in nodes])
    home_Bps = np.array([_nan(node.memory_bandwidth_Bps) for node in nodes])
    diagonal = np.arange(len(nodes))
    if not links:
        latency[diagonal, diagonal] = home_ns
        bandwidth[diagonal, diagonal] = home_Bps
        return
    per_link = np.repeat([_nan(link.latency_ns) for link in links], 2)
    missing = np.isnan(per_link)
    on_route = routes.route_sums(np.where(missing, 0.0, per_link))
    unknown = routes.route_sums(missing.astype(float)) > 0
    latency[:] = np.where(unknown, np.nan, on_route + home_ns[None, :])
    widths = sorted({_payload_Bps(link) for link in links})
    payload = np.repeat([_payload_Bps(link) for link in links], 2)
    narrowest = np.full_like(bandwidth, np.inf)
    for width in reversed(widths):
        narrowest[routes.route_sums((payload == width).astype(float)) > 0] = width
    bandwidth[:] = np.minimum(narrowest, home_Bps[None, :])


def _payload_Bps(link: LinkEdge) -> float:
    line = DEFAULT_LINE_BYTES
    return link.bandwidth_Bps * line / (line + link.data_header_bytes)


def _slit(description: MachineDescription, n: int) -> Floats | None:
    if description.slit is None:
        return None
    _check_square(description.slit, n, "slit")
    return np.array(description.slit, dtype=np.float64)


def _check_square(matrix: Any, n: int, name: str) -> None:
    for k, row in enumerate(matrix):
        if len(row) != n:
            raise DescriptionError((name, k), f"{name}: {len(row)} values in a row: expected {n}")
    if len(matrix) != n:
        raise DescriptionError((name,), f"{name}: {len(matrix)} rows: expected {n}, one per node")


def _check_nics(description: MachineDescription, nodes: tuple[Node, ...]) -> None:
    known = {node.id for node in nodes}
    for k, nic in enumerate(description.nics):
        first, _, last = str(nic.nodes).partition("-")
        missing = set(range(int(first), int(last or first) + 1)) - known
        if missing:
            raise DescriptionError(("nics", k, "nodes"), f"there is no node {min(missing)}")


def _check_unique(ids: list[Any], place: Place, noun: str) -> None:
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise DescriptionError(place, f"{noun} {twice[0]} stands twice")


def _doubtful(value: Any, place: Place) -> Iterator[str]:
    """Paths of the quantities marked as doubtful."""
    if isinstance(value, dict):
        if value.get("doubtful") is True:
            yield ".".join(map(str, place))
        for key, part in value.items():
            yield from _doubtful(part, (*place, key))
    elif isinstance(value, (list, tuple)):
        for key, part in enumerate(value):
            yield from _doubtful(part, (*place, key))


def _si(quantity: Quantity | None) -> float | None:
    return None if quantity is None else quantity.value


def _fact(fact: Fact | None) -> float | None:
    return None if fact is None else fact.value


def _ns(quantity: Quantity | None) -> float | None:
    return None if quantity is None else quantity.value * 1e9


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value
