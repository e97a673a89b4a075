"""The links of a machine's picture: which are drawn, how they bow, their colours and widths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import isfinite

import numpy as np

from ..inputs.quantities import format_quantity
from .layout import Layout, curve
from .picture import LinkLine, MachinePicture, VertexId
from .routes import Floats
from .scene import USE_STEPS, Key, Lines, Scene, Spot, use_colour

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
    return _known(forth), _known(back)


def _known(value: float | None) -> float | None:
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
            scene.spots.append(_spot(path[middle], facts))
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
            scene.spots.append(_spot(middle_point, (*facts, use_text)))
    scene.lines = sorted(found.values(), key=lambda lines: (-lines.width_px, lines.key))
    if use is not None:  # the most used on top
        order = {use_colour(k / USE_STEPS): k for k in range(USE_STEPS + 1)}
        scene.lines.sort(key=lambda lines: order.get(lines.colour, -1))
    scene.keys += [
        look if use is None else Key(look.name, "line", OTHER_COLOUR, look.width_px)
        for look in looks.values()
    ]


def _spot(point: Floats, facts: tuple[str, ...]) -> Spot:
    return Spot(float(point[0]), float(point[1]), SPOT_RADIUS, facts)


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
