"""From a description to a Machine: its nodes, hubs, links, routes and pair tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from pydantic import BaseModel

from ..inputs.open_part import OpenPart
from ..inputs.yaml_file import Place
from .copy_engines import build_copy_engines
from .links import build_links, generated_parts
from .machine import HubVertex, Machine, Node
from .nodes import build_nodes
from .pair_tables import distance_classes, kind_counts, pair_tables, slit_table
from .routes import Routes, routes_between
from .schema import DescriptionError, MachineDescription
from .values import check_unique, si

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
