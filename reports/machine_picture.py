"""The machine of a record, its links coloured by their use and its nodes by their memory's."""

from collections import Counter
from collections.abc import Iterable

from ..inputs import InputError
from ..sim.planes.outcome import ResourceUse
from ..sim.run.record import Record
from ..topologies.draw import machine_svg
from .traffic import TRAFFIC_CAPTION, traffic_load
from .words import listing

ADAPTER = ("nic out", "nic in")
# What a node can be short of, in words; pollers are in use all the time, whatever they find.
NODE_KINDS = {
    "cores": "cores",
    "misses": "lines under way",
    "memory": "memory",
    "threads": "threads",
    **dict.fromkeys(ADAPTER, "network adapter"),
}


def machine_in_use(record: Record) -> tuple[str, str] | None:
    """The picture as SVG and its caption; None where the record's machine cannot be drawn, and
    where it tells no use of its parts, as on the native plane.

    Of counted traffic, its bytes take the place of use (see ``traffic_load``).
    Use is the mean over the horizon. Of several links between the same ends the busiest one
    counts; a node is coloured by the busiest of its resources, so that none that holds work up
    looks idle.
    """
    if record.traffic:
        return _picture(record, *traffic_load(record), TRAFFIC_CAPTION, relative=True)
    links, nodes = use_of_parts(record.resources)
    parts = {use.kind for use in record.resources} - {"cores"}
    if record.resources and not (links or parts & set(NODE_KINDS)):
        return None
    kinds = dict.fromkeys(
        NODE_KINDS[use.kind] for use in record.resources if use.kind in NODE_KINDS
    )
    busiest = f"mean use of {_busiest(list(kinds))}" if nodes else ""
    facts = ["links by their mean use" if links else "", f"nodes by the {busiest}" if nodes else ""]
    caption = ", ".join(part for part in facts if part)
    return _picture(
        record, links, nodes, f"{caption[:1].upper()}{caption[1:]}.{_several_links(record)}"
    )


def _busiest(kinds: list[str]) -> str:
    if len(kinds) == 1:
        return f"their {kinds[0]}"
    return f"the busiest of their {listing(kinds)}"


def _several_links(record: Record) -> str:
    """A sentence on ends that several links join, which the picture shows as one line."""
    joined = Counter(
        tuple(sorted(map(str, link.get("ends", ())))) for link in record.machine.get("links", ())
    )
    several = Counter(count for count in joined.values() if count > 1)
    if not several:
        return ""
    parts = [f"{count} by {links} links" for links, count in sorted(several.items())]
    return f" Of the pairs joined, {listing(parts)}: one line, as busy as the busiest of them."


def use_of_parts(
    resources: Iterable[ResourceUse],
) -> tuple[dict[tuple[int | str, int | str], float], dict[int | str, float]]:
    """The use of links by their ends and of nodes, as ``machine_svg`` colours them."""
    links: dict[tuple[int | str, int | str], float] = {}
    nodes: dict[int | str, float] = {}
    for use in resources:
        if use.kind == "link" and use.ends is not None:
            links[use.ends] = max(use.utilisation, links.get(use.ends, 0.0))
        elif use.kind in NODE_KINDS and use.node is not None:
            nodes[use.node] = max(use.utilisation, nodes.get(use.node, 0.0))
    return links, nodes


def _picture(
    record: Record,
    links: dict[tuple[int | str, int | str], float],
    nodes: dict[int | str, float],
    caption: str,
    relative: bool = False,
) -> tuple[str, str] | None:
    known = bool(links) or not nodes  # else the colours would seem to tell of links, too
    try:
        picture = machine_svg(
            record.machine,
            link_use=links if known else None,
            node_use=nodes,
            title="",
            relative=relative,
        )
    except InputError:  # a record of a machine without nodes or links: the rest still tells
        return None
    return picture, caption
