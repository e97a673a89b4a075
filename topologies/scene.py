"""A machine's picture as lines, areas and labels, for any painter (Plotly, SVG) to paint.

Positions are in units of about one node, y upwards; widths and letters in pixels at the picture's
natural size. Texts are plain: the painter escapes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from ..inputs.quantities import format_quantity
from .layout import Layout, curve, hull, lay_out
from .picture import LinkLine, MachinePicture, Vertex, VertexId
from .routes import Floats

LinkUse = Mapping[tuple[VertexId, VertexId], float]
NodeUse = Mapping[VertexId, float]

LINKS_DRAWN_MAX = 20_000  # more are one black cloud
BENT_LINKS_MAX = 8_000  # beyond, straight lines: too many to tell one from another
PICTURE_PX = (1_000.0, 800.0)  # what the drawing itself fills at most
UNIT_PX_MAX = 96.0
MARGIN = 0.85  # around the outermost vertices
NODE_HALF, HUB_RADIUS = 0.4, 0.36

# Tol's bright scheme (Paul Tol, Colour schemes, SRON 2021) without its grey: told apart by the
# colour-blind too.
KIND_COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377")
OTHER_COLOUR = "#999999"
INK, PAPER = "#1f2933", "#ffffff"
NODE_FILL, NODE_EDGE, EMPTY_FILL = "#ffffff", "#33475b", "#e8ebef"
HUB_FILLS = ("#33475b", "#7b5e8d", "#5e7d6a", "#8d735e")
FRAME_FILLS, FRAME_EDGE, FRAME_INK = ("#eef1f5", "#e2e7ee"), "#c3ccd7", "#5b6b7b"
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


def compose(
    picture: MachinePicture,
    *,
    link_use: LinkUse | None = None,
    node_use: NodeUse | None = None,
    title: str | None = None,
) -> Scene:
    """The scene of ``picture``; see ``draw_machine`` for the arguments."""
    layout = lay_out(picture)
    low, high = layout.positions.min(axis=0) - MARGIN, layout.positions.max(axis=0) + MARGIN
    width, height = high - low
    used = [what for what, use in (("links", link_use), ("nodes", node_use)) if use is not None]
    scene = Scene(
        name=picture.name,
        title=(picture.title or picture.name) if title is None else title,
        note="",
        low=(float(low[0]), float(low[1])),
        high=(float(high[0]), float(high[1])),
        unit_px=float(min(PICTURE_PX[0] / width, PICTURE_PX[1] / height, UNIT_PX_MAX)),
        scale=f"use of {' and '.join(used)}" if used else None,
    )
    drawn = _drawn_links(picture, link_use)
    _add_frames(scene, layout, names_above=not picture.links)
    _add_vertices(scene, picture, layout, node_use)
    _add_links(scene, picture, layout, drawn, link_use)
    scene.note = _note(picture, len(drawn))
    if link_use is not None and drawn:
        scene.note += "; each half of a link shows what leaves the end that it touches"
    return scene


def use_colour(use: float) -> str:
    """The colour of a use from 0 to 1, in ``USE_STEPS`` steps."""
    at = round(min(max(use, 0.0), 1.0) * USE_STEPS) / USE_STEPS * (len(USE_COLOURS) - 1)
    k = min(int(at), len(USE_COLOURS) - 2)
    low, high = (_rgb(colour) for colour in USE_COLOURS[k : k + 2])
    mixed = (round(a + (b - a) * (at - k)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return red, green, blue


def _ink_on(fill: str) -> str:
    """Dark or white letters, whichever stands out (relative luminance of ITU-R BT.709)."""
    red, green, blue = _rgb(fill)
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 140 else PAPER


def _note(picture: MachinePicture, drawn: int) -> str:
    hubs = len(picture.vertices) - picture.node_count
    parts = [_count(picture.node_count, "node")]
    if hubs:
        parts.append(_count(hubs, "hub"))
    if picture.links:
        parts.append(_count(len(picture.links), "link"))
    elif picture.node_count > 1:
        parts.append("links unknown")
    text = f"{picture.name}: " if picture.name else ""
    text += ", ".join(parts)
    return text + (f" ({drawn:,} drawn)" if drawn < len(picture.links) else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _add_frames(scene: Scene, layout: Layout, *, names_above: bool) -> None:
    """Groups, larger below smaller; those that hold others are told apart by a lighter fill."""
    inner = {
        name
        for name, vertices in layout.frames
        for other, others in layout.frames
        if name != other and set(vertices) < set(others)
    }
    nested = bool(inner)
    middle = float("-inf") if names_above else (scene.low[1] + scene.high[1]) / 2
    for name, vertices in layout.frames:
        is_inner = name in inner
        outline = hull(layout.positions[vertices], 0.58 if is_inner or not nested else 0.74)
        scene.frames.append(Areas(FRAME_FILLS[is_inner], FRAME_EDGE, 1.0, paths=[outline]))
        if not is_inner:  # small frames in others are named under the mouse only
            _label_frame(scene, name, outline, middle)


def _label_frame(scene: Scene, name: str, outline: Floats, middle: float) -> None:
    """The group's name above its outline, or below it in the picture's lower half."""
    size_px = min(13.0, max(10.0, 0.2 * scene.unit_px))
    low, high = outline.min(axis=0), outline.max(axis=0)
    reach = 0.15 * (scene.high[1] - scene.low[1])
    away = 0.8 * size_px / scene.unit_px
    y = float(high[1]) + away if (low[1] + high[1]) / 2 > middle - reach else float(low[1]) - away
    scene.labels.append(Label(float(low[0] + high[0]) / 2, y, name, size_px, FRAME_INK))
    scene.low = (scene.low[0], min(scene.low[1], y - away))
    scene.high = (scene.high[0], max(scene.high[1], y + away))


def _add_vertices(
    scene: Scene, picture: MachinePicture, layout: Layout, node_use: NodeUse | None
) -> None:
    areas: dict[tuple[str, str], Areas] = {}
    hub_kinds = [v.kind for v in picture.vertices[picture.node_count :]]
    fills = {kind: HUB_FILLS[k % len(HUB_FILLS)] for k, kind in enumerate(dict.fromkeys(hub_kinds))}
    edge_px = 1.4 if scene.unit_px > 30 else 0.8
    for k, vertex in enumerate(picture.vertices):
        centre = layout.positions[k]
        use = None
        if k < picture.node_count:
            use = _known(node_use, vertex.id)
            fill = NODE_FILL if vertex.cpus != 0 else EMPTY_FILL
            fill, key, outline = use_colour(use) if use is not None else fill, "node", _BOX
        else:
            fill, key, outline = fills[vertex.kind], vertex.kind, _DISC
        area = areas.setdefault((fill, key), Areas(fill, NODE_EDGE, edge_px, key))
        area.paths.append(centre + outline)
        _label_vertex(scene, vertex, centre, fill, is_node=k < picture.node_count)
        scene.spots.append(
            Spot(float(centre[0]), float(centre[1]), NODE_HALF, _vertex_facts(vertex, use))
        )
    scene.areas = list(areas.values())
    scene.keys.append(Key("node", "box", NODE_FILL))
    if any(vertex.cpus == 0 for vertex in picture.vertices[: picture.node_count]):
        scene.keys.append(Key("node without CPUs", "box", EMPTY_FILL))
    scene.keys += [Key(kind, "disc", fill) for kind, fill in fills.items()]


def _known(use: Mapping[VertexId, float] | None, key: VertexId) -> float | None:
    value = None if use is None else use.get(key)
    return value if value is not None and isfinite(value) else None


def _label_vertex(
    scene: Scene, vertex: Vertex, centre: Floats, fill: str, *, is_node: bool
) -> None:
    """Its id, and below it the memory where there is room."""
    text, colour, room_px = str(vertex.id), _ink_on(fill), 2 * NODE_HALF * scene.unit_px
    x, y = float(centre[0]), float(centre[1])
    size = min(15.0 if is_node else 12.0, 0.5 * room_px, 1.5 * room_px / max(len(text), 2))
    if size < 4.5:
        return
    memory = _size(vertex.memory_bytes)
    small = min(10.5, 0.17 * room_px)
    if is_node and memory and small >= 8:
        scene.labels.append(Label(x, y + 0.13, text, size, colour, bold=True))
        scene.labels.append(Label(x, y - 0.17, memory, small, colour))
    else:
        scene.labels.append(Label(x, y, text, size, colour, bold=is_node))


def _vertex_facts(vertex: Vertex, use: float | None) -> tuple[str, ...]:
    is_node = vertex.kind == "node"
    facts = [f"node {vertex.id}" if is_node else f"{vertex.kind} {vertex.id}"]
    if vertex.group is not None:
        facts[0] += f" ({vertex.group})"
    if is_node:
        facts.append("CPUs unknown" if vertex.cpus is None else _count(vertex.cpus, "CPU"))
        facts.append(f"{_size(vertex.memory_bytes) or 'unknown'} of memory")
    if use is not None:
        facts.append(f"in use: {use:.1%}")
    return tuple(facts)


def _size(size_bytes: float | None) -> str:
    """``8 GiB``; nothing where it is unknown."""
    if size_bytes is None or not isfinite(size_bytes):
        return ""
    for scale, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.4g} {unit}"
    return f"{size_bytes:.0f} B"


def _drawn_links(picture: MachinePicture, use: LinkUse | None) -> list[LinkLine]:
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
    """How much of each direction is in use, None where that is not told."""
    a, b = (picture.vertices[end].id for end in link.ends)
    there, back = (use.get((a, b)), use.get((b, a))) if use is not None else (None, None)
    return (
        there if there is not None and isfinite(there) else None,
        back if back is not None and isfinite(back) else None,
    )


def _add_links(
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
        a, b = link.ends
        path = curve(layout.positions[a], layout.positions[b], bend)
        middle = len(path) // 2
        facts = (
            f"{picture.vertices[a].id} – {picture.vertices[b].id}"
            + (f" ({link.kind})" if link.kind else ""),
            f"{_rate(link.bandwidth_Bps)} each way",
        )
        if use is None:
            add(path, look.colour, look)
            scene.spots.append(Spot(*map(float, path[middle]), 0.12, facts))
            continue
        for half, direction, amount in zip(
            (path[: middle + 1], path[: middle - 1 : -1] if middle else path),
            ((a, b), (b, a)),
            _uses(picture, link, use),
            strict=True,
        ):
            add(half, OTHER_COLOUR if amount is None else use_colour(amount), look)
            start, end = (picture.vertices[end].id for end in direction)
            told = "unknown" if amount is None else f"{amount:.1%}"
            at = half[len(half) // 2] if len(half) > 2 else half.mean(axis=0)
            facts_here = (*facts, f"{start} → {end}: in use {told}")
            scene.spots.append(Spot(*map(float, at), 0.12, facts_here))
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
        if len(links) <= BENT_LINKS_MAX and _meets_others(positions, link.ends):
            x, y = end - start
            inwards = float(np.dot(middle - start, (-y, x))) >= 0
            is_inner = min(link.ends) >= picture.node_count
            length = float(np.hypot(x, y))
            bow = min(0.25, 0.55 / length) * (1 + 0.15 * np.sqrt(length))
            bend += bow if inwards == is_inner else -bow
        yield bend if link.ends[0] < link.ends[1] else -bend


def _meets_others(positions: Floats, ends: tuple[int, int]) -> bool:
    """Whether the straight line between two vertices runs through a third."""
    start, way = positions[ends[0]], positions[ends[1]] - positions[ends[0]]
    square = float(way @ way)
    if square == 0:
        return False
    along = np.clip((positions - start) @ way / square, 0.0, 1.0)
    off = positions - start - along[:, None] * way
    near = (off**2).sum(axis=1) < 0.3**2
    near[list(ends)] = False
    return bool(near.any())


def _corners() -> Floats:
    """A box with rounded corners around the origin."""
    radius = 0.12
    parts = []
    for k, (x, y) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        angles = np.linspace(k * np.pi / 2, (k + 1) * np.pi / 2, 5)
        centre = np.array([x, y]) * (NODE_HALF - radius)
        parts.append(centre + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1))
    return np.concatenate(parts)


_BOX = _corners()
_DISC = HUB_RADIUS * np.stack(
    [np.cos(np.arange(32) * np.pi / 16), np.sin(np.arange(32) * np.pi / 16)], axis=1
)
