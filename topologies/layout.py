"""Positions of a machine's vertices in its picture: rings of nodes around hubs, or a grid.

Vertices fall into blocks: the hubs of one group with all nodes that hang on them, or the nodes of
one group. A block takes a sector of a ring: its nodes outside, its hubs inside, switches without
nodes in the middle. Where blocks hold many hubs (an IRU of an SGI), each block is a ring of its own
and the blocks stand around a circle. Many nodes without hubs stand on a grid, and so do nodes
whose links are unknown, block by block. All distances are in units of about one node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil, cos, pi, sin, sqrt

import numpy as np

from .picture import MachinePicture
from .routes import Floats

GRID_FROM_NODES = 49
ROW_NODES_MAX = 72  # nodes on one ring before a second row is begun
MANY_HUBS = 4  # hubs in a block from which it is drawn on its own
STEP = 1.15  # from one node to the next
GRID_STEP = 1.35


@dataclass
class Layout:
    """(v, 2) positions of the vertices, and the groups to be framed: (name, their vertices)."""

    positions: Floats
    frames: list[tuple[str, list[int]]] = field(default_factory=list)


@dataclass
class _Block:
    name: str
    nodes: list[int] = field(default_factory=list)
    hubs: list[int] = field(default_factory=list)


def lay_out(picture: MachinePicture) -> Layout:
    """Positions for ``picture``, the same at every call."""
    blocks = _near_each_other(_blocks(picture), picture)
    positions = np.zeros((len(picture.vertices), 2))
    with_nodes = [block for block in blocks if block.nodes]
    if not picture.links:
        _block_grids(blocks, positions)
    elif picture.node_count == len(picture.vertices) and (
        picture.node_count >= GRID_FROM_NODES or _mesh_columns(picture)
    ):
        positions = _grid(picture)
    elif len(with_nodes) > 1 and min(len(block.hubs) for block in with_nodes) >= MANY_HUBS:
        _ring_of_blocks(with_nodes, positions)
        _middle([hub for block in blocks if not block.nodes for hub in block.hubs], positions, 0.0)
    else:
        _ring(blocks, positions)
    return Layout(positions, _frames(picture, blocks))


def _blocks(picture: MachinePicture) -> list[_Block]:
    """The blocks, in the order of their first vertices."""
    n, vertices = picture.node_count, picture.vertices
    group_of_hub = {k: vertices[k].group or str(vertices[k].id) for k in range(n, len(vertices))}
    blocks: dict[str, _Block] = {}
    for k in range(n):
        homes = {group_of_hub[v] for v in picture.neighbours[k] if v >= n}
        name = homes.pop() if len(homes) == 1 else vertices[k].group or f"node {vertices[k].id}"
        blocks.setdefault(name, _Block(name)).nodes.append(k)
    for hub, name in group_of_hub.items():
        blocks.setdefault(name, _Block(name)).hubs.append(hub)
    for block in blocks.values():
        # Nodes stand in the order of the hub that they hang on.
        place = {hub: k for k, hub in enumerate(block.hubs)}
        block.nodes.sort(
            key=lambda k: min((place.get(v, n) for v in picture.neighbours[k]), default=n)
        )
    return list(blocks.values())


def _near_each_other(blocks: list[_Block], picture: MachinePicture) -> list[_Block]:
    """The blocks in an order around a circle that puts much-linked ones side by side.

    Swaps two at a time while that shortens the links by a tenth; the file's order stays otherwise,
    its first block stays first. Those without nodes come last: they stand in the middle.
    """
    outer = [block for block in blocks if block.nodes]
    inner = [block for block in blocks if not block.nodes]
    count = len(outer)
    if not 4 <= count <= 40:
        return outer + inner
    block_of = {v: k for k, b in enumerate(outer) for v in b.nodes + b.hubs}
    links = np.zeros((count, count))
    for link in picture.links:
        a, b = (block_of.get(end) for end in link.ends)
        if a is not None and b is not None:
            links[[a, b], [b, a]] += 1
    step = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    step = np.minimum(step, count - step)
    order = np.arange(count)
    length = float((links * step).sum())
    improved = True
    while improved:
        improved = False
        for a, b in combinations(range(1, count), 2):
            trial = order.copy()
            trial[[a, b]] = trial[[b, a]]
            shorter = float((links[np.ix_(trial, trial)] * step).sum())
            if shorter < 0.9 * length:
                order, length, improved = trial, shorter, True
    return [outer[k] for k in order] + inner


def _ring(blocks: list[_Block], positions: Floats) -> None:
    """Sectors of one ring: nodes outside, their hubs inside, switches without nodes amid."""
    outer = [block for block in blocks if block.nodes]
    middle = [hub for block in blocks if not block.nodes for hub in block.hubs]
    rows = ceil(sum(len(block.nodes) for block in outer) / ROW_NODES_MAX)
    columns = [ceil(len(block.nodes) / rows) for block in outer]
    gap = 0.0 if all(count == 1 for count in columns) or len(outer) == 1 else 0.6
    total = sum(columns) + gap * len(outer)
    radius = max((1.35 if total < 12 else STEP) * total / (2 * pi), 1.25)
    hubs = sum(len(block.hubs) for block in outer)
    hub_radius = 0.0
    if hubs > 1 or len(outer) > 1:
        hub_radius = max(0.8, STEP * hubs / (2 * pi), 0.45 * radius) if hubs else 0.0
    if middle:
        hub_radius = max(hub_radius, _middle(middle, positions, 0.4 * hub_radius) + 1.5)
    radius = max(radius, hub_radius + (1.6 if hubs else 0.0))
    turn = 2 * pi / total
    angle = _first_middle(len(outer)) + turn * (columns[0] if len(outer) > 1 else 1) / 2
    for sector, (block, width) in enumerate(zip(outer, columns, strict=True)):
        # Of two blocks side by side the left one is read downwards too.
        upwards = len(outer) == 2 and sector == 0
        for k, node in enumerate(block.nodes[::-1] if upwards else block.nodes):
            row, column = divmod(k, width)
            positions[node] = _polar(radius + row * STEP, angle - turn * (column + 0.5))
        for k, hub in enumerate(block.hubs[::-1] if upwards else block.hubs):
            share = width * (k + 0.5) / len(block.hubs)
            positions[hub] = _polar(hub_radius, angle - turn * share)
        angle -= turn * (width + gap)


def _first_middle(sectors: int) -> float:
    """The angle of the first sector's middle: two stand side by side, four in the corners."""
    return {2: pi, 4: 3 * pi / 4}.get(sectors, pi / 2)


def _middle(hubs: list[int], positions: Floats, radius_min: float) -> float:
    """Switches on a circle around the origin, of the radius ``radius_min``, or as they need."""
    radius = max(radius_min, STEP * len(hubs) / (2 * pi)) if len(hubs) > 1 else 0.0
    for k, hub in enumerate(hubs):
        positions[hub] = _polar(radius, pi / 2 - 2 * pi * k / len(hubs))
    return radius


def _ring_of_blocks(blocks: list[_Block], positions: Floats) -> None:
    """Each block as two rings, hubs inside and nodes outside; the blocks around a circle."""
    sizes = []
    for block in blocks:
        hub_radius = 1.35 * len(block.hubs) / (2 * pi)
        radius = max(hub_radius + 1.15, STEP * len(block.nodes) / (2 * pi))
        sizes.append(radius + 0.9)
        for vertices, r in ((block.hubs, hub_radius), (block.nodes, radius)):
            for k, vertex in enumerate(vertices):
                positions[vertex] = _polar(r, pi / 2 - 2 * pi * (k + 0.5) / len(vertices))
    count = len(blocks)
    circle = max(sizes) / sin(pi / count) * 1.04
    for k, block in enumerate(blocks):
        positions[block.hubs + block.nodes] += _polar(
            circle, _first_middle(count) - 2 * pi * k / count
        )


def _polar(radius: float, angle: float) -> tuple[float, float]:
    return radius * cos(angle), radius * sin(angle)


def _mesh_columns(picture: MachinePicture) -> int | None:
    """The row length of a mesh or torus of two dimensions, None for other graphs."""
    n = picture.node_count
    pairs = {(min(link.ends), max(link.ends)) for link in picture.links}
    for columns in (c for c in range(2, n // 2 + 1) if n % c == 0):
        across = {(k, k + 1) for k in range(n - 1) if (k + 1) % columns}
        down = {(k, k + columns) for k in range(n - columns)}
        wraps = {(k, k + columns - 1) for k in range(0, n, columns)}
        wraps |= {(k, k + n - columns) for k in range(columns)}
        if across | down <= pairs <= across | down | wraps:
            return columns
    return None


def _grid(picture: MachinePicture) -> Floats:
    """Nodes row by row: a mesh, torus or hypercube in rows along its links, a ring to and fro."""
    n = picture.node_count
    # The stride of a regular graph's dimension is a common difference between linked nodes.
    strides = Counter(abs(b - a) for a, b in (link.ends for link in picture.links))
    rows = [stride for stride, count in strides.items() if n % stride == 0 and count >= n / 4]
    columns = min((s for s in rows if 1 < s < n), key=lambda s: abs(s - sqrt(n)), default=0)
    if not n / 4 <= columns**2 <= 4 * n:
        columns = ceil(sqrt(n))
    columns = _mesh_columns(picture) or columns
    row, column = np.divmod(np.arange(n), columns)
    if max(map(len, picture.neighbours)) <= 2:
        column = np.where(row % 2, columns - 1 - column, column)
    return np.stack([column, -row], axis=1).astype(float) * GRID_STEP


def _block_grids(blocks: list[_Block], positions: Floats) -> None:
    """Each block as a small grid, the blocks in rows."""
    largest = max(len(block.nodes + block.hubs) for block in blocks)
    columns = ceil(sqrt(largest))
    rows = ceil(largest / columns)
    gap = 0.0 if largest == 1 else 0.75
    across = ceil(sqrt(len(blocks) * (rows + gap) / (columns + gap)))
    for k, block in enumerate(blocks):
        down, right = divmod(k, across)
        for j, vertex in enumerate(block.nodes + block.hubs):
            row, column = divmod(j, columns)
            positions[vertex] = (
                (right * (columns + gap) + column) * STEP,
                -(down * (rows + gap) + row) * STEP,
            )


def _frames(picture: MachinePicture, blocks: list[_Block]) -> list[tuple[str, list[int]]]:
    """Groups of at least two vertices, larger ones first, so that small ones lie on top."""
    groups: dict[str, list[int]] = {}
    for k, vertex in enumerate(picture.vertices):
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
    corners = np.array([_polar(padding, 2 * pi * k / 32) for k in range(32)])
    cloud = (points[:, None, :] + corners[None, :, :]).reshape(-1, 2)
    ordered: list[list[float]] = cloud[np.lexsort((cloud[:, 1], cloud[:, 0]))].tolist()

    def chain(sequence: Iterable[list[float]]) -> list[list[float]]:
        """One side of the convex hull (Andrew's monotone chain)."""
        side: list[list[float]] = []
        for x, y in sequence:
            while len(side) > 1:
                (ax, ay), (bx, by) = side[-2:]
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                    break
                side.pop()
            side.append([x, y])
        return side[:-1]

    return np.array(chain(ordered) + chain(ordered[::-1]))


def curve(start: Floats, end: Floats, bend: float, steps: int = 16) -> Floats:
    """(k, 2) points from ``start`` to ``end``; ``bend`` is the bow over its length.

    k is odd, so that one of the points is the middle.
    """
    if bend == 0:
        return np.stack([start, (start + end) / 2, end])
    dx, dy = end - start
    middle = (start + end) / 2 + 2 * bend * np.array([-dy, dx])
    t = np.linspace(0, 1, steps + 1)[:, None]
    return np.asarray((1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end)
