"""Curves in a terminal: a figure over a factor, a letter for each of the other factors' values."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

WIDTH, HEIGHT = 64, 14
MARKS = "o+x*#@%&"


class Curve(NamedTuple):
    """Points (x, y) of one look, and what they are called."""

    name: str
    points: Sequence[tuple[float, float]]


def curve_lines(
    curves: Sequence[Curve], x_name: str, y_name: str, written: Sequence[str], log: bool
) -> list[str]:
    """The picture's lines. ``written``: the lowest and highest x, and the highest y, as text."""
    points = [point for curve in curves for point in curve.points]
    xs = [_scaled(x, log) for x, _ in points]
    low, high = min(xs), max(xs)
    top = max(max(y for _, y in points), 1e-300)
    cells = [[" "] * WIDTH for _ in range(HEIGHT)]
    for k, curve in enumerate(curves):
        placed = sorted(
            ((_scaled(x, log) - low) / max(high - low, 1e-300) * (WIDTH - 1), y / top)
            for x, y in curve.points
        )
        for (x0, y0), (x1, y1) in pairwise(placed):
            for column in range(math.ceil(x0), math.floor(x1) + 1):
                part = (column - x0) / max(x1 - x0, 1e-300)
                row = _row(y0 + part * (y1 - y0))
                if cells[row][column] == " ":
                    cells[row][column] = "·"
        for x, y in placed:
            cells[_row(y)][round(x)] = MARKS[k % len(MARKS)]
    first, last, highest = written
    margin = max(len(highest), 1)
    lines = [y_name]
    for k, line in enumerate(cells):
        left = highest if k == 0 else "0" if k == HEIGHT - 1 else ""
        lines.append(f"{left:>{margin}} ┤{''.join(line).rstrip()}")
    lines.append(f"{'':>{margin}} └{'─' * WIDTH}")
    lines.append(f"{'':>{margin}}  {first}{x_name:^{WIDTH - len(first) - len(last)}}{last}")
    if len(curves) > 1:
        lines += [f"{'':>{margin}}  {MARKS[k % len(MARKS)]} {c.name}" for k, c in enumerate(curves)]
    return lines


def _row(part: float) -> int:
    return HEIGHT - 1 - min(max(round(part * (HEIGHT - 1)), 0), HEIGHT - 1)


def _scaled(x: float, log: bool) -> float:
    return math.log(x) if log else x
