"""The links of a machine: listed and generated, parallel ones joined, split ports marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from .generators import Generated, generate
from .machine import HubVertex, Node
from .routes import LinkEdge
from .schema import DescriptionError, LinkType, MachineDescription
from .values import in_ns, si


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


def _response_bytes(facts: LinkType) -> float:
    size = facts.response or facts.request
    return size.value if size else 0.0


def _link(
    facts: LinkType, kind: str, ends: tuple[int, int], shared: bool, dimension: int
) -> LinkEdge:
    if facts.splits:
        kind += "-dual" if shared else "-single"
    return LinkEdge(
        ends=ends,
        kind=kind,
        bandwidth_Bps=facts.bandwidth.value,
        carried_Bps=si(facts.carried),
        latency_ns=in_ns(facts.latency),
        data_header_bytes=facts.data_header.value if facts.data_header else 0.0,
        request_bytes=facts.request.value if facts.request else 0.0,
        response_bytes=_response_bytes(facts),
        energy_J_per_bit=si(facts.energy),
        dimension=dimension,
    )
