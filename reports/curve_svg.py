"""Curves as SVG: a figure over a factor, with bands where intervals are known."""

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from ..sim.studies.results import Response, short
from .runs import COLOURS
from .words import si

WIDE, HIGH, LEFT, TOP, RIGHT, BOTTOM = 900, 520, 84, 56, 24, 64
DASHED = 'stroke-dasharray="5 4"'
INK, SOFT, GRID = "#1b2733", "#5b6875", "#e6eaee"


def curve_svg(response: Response, title: str, unit: str, knees: bool = False) -> str:
    """The picture as a file of its own; ``unit``: of the figure; ``knees``: mark them."""
    return "\n".join(_parts(response, title, unit, knees)) + "\n"


def _parts(response: Response, title: str, unit: str, knees: bool) -> Iterator[str]:
    curves = response.curves
    points = [point for curve in curves.values() for point in curve]
    top = max(max(y, high or y) for _, y, _, high in points) * 1.06 or 1.0
    xs = [_at(x, response.log) for x, *_ in points]
    low, high = min(xs), max(xs)
    room = BOTTOM + 20 * (len(curves) if len(curves) > 1 else 0)

    def x_px(x: float) -> float:
        return LEFT + (_at(x, response.log) - low) / max(high - low, 1e-300) * (WIDE - LEFT - RIGHT)

    def y_px(y: float) -> float:
        return HIGH - BOTTOM - y / top * (HIGH - TOP - BOTTOM)

    height = HIGH - BOTTOM + room
    heading = response.metric + (", with 90% intervals (bars)" if response.likely else "")
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{height}" '
        f'viewBox="0 0 {WIDE} {height}" font-family="Helvetica, Arial, sans-serif" font-size="13">'
    )
    yield f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#ffffff"/>'
    yield f'<text x="{LEFT}" y="26" font-size="17" fill="{INK}">{escape(title)}</text>'
    yield f'<text x="{LEFT}" y="46" fill="{SOFT}">{escape(heading)}</text>'
    for y in _ticks(top):
        at = y_px(y)
        yield f'<path d="M{LEFT} {at:.1f}H{WIDE - RIGHT}" stroke="{GRID}"/>'
        yield (
            f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="{SOFT}">'
            f"{escape(si(y, unit) if y else '0')}</text>"
        )
    xs = sorted({x for x, *_ in points})
    for x in xs[:: math.ceil(len(xs) / 12)]:
        yield (
            f'<text x="{x_px(x):.1f}" y="{HIGH - BOTTOM + 20}" text-anchor="middle" '
            f'fill="{SOFT}">{x:.4g}</text>'
        )
    label = f"{short(response.path)}{f', {response.unit}' if response.unit else ''}"
    yield (
        f'<text x="{(LEFT + WIDE - RIGHT) / 2}" y="{HIGH - BOTTOM + 44}" text-anchor="middle" '
        f'fill="{INK}">{escape(label)}{" (log)" if response.log else ""}</text>'
    )
    for k, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[k % len(COLOURS)]
        band = [(x, lo, hi) for x, _, lo, hi in curve if lo is not None and hi is not None]
        if response.likely:
            for x, lo, hi in band:
                at, top_px, end_px = x_px(x), y_px(hi), y_px(max(lo, 0.0))
                caps = "".join(f"M{at - 4:.1f} {y:.1f}h8" for y in (top_px, end_px))
                bar = f"M{at:.1f} {top_px:.1f}V{end_px:.1f}{caps}"
                yield f'<path d="{bar}" fill="none" stroke="{colour}" stroke-opacity="0.6"/>'
        elif len(band) > 1:
            upper = [f"{x_px(x):.1f} {y_px(hi):.1f}" for x, _, hi in band]
            lower = [f"{x_px(x):.1f} {y_px(max(lo, 0.0)):.1f}" for x, lo, _ in reversed(band)]
            path = "L".join(upper + lower)
            yield f'<path d="M{path}Z" fill="{colour}" fill-opacity="0.15"/>'
        path = "L".join(f"{x_px(x):.1f} {y_px(y):.1f}" for x, y, *_ in curve)
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        for x, y, *_ in curve:
            yield f'<circle cx="{x_px(x):.1f}" cy="{y_px(y):.1f}" r="3" fill="{colour}"/>'
        if knees and name in response.knees:
            x, y = response.knees[name]
            yield f'<path d="M{x_px(x):.1f} {TOP}V{HIGH - BOTTOM}" stroke="{colour}" {DASHED}/>'
            yield (
                f'<text x="{x_px(x) + 6:.1f}" y="{y_px(y) - 10:.1f}" fill="{colour}">'
                f"knee: {x:.4g}{escape(response.unit and ' ' + response.unit)}</text>"
            )
        if len(curves) > 1:
            at = HIGH + 20 * k
            yield f'<rect x="{LEFT}" y="{at - 9}" width="14" height="4" fill="{colour}"/>'
            yield f'<text x="{LEFT + 22}" y="{at}" fill="{INK}">{escape(name)}</text>'
    yield "</svg>"


def _at(x: float, log: bool) -> float:
    return math.log(x) if log else x


def _ticks(top: float) -> list[float]:
    """Round numbers from 0 to ``top``, four to eight of them."""
    step = 10.0 ** math.floor(math.log10(top / 4))
    step *= next(times for times in (1, 2, 2.5, 5, 10) if top / (step * times) <= 8)
    return [k * step for k in range(int(top / step) + 1)]
