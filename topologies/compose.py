"""Composes a machine's picture: groups as frames, nodes and hubs, their labels and facts."""

from collections.abc import Mapping

import numpy as np

from ..inputs.quantities import counted, size_text
from ..inputs.shared_work import once
from .layout import Layout, LinkUse, add_links, hull, known, lay_out, links_to_draw
from .picture import (
    PALE_INK,
    Areas,
    Key,
    Label,
    MachinePicture,
    Scene,
    Vertex,
    VertexId,
    ink_on,
    use_colour,
)
from .routes import Floats

NodeUse = Mapping[VertexId, float]

PICTURE_PX = (1_000.0, 800.0)  # what the drawing itself fills at most
UNIT_PX_MAX = 96.0
RELATIVE = "traffic, relative to the most"
MARGIN = 0.85  # around the outermost vertices
NODE_HALF, HUB_RADIUS = 0.4, 0.36

NODE_FILL, NODE_EDGE, EMPTY_FILL = "#ffffff", "#33475b", "#e8ebef"
HUB_FILLS = ("#33475b", "#7b5e8d", "#5e7d6a", "#8d735e")
FRAME_FILLS, FRAME_EDGE = ("#eef1f5", "#e2e7ee"), "#c3ccd7"


def compose(
    picture: MachinePicture,
    *,
    link_use: LinkUse | None = None,
    node_use: NodeUse | None = None,
    title: str | None = None,
    relative: bool = False,
) -> Scene:
    """The scene of ``picture``; see ``machine_svg`` for the arguments."""
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
        scale=(RELATIVE if relative else f"use of {' and '.join(used)}") if used else None,
        measure="of the most" if relative else "in use",
    )
    drawn = links_to_draw(picture, link_use)
    _add_frames(scene, layout, names_above=not picture.links)
    _add_vertices(scene, picture, layout, node_use)
    add_links(scene, picture, layout, drawn, link_use)
    scene.note = _note(picture, len(drawn))
    if link_use is not None and drawn:
        scene.note += "; each half of a link shows what leaves the end that it touches"
    return scene


def _note(picture: MachinePicture, drawn: int) -> str:
    hubs = len(picture.vertices) - picture.node_count
    parts = [counted(picture.node_count, "node")]
    if hubs:
        parts.append(counted(hubs, "hub"))
    if picture.links:
        parts.append(counted(len(picture.links), "link"))
    elif picture.node_count > 1:
        parts.append("links unknown")
    text = f"{picture.name}: " if picture.name else ""
    text += ", ".join(parts)
    return text + (f" ({drawn:,} drawn)" if drawn < len(picture.links) else "")


def _add_frames(scene: Scene, layout: Layout, *, names_above: bool) -> None:
    """Groups, larger below smaller; those that contain others have a lighter fill."""
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
        outline = _outline(layout.positions[vertices], 0.58 if is_inner or not nested else 0.74)
        scene.frames.append(Areas(FRAME_FILLS[is_inner], FRAME_EDGE, 1.0, paths=[outline]))
        if not is_inner:  # small frames in others are named under the mouse only
            _label_frame(scene, name, outline, middle)


def _outline(points: Floats, padding: float) -> Floats:
    key = (points.tobytes(), padding)
    return once("outline", key, lambda: hull(points, padding), lambda _: 512)


def _label_frame(scene: Scene, name: str, outline: Floats, middle: float) -> None:
    """The group's name above its outline, or below it in the picture's lower half."""
    size_px = min(13.0, max(10.0, 0.2 * scene.unit_px))
    low, high = outline.min(axis=0), outline.max(axis=0)
    reach = 0.15 * (scene.high[1] - scene.low[1])
    away = 0.8 * size_px / scene.unit_px
    y = float(high[1]) + away if (low[1] + high[1]) / 2 > middle - reach else float(low[1]) - away
    scene.labels.append(Label(float(low[0] + high[0]) / 2, y, name, size_px, PALE_INK))
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
            use = known(node_use.get(vertex.id)) if node_use is not None else None
            fill = NODE_FILL if vertex.cpus != 0 else EMPTY_FILL
            fill, key, outline = use_colour(use) if use is not None else fill, "node", _BOX
        else:
            fill, key, outline = fills[vertex.kind], vertex.kind, _DISC
        area = areas.setdefault((fill, key), Areas(fill, NODE_EDGE, edge_px, key))
        area.paths.append(centre + outline)
        _label_vertex(scene, vertex, centre, fill, is_node=k < picture.node_count)
        scene.add_spot(centre, NODE_HALF, _vertex_facts(vertex, use, scene.measure))
    scene.areas = list(areas.values())
    scene.keys.append(Key("node", "box", NODE_FILL))
    if any(vertex.cpus == 0 for vertex in picture.vertices[: picture.node_count]):
        scene.keys.append(Key("node without CPUs", "box", EMPTY_FILL))
    scene.keys += [Key(kind, "disc", fill) for kind, fill in fills.items()]


def _label_vertex(
    scene: Scene, vertex: Vertex, centre: Floats, fill: str, *, is_node: bool
) -> None:
    """Its id, and below it the memory where there is room."""
    text, colour, room_px = str(vertex.id), ink_on(fill), 2 * NODE_HALF * scene.unit_px
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


def _vertex_facts(vertex: Vertex, use: float | None, measure: str) -> tuple[str, ...]:
    is_node = vertex.kind == "node"
    facts = [f"node {vertex.id}" if is_node else f"{vertex.kind} {vertex.id}"]
    if vertex.group is not None:
        facts[0] += f" ({vertex.group})"
    if is_node:
        facts.append("CPUs unknown" if vertex.cpus is None else counted(vertex.cpus, "CPU"))
        facts.append(f"{_size(vertex.memory_bytes) or 'unknown'} of memory")
    if use is not None:
        facts.append(f"{measure}: {use:.1%}")
    return tuple(facts)


def _size(size_bytes: float | None) -> str:
    """``8 GiB``; nothing where it is unknown."""
    found = known(size_bytes)
    return "" if found is None else size_text(found)


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
