"""Positions of a machine's vertices in its picture: rings of nodes around hubs, or a grid.

Vertices fall into blocks: the hubs of one group with all nodes that hang on them, or the nodes of
one group. A block takes a sector of a ring: its nodes outside, its hubs inside, switches without
nodes in the middle. Where blocks hold many hubs (an IRU of an SGI), each block is a ring of its own
and the blocks stand around a circle. Many nodes without hubs stand on a grid, and so do nodes
whose links are unknown, block by block. All distances are in units of about one node.

The links of a machine's picture: which are drawn, how they bow, their colours and widths.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from math import ceil, cos, isfinite, pi, sin, sqrt

import numpy as np

from ..inputs.grouping import by_key
from ..inputs.quantities import format_quantity
from .picture import USE_STEPS, Key, Lines, LinkLine, MachinePicture, Scene, VertexId, use_colour
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
    vertices = enumerate(picture.vertices)
    groups = by_key((one.group, k) for k, one in vertices if one.group is not None)
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


LinkUse = Mapping[tuple[VertexId, VertexId], float]

LINKS_DRAWN_MAX = 20_000  # more are one black cloud
BENT_LINKS_MAX = 8_000  # beyond, straight lines: too many to tell one from another
SPOT_RADIUS = 0.12

# Tol's bright scheme (Paul Tol, Colour schemes, SRON 2021) without its grey: distinguished by the
# colour-blind too.
KIND_COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377")
OTHER_COLOUR = "#999999"


def links_to_draw(picture: MachinePicture, use: LinkUse | None) -> list[LinkLine]:
    """The links to draw: all, or where they are too many the most used, then the widest."""
    if len(picture.links) <= LINKS_DRAWN_MAX:
        return list(picture.links)

    def rank(link: LinkLine) -> tuple[float, float]:
        used = (u or 0.0 for u in _uses(picture, link, use)) if use else (0.0,)
        return max(used), link.bandwidth_Bps

    # Of equal ones an even choice: by a multiplicative hash (Knuth) of their places.
    spread = sorted(range(len(picture.links)), key=lambda k: k * 2_654_435_761 % 2**32)
    ranked = sorted((picture.links[k] for k in spread), key=rank, reverse=True)
    return ranked[:LINKS_DRAWN_MAX]


def _uses(
    picture: MachinePicture, link: LinkLine, use: LinkUse | None
) -> tuple[float | None, float | None]:
    """How much of each direction is in use, None where that is unknown."""
    a, b = (picture.vertices[end].id for end in link.ends)
    forth, back = (use.get((a, b)), use.get((b, a))) if use is not None else (None, None)
    return known(forth), known(back)


def known(value: float | None) -> float | None:
    """None also of what is no number."""
    return value if value is not None and isfinite(value) else None


def add_links(
    scene: Scene,
    picture: MachinePicture,
    layout: Layout,
    drawn: list[LinkLine],
    use: LinkUse | None,
) -> None:
    """Links by kind and bandwidth; by use, each half shows what leaves the vertex it touches."""
    looks = _looks(scene, drawn)
    opacity = 1.0 if len(drawn) <= 600 else 0.7
    bends = _bends(layout.positions, picture, drawn)
    found: dict[tuple[str, str], Lines] = {}

    def add(path: Floats, colour: str, key: Key) -> None:
        lines = Lines(colour, key.width_px, opacity, key.name)
        found.setdefault((key.name, colour), lines).paths.append(path)

    for link, bend in zip(drawn, bends, strict=True):
        look = looks[_look_of(link)] if _look_of(link) in looks else looks[None]
        a, b = (picture.vertices[end].id for end in link.ends)
        path = curve(layout.positions[link.ends[0]], layout.positions[link.ends[1]], bend)
        middle = len(path) // 2
        name = f"{a} – {b}" + (f" ({link.kind})" if link.kind else "")
        facts = (name, f"{_rate(link.bandwidth_Bps)} each way")
        if use is None:
            add(path, look.colour, look)
            scene.add_spot(path[middle], SPOT_RADIUS, facts)
            continue
        forth, back = _uses(picture, link, use)
        for half, direction, amount in (
            (path[: middle + 1], f"{a} → {b}", forth),
            (path[middle:][::-1], f"{b} → {a}", back),
        ):
            add(half, OTHER_COLOUR if amount is None else use_colour(amount), look)
            use_text = f"{direction}: " + (
                "use unknown" if amount is None else f"{amount:.1%} {scene.measure}"
            )
            middle_point = half[middle // 2] if bend else half.mean(axis=0)
            scene.add_spot(middle_point, SPOT_RADIUS, (*facts, use_text))
    scene.lines = sorted(found.values(), key=lambda lines: (-lines.width_px, lines.key))
    if use is not None:  # the most used on top
        order = {use_colour(k / USE_STEPS): k for k in range(USE_STEPS + 1)}
        scene.lines.sort(key=lambda lines: order.get(lines.colour, -1))
    scene.keys += [
        look if use is None else Key(look.name, "line", OTHER_COLOUR, look.width_px)
        for look in looks.values()
    ]


def _look_of(link: LinkLine) -> tuple[str, float]:
    return link.kind, link.bandwidth_Bps


def _looks(scene: Scene, links: list[LinkLine]) -> dict[tuple[str, float] | None, Key]:
    """Colour and width per kind and bandwidth, widest first; the rarest share the last one."""
    counts = Counter(map(_look_of, links))
    if not counts:
        return {}
    common = [look for look, _ in counts.most_common(len(KIND_COLOURS))]
    widest = max(bandwidth for _, bandwidth in counts)
    full_px = min(6.0, 0.09 * scene.unit_px) if len(links) <= 600 else 1.5
    if len(links) > 2_000:
        full_px = 0.5
    looks: dict[tuple[str, float] | None, Key] = {}
    for colour, (kind, bandwidth) in zip(
        KIND_COLOURS, sorted(common, key=lambda look: (-look[1], look[0])), strict=False
    ):
        name = f"{kind} {_rate(bandwidth)}".strip()
        width = max(min(0.8, full_px), full_px * float(np.sqrt(bandwidth / widest)))
        looks[kind, bandwidth] = Key(name, "line", colour, width)
    if len(counts) > len(common):
        looks[None] = Key("other links", "line", OTHER_COLOUR, 1.0)
    return looks


@lru_cache(256)
def _rate(bandwidth_Bps: float) -> str:
    return format_quantity(float(f"{bandwidth_Bps:.4g}"), "bandwidth")


def _bends(positions: Floats, picture: MachinePicture, links: list[LinkLine]) -> Iterator[float]:
    """How far each link bows: so as to miss other vertices, and its twins of other kinds.

    Links between hubs, which stand inside, bow inwards, others outwards.
    """
    middle = (positions.min(axis=0) + positions.max(axis=0)) / 2
    twins = Counter(frozenset(link.ends) for link in links)
    seen: Counter[frozenset[int]] = Counter()
    for link in links:
        pair = frozenset(link.ends)
        rank, seen[pair] = seen[pair], seen[pair] + 1
        start, end = (positions[k] for k in sorted(link.ends))
        bend = (rank - (twins[pair] - 1) / 2) * 0.12
        if len(links) <= BENT_LINKS_MAX and _crosses_vertices(positions, link.ends):
            x, y = end - start
            inwards = float(np.dot(middle - start, (-y, x))) >= 0
            is_inner = min(link.ends) >= picture.node_count
            length = float(np.hypot(x, y))
            bow = min(0.25, 0.55 / length) * (1 + 0.15 * np.sqrt(length))
            bend += bow if inwards == is_inner else -bow
        yield bend if link.ends[0] < link.ends[1] else -bend


def _crosses_vertices(positions: Floats, ends: tuple[int, int]) -> bool:
    """Whether the straight line between two vertices runs through a third."""
    start, vector = positions[ends[0]], positions[ends[1]] - positions[ends[0]]
    square = float(vector @ vector)
    if square == 0:
        return False
    along = np.clip((positions - start) @ vector / square, 0.0, 1.0)
    off = positions - start - along[:, None] * vector
    near = (off**2).sum(axis=1) < 0.3**2
    near[list(ends)] = False
    return bool(near.any())
