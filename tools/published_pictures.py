"""A picture of the page on published results, as SVG: bars of errors.

Written as text, without a browser, so that the same rows give the same bytes and a test can tell
whether a picture is up to date.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

WIDTH, FONT = 790, "system-ui, sans-serif"
INK, FAINT = "#333333", "#d5d5d5"
# Colours for colour-blind readers: far off, fairly near, near.
COLOURS = ("#d55e00", "#e69f00", "#0072b2")


class Bar(NamedTuple):
    """An error, as a part, and how good it is: 0 to 2."""

    name: str
    error: float
    well: int


def bars_svg(bars: Sequence[Bar], axis: str) -> str:
    """A bar for each error, from the middle to the left or the right, the smallest first; those of
    more than 100% end at the edge.
    """
    left, right, row, top = 275, 72, 26, 12
    room = 70  # for a figure at the longest bar's end
    ordered = sorted(bars, key=lambda bar: abs(bar.error))
    most = max((abs(bar.error) for bar in bars), default=0.0)
    reach = min(max(0.1, math.ceil(10 * most) / 10), 1.0)
    height = top + row * len(bars) + 52
    root = _svg(WIDTH, height, f"Errors of {len(bars)} results: {axis}")
    middle, half = (left + WIDTH - right) / 2, (WIDTH - right - left) / 2
    bottom = top + row * len(bars) + 4
    for step in (-2, -1, 0, 1, 2):
        x = middle + half * step / 2
        _line(root, (x, top), (x, bottom), FAINT if step else INK)
        label = f"{50 * reach * step:+.0f}%" if step else "0"
        _text(root, (x, bottom + 16), label, "middle")
    _text(root, (middle, bottom + 36), axis, "middle")
    for k, bar in enumerate(ordered):
        y = top + row * k
        end = middle + half * min(max(bar.error / reach, -1.0), 1.0)
        SubElement(
            root,
            "rect",
            x=_at(min(end, middle)),
            y=_at(y + 5),
            width=_at(max(abs(end - middle), 1.0)),
            height=_at(row - 10),
            fill=COLOURS[bar.well],
        )
        _text(root, (left - room, y + row / 2 + 4), bar.name, "end")
        beyond = 6 if bar.error >= 0 else -6
        label = f"{100 * bar.error:+.1f}%"
        _text(root, (end + beyond, y + row / 2 + 4), label, "start" if beyond > 0 else "end")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _svg(width: int, height: int, title: str) -> Element:
    root = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "width": str(width),
            "height": str(height),
            "viewBox": f"0 0 {width} {height}",
            "font-family": FONT,
            "font-size": "13",
            "role": "img",
        },
    )
    SubElement(root, "title").text = title
    # On a dark page too, ink needs paper.
    SubElement(root, "rect", width=str(width), height=str(height), fill="#ffffff")
    return root


def _line(root: Element, begin: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    (x1, y1), (x2, y2) = begin, end
    SubElement(root, "line", x1=_at(x1), y1=_at(y1), x2=_at(x2), y2=_at(y2), stroke=colour)


def _text(root: Element, at: tuple[float, float], text: str, anchor: str) -> None:
    x, y = at
    place = {"x": _at(x), "y": _at(y), "text-anchor": anchor, "fill": INK}
    SubElement(root, "text", place).text = text


def _at(value: float) -> str:
    return f"{value:.1f}"
