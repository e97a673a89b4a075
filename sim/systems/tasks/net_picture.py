"""Paints a Petri net as SVG: places as circles, transitions as bars with their guards."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot
from xml.sax.saxutils import escape

from .petri_net import PetriNet, Transition

UNIT_PX, EDGE_PX, TITLE_PX = 150.0, 90.0, 50.0
PLACE_PX, BAR_PX = 38.0, 26.0  # radius of a place, length of a bar
NOTE = "Filled transitions fire at once, hollow ones when a new measurement comes."
INK, PALE, PAPER = "#1f2933", "#5f6b7a", "#ffffff"


def net_svg(net: PetriNet, title: str) -> str:
    """The picture as an SVG file. The start place has the token; waiting transitions are hollow."""
    return "\n".join(_Painter(net, title).parts()) + "\n"


class _Painter:
    """Turns the net's grid into pixels."""

    def __init__(self, net: PetriNet, title: str) -> None:
        self.net, self.title = net, title
        xs, ys = zip(*net.positions.values(), strict=True)
        self.low = (min(xs), min(ys))
        self.width = (max(xs) - min(xs)) * UNIT_PX + 2 * EDGE_PX
        self.height = (max(ys) - min(ys)) * UNIT_PX + 2 * EDGE_PX + TITLE_PX

    def parts(self) -> Iterator[str]:
        """The file, element by element."""
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" '
            f'height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="13">'
        )
        yield f"<title>{escape(self.title)}</title>"
        yield (
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="{PALE}"/></marker>'
            "</defs>"
        )
        yield f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        yield f'<text x="24" y="34" font-size="17" fill="{INK}">{escape(self.title)}</text>'
        yield f'<text x="24" y="54" font-size="12.5" fill="{PALE}">{escape(NOTE)}</text>'
        for transition in self.net.transitions:
            yield self._arc(transition.source, transition.name, PLACE_PX, 8.0)
            yield self._arc(transition.name, transition.target, 8.0, PLACE_PX)
        for name in self.net.places:
            yield from self._place(name)
        for transition in self.net.transitions:
            yield from self._bar(transition)
        yield "</svg>"

    def _at(self, name: str) -> tuple[float, float]:
        x, y = self.net.positions[name]
        return (
            EDGE_PX + (x - self.low[0]) * UNIT_PX,
            TITLE_PX + EDGE_PX + (y - self.low[1]) * UNIT_PX,
        )

    def _arc(self, source: str, target: str, from_px: float, to_px: float) -> str:
        (x1, y1), (x2, y2) = self._at(source), self._at(target)
        length = hypot(x2 - x1, y2 - y1)
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        return (
            f'<line x1="{x1 + from_px * dx:.1f}" y1="{y1 + from_px * dy:.1f}" '
            f'x2="{x2 - to_px * dx:.1f}" y2="{y2 - to_px * dy:.1f}" stroke="{PALE}" '
            'stroke-width="1.4" marker-end="url(#tip)"/>'
        )

    def _place(self, name: str) -> Iterator[str]:
        x, y = self._at(name)
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{PLACE_PX}" fill="{PAPER}" stroke="{INK}" '
            'stroke-width="1.8"/>'
        )
        yield (
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{INK}">'
            f"{escape(name)}</text>"
        )
        if name == self.net.start:
            yield f'<circle cx="{x:.1f}" cy="{y + 19:.1f}" r="5" fill="{INK}"/>'

    def _bar(self, transition: Transition) -> Iterator[str]:
        x, y = self._at(transition.name)
        fill = PAPER if transition.waits else INK
        yield (
            f'<rect x="{x - 4:.1f}" y="{y - BAR_PX / 2:.1f}" width="8" height="{BAR_PX}" '
            f'fill="{fill}" stroke="{INK}"/>'
        )
        words = ", ".join(text for text in (transition.guard_text, transition.effect_text) if text)
        for text, below, weight in (
            (transition.name, -BAR_PX / 2 - 6, "bold"),
            (words, 30.0, "normal"),
        ):
            yield (
                f'<text x="{x:.1f}" y="{y + below:.1f}" text-anchor="middle" font-size="12" '
                f'font-weight="{weight}" fill="{INK}" paint-order="stroke" stroke="{PAPER}" '
                f'stroke-width="3">{escape(text)}</text>'
            )
