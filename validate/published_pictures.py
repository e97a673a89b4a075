"""Pictures of the page on published results, as SVG: bars of errors, curves.

Written as text, without a browser, so that the same rows give the same bytes and a test can tell
whether a picture is up to date.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

WIDTH, FONT = 760, "system-ui, sans-serif"
INK, FAINT = "#333333", "#d5d5d5"
# Colours for colour-blind readers: far off, fairly near, near.
COLOURS = ("#d55e00", "#e69f00", "#0072b2")


class Bar(NamedTuple):
    """An error, as a part, and how good it is: 0 to 2."""

    name: str
    error: float
    well: int


class Curve(NamedTuple):
    """A curve through its points (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


def bars_svg(bars: Sequence[Bar], axis: str) -> str:
    """A bar for each error, from the middle to the left or the right, the smallest first."""
    left, right, row, top = 250, 60, 26, 12
    room = 56  # for a figure at the longest bar's end
    ordered = sorted(bars, key=lambda bar: abs(bar.error))
    reach = max(0.1, math.ceil(10 * max((abs(bar.error) for bar in bars), default=0.0)) / 10)
    height = top + row * len(bars) + 52
    root = _svg(WIDTH, height, f"Errors of {len(bars)} results: {axis}")
    middle, half = (left + WIDTH - right) / 2, (WIDTH - right - left) / 2
    bottom = top + row * len(bars) + 4
    for step in range(-10, 11):
        error = step / 10
        if abs(error) <= reach + 1e-9:
            x = middle + half * error / reach
            _line(root, (x, top), (x, bottom), INK if step == 0 else FAINT)
            _text(root, (x, bottom + 16), f"{100 * error:+.0f}%" if step else "0", "middle")
    _text(root, (middle, bottom + 36), axis, "middle")
    for k, bar in enumerate(ordered):
        y = top + row * k
        end = middle + half * bar.error / reach
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
    return _written(root)


def curves_svg(curves: Sequence[Curve], x_axis: str, y_axis: str) -> str:
    """Curves over one pair of axes, both from 0, each with its name at its end."""
    left, right, top, height = 70, 190, 34, 360
    bottom = height - 50
    root = _svg(WIDTH, height, f"{y_axis} by {x_axis}")
    x_most = max(x for curve in curves for x, _ in curve.points)
    y_most = max(y for curve in curves for _, y in curve.points)
    step = _step(y_most)
    y_top = step * math.ceil(y_most / step)

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            left + (WIDTH - right - left) * x / x_most,
            bottom - (bottom - top) * y / y_top,
        )

    for k in range(round(y_top / step) + 1):
        begin, end = place(0, k * step), place(x_most, k * step)
        _line(root, begin, end, INK if k == 0 else FAINT)
        _text(root, (left - 8, begin[1] + 4), f"{k * step:g}", "end")
    for x, _ in curves[0].points:
        _text(root, (place(x, 0)[0], bottom + 18), f"{x:g}", "middle")
    _text(root, (place(x_most / 2, 0)[0], bottom + 40), x_axis, "middle")
    _text(root, (left - 8, top - 16), y_axis, "start")
    for k, curve in enumerate(curves):
        colour = COLOURS[-1 - k % len(COLOURS)]
        points = [place(x, y) for x, y in curve.points]
        path = " ".join(f"{_at(x)},{_at(y)}" for x, y in points)
        SubElement(
            root,
            "polyline",
            {"points": path, "fill": "none", "stroke": colour, "stroke-width": "2"},
        )
        for x, y in points:
            SubElement(root, "circle", cx=_at(x), cy=_at(y), r="3.5", fill=colour)
        x, y = points[-1]
        _text(root, (x + 10, y + 4), curve.name, "start", colour)
    return _written(root)


def _step(most: float) -> float:
    """A round step of which 3 to 8 make up ``most``."""
    power = 10.0 ** math.floor(math.log10(most))
    return next(part * power for part in (0.2, 0.5, 1.0, 2.0) if most / (part * power) <= 8)


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


def _text(
    root: Element, at: tuple[float, float], text: str, anchor: str, colour: str = INK
) -> None:
    x, y = at
    place = {"x": _at(x), "y": _at(y), "text-anchor": anchor, "fill": colour}
    SubElement(root, "text", place).text = text


def _at(value: float) -> str:
    return f"{value:.1f}"


def _written(root: Element) -> str:
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
