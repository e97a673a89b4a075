"""How a figure follows a factor: curves of a study's rows, one for each setting of the others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .evaluate import ERROR, LIKELY
from .levels import is_number, written

CURVES_MAX = 8


@dataclass(frozen=True)
class Response:
    """A ``metric`` over the factor at ``path``: points (x, y, low, high) by the curve's name.

    ``left_out``: how many further curves there are. ``log``: whether x is better drawn so.
    ``likely``: whether low and high are 90% intervals of all that is uncertain.
    """

    path: str
    unit: str
    metric: str
    curves: Mapping[str, Sequence[tuple[float, float, float | None, float | None]]]
    left_out: int
    log: bool
    likely: bool = False

    @property
    def knees(self) -> Mapping[str, tuple[float, float]]:
        """By curve, the point farthest below the line between its ends, both axes scaled by their
        range (Kneedle: Satopää et al., ICDCSW 2011); of curves that have one, such as a latency's
        over a load.
        """
        found = {}
        for name, points in self.curves.items():
            (x0, y0, *_), (x1, y1, *_) = points[0], points[-1]
            if x1 > x0 and y1 > y0:
                depths = [(x - x0) / (x1 - x0) - (y - y0) / (y1 - y0) for x, y, *_ in points]
                deepest = max(range(len(points)), key=depths.__getitem__)
                if depths[deepest] > 0.0:
                    found[name] = points[deepest][:2]
        return found


def response(
    rows: Sequence[Mapping[str, Any]], paths: Sequence[str], units: Sequence[str], metric: str
) -> Response | None:
    """Over the factor with most numbers; None where no factor has two numbers and a figure."""
    found = [row for row in rows if not row.get(ERROR) and is_number(row.get(metric))]
    values: dict[str, set[Any]] = {
        path: {row.get(path) for row in found}
        for path in paths
        if all(is_number(row.get(path)) for row in found)  # others may be mappings
    }
    numeric = [path for path, seen in values.items() if len(seen) > 1]
    if not numeric:
        return None
    over = max(numeric, key=lambda path: len(values[path]))
    others = [(path, unit) for path, unit in zip(paths, units, strict=True) if path != over]
    likely = any(LIKELY + metric in row for row in found)  # else intervals of replications
    curves: dict[str, list[tuple[float, float, float | None, float | None]]] = {}
    for row in found:
        name = ", ".join(f"{short(path)} {written(row.get(path), unit)}" for path, unit in others)
        ends = row.get(f"{metric}.low"), row.get(f"{metric}.high")
        low, high = row.get(LIKELY + metric, (None, None)) if likely else ends
        curves.setdefault(name, []).append((row[over], row[metric], low, high))
    kept = dict(list(curves.items())[:CURVES_MAX])
    return Response(
        over,
        units[list(paths).index(over)],
        metric,
        {name: sorted(points, key=lambda point: point[0]) for name, points in kept.items()},
        len(curves) - len(kept),
        _is_log(sorted(values[over])),
        likely,
    )


def short(path: str) -> str:
    """What distinguishes a path for people: its last part."""
    return path.rpartition(".")[2].replace("_", " ")


def _is_log(xs: Sequence[float]) -> bool:
    """Whether values grow by factors rather than by steps."""
    if len(xs) < 3 or xs[0] <= 0 or xs[-1] / xs[0] < 8:
        return False
    middle = xs[len(xs) // 2]
    ratio, mean = math.sqrt(xs[0] * xs[-1]), 0.5 * (xs[0] + xs[-1])
    return abs(math.log(middle / ratio)) < abs(math.log(middle / mean))
