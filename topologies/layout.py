"""Where a machine's vertices stand in its picture: rings of nodes around hubs, or a grid.

Vertices fall into blocks: the hubs of one group with all nodes that hang on them, or the nodes of
one group. A block takes a sector of a ring: its nodes outside, its hubs inside, switches without
nodes in the middle. Where blocks hold many hubs (an IRU of an SGI), each block is a picture of its
own kind and the blocks stand around a circle. Many nodes without hubs stand on a grid. All
distances are in units of about one node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from math import ceil, cos, hypot, pi, sin, sqrt

import numpy as np

from .machine import Machine
from .routes import Floats

GRID_FROM_NODES = 49
ROW_NODES_MAX = 72  # nodes on one ring before a second row is begun
MANY_HUBS = 4  # hubs in a block from which it is drawn on its own


@dataclass
class Layout:
    """(v, 2) positions of nodes and hubs, and groups to be framed: (name, their vertices)."""

    positions: Floats
    frames: list[tuple[str, list[int]]] = field(default_factory=list)
    crowded: bool = False
    """Whether links run along rows of nodes, so that long ones must bend around them."""


@dataclass
class _Block:
    name: str
    nodes: list[int] = field(default_factory=list)
    hubs: list[int] = field(default_factory=list)


def lay_out(machine: Machine) -> Layout:
    """Positions for ``machine``, the same at every call."""
    n = len(machine.nodes)
    blocks = _blocks(machine)
    if not machine.hubs and n >= GRID_FROM_NODES:
        return Layout(_grid(machine), crowded=True)
    positions = np.zeros((n + len(machine.hubs), 2))
    with_nodes = [block for block in blocks if block.nodes]
    if len(with_nodes) > 1 and min(len(block.hubs) for block in with_nodes) >= MANY_HUBS:
        _ring_of_blocks(machine, with_nodes, positions)
    else:
        _ring(machine, blocks, positions)
    return Layout(positions, _frames(machine, blocks))


def _blocks(machine: Machine) -> list[_Block]:
    """The blocks, in the order of their first vertices."""
    n = len(machine.nodes)
    neighbours: list[set[int]] = [set() for _ in range(n + len(machine.hubs))]
    for link in machine.links:
        a, b = link.ends
        neighbours[a].add(b)
        neighbours[b].add(a)
    group_of_hub = {n + k: hub.group or hub.id for k, hub in enumerate(machine.hubs)}
    blocks: dict[str, _Block] = {}
    for k, node in enumerate(machine.nodes):
        homes = {group_of_hub[v] for v in neighbours[k] if v >= n}
        name = homes.pop() if len(homes) == 1 else node.group or f"node {node.id}"
        blocks.setdefault(name, _Block(name)).nodes.append(k)
    for hub, name in group_of_hub.items():
        blocks.setdefault(name, _Block(name)).hubs.append(hub)
    for block in blocks.values():
        # Nodes stand in the order of the hub that they hang on.
        place = {hub: k for k, hub in enumerate(block.hubs)}
        block.nodes.sort(key=lambda k: min((place.get(v, -1) for v in neighbours[k]), default=0))
    return _near_each_other(list(blocks.values()), neighbours)


def _near_each_other(blocks: list[_Block], neighbours: list[set[int]]) -> list[_Block]:
    """The blocks in an order around a circle that puts much-linked ones side by side.

    Swaps two at a time while that shortens the links by a tenth; the file's order stays otherwise.
    """
    count = len(blocks)
    if not 4 <= count <= 40:
        return blocks
    block_of = {v: k for k, b in enumerate(blocks) for v in b.nodes + b.hubs}
    links = np.zeros((count, count))
    for v, others in enumerate(neighbours):
        for other in others:
            links[block_of[v], block_of[other]] += 1
    step = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    step = np.minimum(step, count - step)
    order = np.arange(count)
    length = float((links * step).sum())
    improved = True
    while improved:
        improved = False
        for a, b in combinations(range(count), 2):
            trial = order.copy()
            trial[[a, b]] = trial[[b, a]]
            shorter = float((links[np.ix_(trial, trial)] * step).sum())
            if shorter < 0.9 * length:
                order, length, improved = trial, shorter, True
    return [blocks[k] for k in order]


def _ring(machine: Machine, blocks: list[_Block], positions: Floats) -> None:
    """Sectors of one ring: nodes outside, their hubs inside, switches without nodes amid."""
    outer = [block for block in blocks if block.nodes]
    middle = [hub for block in blocks if not block.nodes for hub in block.hubs]
    rows = ceil(sum(len(block.nodes) for block in outer) / ROW_NODES_MAX)
    columns = [ceil(len(block.nodes) / rows) for block in outer]
    gap = 0.0 if all(count == 1 for count in columns) else 0.6
    total = sum(columns) + gap * len(outer)
    hubs = sum(len(block.hubs) for block in outer)
    only_hub = len(outer) == 1 and hubs == 1
    hub_radius = 0.0 if only_hub else max(0.9, 1.1 * hubs / (2 * pi)) if hubs else 0.0
    if middle:
        hub_radius = max(hub_radius, 1.1 * len(middle) / pi + 1.2)
    radius = max(1.1 * total / (2 * pi), hub_radius + (1.4 if hubs else 1.0))
    # The first sector begins on the left, sectors go round clockwise.
    turn = 2 * pi / total
    angle = pi - (turn * (columns[0] + gap) / 2 if len(outer) == 2 else 0.0) + _tilt(outer, turn)
    angle = pi / 2 + turn * (columns[0] + gap) / 2 if len(outer) == 2 else angle
    if len(outer) == 2:
        angle += pi / 2
    for block, width in zip(outer, columns, strict=True):
        for k, node in enumerate(block.nodes):
            row, column = divmod(k, width)
            at = angle - turn * (gap / 2 + column + 0.5)
            positions[node] = _polar(radius + row, at)
        for k, hub in enumerate(block.hubs):
            at = angle - turn * (gap / 2 + width * (k + 0.5) / len(block.hubs))
            positions[hub] = _polar(hub_radius, at)
        angle -= turn * (width + gap)
    for k, hub in enumerate(middle):
        at = pi / 2 - 2 * pi * k / len(middle)
        positions[hub] = _polar(0.0 if len(middle) == 1 else 1.1 * len(middle) / (2 * pi), at)


def _tilt(outer: list[_Block], turn: float) -> float:
    """Four single nodes stand as a square, not as a diamond."""
    return -turn / 2 if len(outer) == 4 and turn == pi / 2 else 0.0


def _ring_of_blocks(machine: Machine, blocks: list[_Block], positions: Floats) -> None:
    """Each block as two rings, hubs inside and nodes outside; the blocks around a circle."""
    sizes = []
    for block in blocks:
        hub_radius = 1.25 * len(block.hubs) / (2 * pi)
        radius = max(hub_radius + 1.0, 1.05 * len(block.nodes) / (2 * pi))
        sizes.append(radius + 0.8)
        for vertices, r in ((block.hubs, hub_radius), (block.nodes, radius)):
            for k, vertex in enumerate(vertices):
                at = pi / 2 - 2 * pi * (k + 0.5) / len(vertices)
                positions[vertex] = _polar(r, at)
    count, size = len(blocks), max(sizes)
    circle = size / sin(pi / count) * 1.04
    for k, block in enumerate(blocks):
        at = pi - 2 * pi * k / count - (pi / 4 if count == 4 else 0.0)
        positions[block.hubs + block.nodes] += _polar(circle, at)


def _polar(radius: float, angle: float) -> tuple[float, float]:
    return radius * cos(angle), radius * sin(angle)


def _grid(machine: Machine) -> Floats:
    """Nodes row by row; a mesh or torus of two dimensions in its own rows."""
    n = len(machine.nodes)
    columns = ceil(sqrt(n))
    for generator in machine.description.generate:
        if generator.members is None and generator.dimensions and len(generator.dimensions) == 2:
            columns = generator.dimensions[1]
    row, column = np.divmod(np.arange(n), columns)
    return np.stack([column * 1.3, -row * 1.3], axis=1).astype(float)


def _frames(machine: Machine, blocks: list[_Block]) -> list[tuple[str, list[int]]]:
    """Groups of at least two vertices, larger ones first, so that small ones lie on top."""
    groups: dict[str, list[int]] = {}
    vertices = [*machine.nodes, *machine.hubs]
    for k, vertex in enumerate(vertices):
        if vertex.group is not None:
            groups.setdefault(vertex.group, []).append(k)
    for block in blocks:
        # A block of many hubs frames all that hangs on them.
        if len(block.hubs) >= MANY_HUBS and block.name in groups:
            groups[block.name] = block.hubs + block.nodes
    frames = [(name, members) for name, members in groups.items() if len(members) > 1]
    return sorted(frames, key=lambda frame: -len(frame[1]))


def hull(points: Floats, padding: float) -> Floats:
    """(k, 2) corners of a rounded outline around ``points``, ``padding`` away from them."""
    corners = np.array([_polar(padding, 2 * pi * k / 24) for k in range(24)])
    cloud = (points[:, None, :] + corners[None, :, :]).reshape(-1, 2)
    ordered = cloud[np.lexsort((cloud[:, 1], cloud[:, 0]))]

    def chain(sequence: Floats) -> list[Floats]:
        """One side of the convex hull (Andrew's monotone chain)."""
        side: list[Floats] = []
        for point in sequence:
            while len(side) > 1 and _cross(side[-2], side[-1], point) <= 0:
                side.pop()
            side.append(point)
        return side[:-1]

    return np.array(chain(ordered) + chain(ordered[::-1]))


def _cross(a: Floats, b: Floats, c: Floats) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def curve(start: Floats, end: Floats, bend: float, steps: int = 12) -> Floats:
    """(steps + 1, 2) points from ``start`` to ``end``; ``bend`` is the bow over its length."""
    if bend == 0:
        return np.stack([start, end])
    dx, dy = end - start
    length = hypot(dx, dy) or 1.0
    middle = (start + end) / 2 + 2 * bend * length * np.array([-dy, dx]) / length
    t = np.linspace(0, 1, steps + 1)[:, None]
    return np.asarray((1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end)
