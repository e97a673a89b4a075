"""Paints a machine's picture as SVG."""

from collections.abc import Iterable, Iterator
from html import escape
from math import ceil

from .picture import INK, PALE_INK, PAPER, USE_STEPS, Areas, Key, Label, Lines, Scene, use_colour
from .routes import Floats

EDGE_PX, TITLE_PX, LEGEND_PX, ROW_PX = 12.0, 64.0, 190.0, 24.0


def svg_text(scene: Scene) -> str:
    """The picture as an SVG file of its natural size; facts are in tool tips."""
    return "\n".join(_Painter(scene).parts()) + "\n"


class _Painter:
    """Turns units into pixels, y downwards."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.unit_px = scene, scene.unit_px
        self.top = TITLE_PX if scene.title else EDGE_PX
        self.wide = (scene.high[0] - scene.low[0]) * self.unit_px
        self.legend_x = EDGE_PX + max(self.wide, 320.0) + EDGE_PX
        self.left = EDGE_PX + max(320.0 - self.wide, 0.0) / 2
        high = (scene.high[1] - scene.low[1]) * self.unit_px
        rows = ROW_PX * (len(scene.keys) + 1) + (190.0 if scene.scale is not None else 0.0)
        self.width = ceil(self.legend_x + LEGEND_PX)
        self.height = ceil(self.top + max(high, rows) + EDGE_PX)

    def parts(self) -> Iterator[str]:
        """The file, element by element."""
        scene = self.scene
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" '
            'font-family="Helvetica, Arial, sans-serif">'
        )
        yield f"<title>{_escaped(scene.title or scene.name)}</title>"
        yield f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        if scene.title:
            yield _text(EDGE_PX, 28, scene.title, 17, INK)
            yield _text(EDGE_PX, 48, scene.note, 12.5, PALE_INK)
        yield from map(self._areas, scene.frames)
        yield from map(self._lines, scene.lines)
        yield from map(self._areas, scene.areas)
        yield from map(self._label, scene.labels)
        for spot in scene.spots:
            x, y = self._at(spot.x, spot.y)
            facts = "\n".join(map(_escaped, spot.lines))
            yield (
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{max(2.0, spot.radius * self.unit_px):.1f}" '
                f'fill-opacity="0"><title>{facts}</title></circle>'
            )
        yield f'<g class="legend" data-left="{self.legend_x:.0f}">'
        yield from self._legend(scene.keys)
        yield "</g>"
        yield "</svg>"

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return (
            self.left + (x - self.scene.low[0]) * self.unit_px,
            self.top + (self.scene.high[1] - y) * self.unit_px,
        )

    def _path(self, paths: Iterable[Floats], end: str) -> str:
        drawn = []
        for path in paths:
            points = (self._at(x, y) for x, y in path.tolist())
            drawn.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + end)
        return "".join(drawn)

    def _areas(self, area: Areas) -> str:
        return (
            f'<path d="{self._path(area.paths, "Z")}" fill="{area.fill}" stroke="{area.edge}" '
            f'stroke-width="{area.edge_px}"/>'
        )

    def _lines(self, lines: Lines) -> str:
        return (
            f'<path d="{self._path(lines.paths, "")}" fill="none" stroke="{lines.colour}" '
            f'stroke-width="{lines.width_px:.2f}" stroke-opacity="{lines.opacity}"/>'
        )

    def _label(self, label: Label) -> str:
        x, y = self._at(label.x, label.y)
        return _text(
            x, y + 0.36 * label.size_px, label.text, label.size_px, label.colour, label.bold, True
        )

    def _legend(self, keys: list[Key]) -> Iterator[str]:
        x, y = self.legend_x, self.top + ROW_PX / 2
        for key in keys:
            if key.shape == "line":
                yield (
                    f'<path d="M{x:.1f} {y:.1f}h28" stroke="{key.colour}" '
                    f'stroke-width="{key.width_px:.2f}"/>'
                )
            elif key.shape == "box":
                yield (
                    f'<rect x="{x + 7:.1f}" y="{y - 7:.1f}" width="14" height="14" rx="2" '
                    f'fill="{key.colour}" stroke="{INK}"/>'
                )
            else:
                yield (
                    f'<circle cx="{x + 14:.1f}" cy="{y:.1f}" r="7" fill="{key.colour}" '
                    f'stroke="{INK}"/>'
                )
            yield _text(x + 38, y + 4.5, key.name, 12.5, INK)
            y += ROW_PX
        if self.scene.scale is not None:
            yield from self._scale(x, y + 14, self.scene.scale)

    def _scale(self, x: float, y: float, title: str) -> Iterator[str]:
        """The colours of use as a bar of 120 pixels, full use on top."""
        yield _text(x, y, title, 12.5, INK)
        high = 120.0 / (USE_STEPS + 1)
        for step in range(USE_STEPS + 1):
            yield (
                f'<rect x="{x + 7:.1f}" y="{y + 134 - high * (step + 1):.2f}" width="14" '
                f'height="{high + 0.2:.2f}" fill="{use_colour(step / USE_STEPS)}"/>'
            )
        for percent in (0, 50, 100):
            yield _text(x + 30, y + 18.5 + 1.2 * (100 - percent), f"{percent}%", 11, INK)


def _text(
    x: float,
    y: float,
    text: str,
    size_px: float,
    colour: str,
    bold: bool = False,
    centred: bool = False,
) -> str:
    look = ' font-weight="bold"' if bold else ""
    look += ' text-anchor="middle"' if centred else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size_px:.1f}" fill="{escape(colour)}"{look}>'
        f"{_escaped(text)}</text>"
    )


def _escaped(text: str) -> str:
    """As XML has it, which allows no control characters."""
    return escape("".join(c if c.isprintable() else " " for c in text), quote=False)
