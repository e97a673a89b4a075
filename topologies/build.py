"""From a description to a Machine: its nodes, hubs, links, routes and pair tables."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from ..inputs.number_sets import listed_numbers
from ..inputs.settings import OpenPart
from ..inputs.yaml_file import Place
from .copy_engines import build_copy_engines
from .generators import Generated, generate
from .machine import CacheLevel, HubVertex, Machine, Node, TlbLevel
from .pair_tables import (
    check_unique,
    distance_classes,
    in_ns,
    kind_counts,
    or_nan,
    pair_tables,
    plain,
    si,
    slit_table,
)
from .routes import LinkEdge, Routes, routes_between
from .schema import DEFAULT_LINE_BYTES, DescriptionError, LinkType, MachineDescription, NodeGroup
from .schema_types import NODES_MAX

_PLAIN = (str, int, float, type(None))


def build_machine(description: MachineDescription) -> Machine:
    """The machine that ``description`` stands for; raises DescriptionError."""
    nodes = build_nodes(description)
    hubs = tuple(HubVertex(h.id, h.kind, h.group, si(h.bandwidth)) for h in description.hubs)
    generated = generated_parts(description, nodes, hubs)
    hubs += tuple(hub for part in generated for hub in part.hubs)
    check_unique([hub.id for hub in hubs], ("hubs",), "hub")
    _check_nics(description, nodes)
    links = build_links(description, nodes, hubs, generated)
    routes = routes_between(len(nodes), len(hubs), links)
    if (links or hubs) and not routes.connected:
        raise DescriptionError(
            ("links",) if description.links else (),
            "the graph is disconnected: " + _unreachable_pairs(nodes, routes),
        )
    kinds = kind_counts(routes, links)
    classes = distance_classes(description, nodes, routes, kinds)
    latency, bandwidth = pair_tables(description, nodes, links, routes, classes)
    slit = slit_table(description, len(nodes))
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
        copy_engines=build_copy_engines(
            description.copy_engines, [node.id for node in nodes], [hub.id for hub in hubs]
        ),
        doubtful=tuple(_doubtful(description, ())),
    )


def _unreachable_pairs(nodes: tuple[Node, ...], routes: Routes) -> str:
    reached = routes.depth[0] >= 0
    lost = int(np.argmin(reached))
    what = f"node {nodes[lost].id}" if lost < len(nodes) else "a hub"
    return f"{what} has no route to node {nodes[0].id}"


def _check_nics(description: MachineDescription, nodes: tuple[Node, ...]) -> None:
    known = {node.id for node in nodes}
    for k, nic in enumerate(description.nics):
        first, _, last = str(nic.nodes).partition("-")
        missing = set(range(int(first), int(last or first) + 1)) - known
        if missing:
            raise DescriptionError(("nics", k, "nodes"), f"there is no node {min(missing)}")


def _doubtful(value: Any, place: Place) -> Iterator[str]:
    """Paths of the quantities marked as uncertain in a description, or a part of one."""
    parts = dict(value.plain) if isinstance(value, OpenPart) else value
    parts = vars(parts) if isinstance(parts, BaseModel) else parts
    marked = parts.get("doubtful") if isinstance(parts, dict) else getattr(parts, "doubtful", 0)
    if marked is True:
        yield ".".join(map(str, place))
    inside: Iterable[tuple[Any, Any]] = ()
    if isinstance(parts, dict):
        inside = parts.items()
    elif isinstance(parts, (list, tuple)):
        inside = enumerate(parts)
    for key, part in inside:
        if not isinstance(part, _PLAIN):
            yield from _doubtful(part, (*place, key))


def build_nodes(description: MachineDescription) -> tuple[Node, ...]:
    """All nodes by rising id; CPUs are numbered in the order of the file."""
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
    check_unique(ids, ("nodes",), "node")
    nodes: list[Node] = []
    next_cpu = 0
    for g, index in groups:
        first, last = g.id_range()
        for offset, node_id in enumerate(range(first, last + 1)):
            node = _node(description, g, index, node_id, offset, next_cpu)
            next_cpu += node.threads
            nodes.append(node)
    check_unique([cpu for node in nodes for cpu in node.cpus], ("nodes",), "CPU")
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
        with _placed("nodes", index, "cpus"):
            cpus = tuple(listed_numbers(g.cpus))
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
        memory_bytes=or_nan(si(size)),
        memory_bandwidth_Bps=si(memory.bandwidth),
        memory_latency_ns=in_ns(memory.latency),
        memory_kind=memory.kind,
        side_cache_bytes=tuple(cache.size.value for cache in memory.side_caches),
        clock_Hz=si(kind.clock),
        ipc=plain(kind.ipc),
        outstanding_misses=plain(kind.outstanding_misses),
        outstanding_misses_together=plain(kind.outstanding_misses_together),
        die_Bps=si(kind.die_bandwidth),
        die_cores=kind.die_cores,
        streaming_misses=plain(kind.streaming_misses),
        stream_stall=plain(kind.stream_stall),
        stream_uncovered=plain(kind.stream_uncovered),
        reorder_window=plain(kind.reorder_window),
        caches=tuple(
            CacheLevel(
                cache.level,
                cache.size.value,
                cache.shared_by_cores,
                cache.line.value if cache.line else DEFAULT_LINE_BYTES,
                in_ns(cache.latency),
                cache.ways,
            )
            for cache in sorted(kind.caches, key=lambda cache: cache.level)
        ),
        tlbs=tuple(TlbLevel(t.page.value, t.entries, t.shared_by_cores) for t in kind.tlbs),
        core_active_W=si(energy.core_active) if energy else None,
        core_idle_W=si(energy.core_idle) if energy else None,
        memory_energy_J_per_bit=si(energy.memory) if energy else None,
        write_turnaround=plain(memory.write_turnaround),
        home_agent_entries=plain(memory.home_agent_entries),
        system_call_ns=in_ns(kind.system_call),
        kernel=kind.kernel,
    )


def generated_parts(
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


def build_links(
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
    drawn: dict[str, float] = {}
    for wanted in description.distance_classes:
        if wanted.bandwidth is not None and list(wanted.route.values()) == [1]:
            # Of nodes that one link alone joins. A half link is as wide where its port is shared.
            kind = next(iter(wanted.route)).removesuffix("-single").removesuffix("-dual")
            drawn[kind] = max(drawn.get(kind, 0.0), wanted.bandwidth.value)
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
        link = replace(link, drawn_Bps=drawn.get(type_name))
        key = (min(a, b), max(a, b), link.kind)
        twin = merged.get(key)
        merged[key] = link if twin is None else _joined(twin, link)

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


def _joined(twin: LinkEdge, link: LinkEdge) -> LinkEdge:
    carried = twin.carried_Bps
    return replace(
        twin,
        bandwidth_Bps=twin.bandwidth_Bps + link.bandwidth_Bps,
        carried_Bps=None if carried is None else carried + (link.carried_Bps or 0.0),
        count=twin.count + 1,
    )


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
    response = facts.response or facts.request
    return LinkEdge(
        ends=ends,
        kind=kind,
        bandwidth_Bps=facts.bandwidth.value,
        carried_Bps=si(facts.carried),
        latency_ns=in_ns(facts.latency),
        data_header_bytes=facts.data_header.value if facts.data_header else 0.0,
        request_bytes=facts.request.value if facts.request else 0.0,
        response_bytes=response.value if response else 0.0,
        energy_J_per_bit=si(facts.energy),
        dimension=dimension,
    )
