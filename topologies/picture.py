"""What a picture of a machine shows: vertices, groups and links, read from a Machine or its JSON.

Reports draw the machine of a stored Record, which is plain data; so all drawing starts from that.

A machine's picture as lines, areas and labels, for any painter (Plotly, SVG) to paint.

Positions are in units of about one node, y upwards; widths and letters in pixels at the picture's
natural size. Texts are plain: the painter escapes them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from ..inputs import InputError
from .machine import Machine
from .routes import Floats
from .schema_types import NODES_MAX

VertexId = int | str  # a node's number, a hub's name
LINKS_MAX = 1_000_000  # more than all pairs of 1,024 nodes


@dataclass(frozen=True)
class Vertex:
    """A node or a hub. ``memory_bytes`` and ``cpus`` are None where unknown, and for hubs."""

    id: VertexId
    kind: str
    group: str | None
    cpus: int | None = None
    memory_bytes: float | None = None


@dataclass(frozen=True)
class LinkLine:
    """A link between two vertices (positions in ``MachinePicture.vertices``), rate of one way."""

    ends: tuple[int, int]
    kind: str
    bandwidth_Bps: float


@dataclass(frozen=True)
class MachinePicture:
    """The vertices, nodes first and hubs after them, and the links between them."""

    name: str
    title: str
    vertices: tuple[Vertex, ...]
    node_count: int
    links: tuple[LinkLine, ...]

    @cached_property
    def neighbours(self) -> tuple[frozenset[int], ...]:
        """Per vertex, those that it is linked to."""
        found: list[set[int]] = [set() for _ in self.vertices]
        for link in self.links:
            a, b = link.ends
            found[a].add(b)
            found[b].add(a)
        return tuple(map(frozenset, found))


def picture_data(machine: Machine) -> dict[str, Any]:
    """Plain data (JSON) of all that a picture shows; a small part of what ``as_json`` holds."""
    return {
        "name": machine.name,
        "title": machine.description.title,
        "nodes": [
            {
                "id": node.id,
                "cpus": list(node.cpus),
                "memory_bytes": None if math.isnan(node.memory_bytes) else int(node.memory_bytes),
            }
            for node in machine.nodes
        ],
        "groups": [node.group for node in machine.nodes],
        "hubs": [{"id": hub.id, "kind": hub.kind, "group": hub.group} for hub in machine.hubs],
        "links": [
            {
                "ends": [machine.vertex_name(end) for end in link.ends],
                "kind": link.kind,
                "bandwidth_Bps": link.bandwidth_Bps,
            }
            for link in machine.links
        ],
    }


def read_picture(data: Mapping[str, Any]) -> MachinePicture:
    """The picture in plain data: ``picture_data``, a Record's machine, or ``Machine.as_json()``.

    The last has no groups, no kinds of links and no list of hubs: hubs are then the ends of links
    that are no nodes. Raises InputError where the data are not of that form.
    """
    try:
        nodes, links = list(data["nodes"]), list(data.get("links") or ())
        if len(nodes) > NODES_MAX or len(links) > LINKS_MAX:
            raise InputError("too large to draw", expected=f"at most {NODES_MAX} nodes")
        if not nodes:
            raise ValueError("no nodes")
        # A machine without any CPU is one whose tool reported none (Intel MLC).
        are_cpus_known = any(node.get("cpus") for node in nodes)
        groups = list(data.get("groups") or [None] * len(nodes))
        vertices = [
            Vertex(
                id=node["id"],
                kind="node",
                group=_text(group),
                cpus=len(node.get("cpus") or ()) if are_cpus_known else None,
                memory_bytes=None if (size := node.get("memory_bytes")) is None else float(size),
            )
            for node, group in zip(nodes, groups, strict=True)
        ]
        vertices += [
            Vertex(hub["id"], str(hub.get("kind") or "hub"), _text(hub.get("group")))
            for hub in data.get("hubs") or ()
        ]
        place = {vertex.id: k for k, vertex in enumerate(vertices)}
        if data.get("hubs") is None:
            for end in (end for link in links for end in link["ends"] if isinstance(end, str)):
                if end not in place:
                    place[end] = len(vertices)
                    vertices.append(Vertex(end, "hub", None))
        lines = []
        for link in links:
            a, b = link["ends"]
            bandwidth_Bps = float(link["bandwidth_Bps"])
            if not 0 < bandwidth_Bps < math.inf:
                raise ValueError(f"bandwidth_Bps: {bandwidth_Bps}")
            lines.append(LinkLine((place[a], place[b]), str(link.get("kind") or ""), bandwidth_Bps))
        return MachinePicture(
            str(data.get("name") or ""),
            str(data.get("title") or ""),
            tuple(vertices),
            len(nodes),
            tuple(lines),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as failure:
        raise InputError("not a machine that can be drawn", token=str(failure)) from None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


INK, PALE_INK, PAPER = "#1f2933", "#5b6b7b", "#ffffff"
# Use from 0 to 1: pale to dark, with a warm middle (after ColorBrewer's YlOrRd).
USE_COLOURS = ("#c3cedb", "#fed976", "#fd8d3c", "#e31a1c", "#800026")
USE_STEPS = 20


@dataclass
class Lines:
    """Paths of one look, (k, 2) each; ``key`` is the legend entry that they belong to."""

    colour: str
    width_px: float
    opacity: float
    key: str
    paths: list[Floats] = field(default_factory=list)


@dataclass
class Areas:
    """Closed outlines of one look, (k, 2) each."""

    fill: str
    edge: str
    edge_px: float
    key: str | None = None
    paths: list[Floats] = field(default_factory=list)


@dataclass(frozen=True)
class Label:
    """A text with its middle at ``x``, ``y``."""

    x: float
    y: float
    text: str
    size_px: float
    colour: str = INK
    bold: bool = False


@dataclass(frozen=True)
class Spot:
    """Where the mouse finds facts, a line of text each; ``radius`` in units."""

    x: float
    y: float
    radius: float
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Key:
    """An entry of the legend: ``shape`` is ``line``, ``box`` or ``disc``."""

    name: str
    shape: str
    colour: str
    width_px: float = 1.0


@dataclass
class Scene:
    """All that is painted, in the order of painting: frames, lines, areas, labels."""

    name: str
    title: str
    note: str
    low: tuple[float, float]
    high: tuple[float, float]
    unit_px: float
    frames: list[Areas] = field(default_factory=list)
    lines: list[Lines] = field(default_factory=list)
    areas: list[Areas] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    spots: list[Spot] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    scale: str | None = None
    """What the colours of use mean, None where nothing is coloured by use."""
    measure: str = "in use"
    """What a share of a link or a node is, in words."""

    def add_spot(self, at: Floats, radius: float, lines: tuple[str, ...]) -> None:
        """One more around ``at``."""
        self.spots.append(Spot(float(at[0]), float(at[1]), radius, lines))


def use_colour(use: float) -> str:
    """The colour of a use from 0 to 1, in ``USE_STEPS`` steps."""
    return _colour_of_step(round(min(max(use, 0.0), 1.0) * USE_STEPS))


@cache
def _colour_of_step(step: int) -> str:
    position = step / USE_STEPS * (len(USE_COLOURS) - 1)
    k = min(int(position), len(USE_COLOURS) - 2)
    low, high = (_rgb(colour) for colour in USE_COLOURS[k : k + 2])
    mixed = (round(a + (b - a) * (position - k)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return red, green, blue


def ink_on(fill: str) -> str:
    """Dark or white letters, whichever stands out (relative luminance of ITU-R BT.709)."""
    red, green, blue = _rgb(fill)
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 140 else PAPER
