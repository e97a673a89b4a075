"""What a picture of a machine shows: vertices, groups and links, read from a Machine or its JSON.

Reports draw the machine of a stored Record, which is plain data; so all drawing starts from that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..inputs import InputError
from .machine import Machine
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
                memory_bytes=_number(node.get("memory_bytes")),
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


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
