"""Figures and factors of studies with units, in tables and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .output import latency, number, percent

if TYPE_CHECKING:
    from ..sim.studies.designs import Design
    from ..sim.studies.factors import Factor
    from ..sim.studies.results import Results


def factor_names(factors: Sequence[Factor]) -> list[str]:
    """Their names in short, as columns of a table have them."""
    from ..sim.studies.responses import short

    return [short(factor.path) for factor in factors]


def factor_values(factors: Sequence[Factor], row: Mapping[str, Any]) -> list[str]:
    """Their values in a run, with units."""
    return [written_value(row.get(factor.path), factor.unit) for factor in factors]


def written_value(value: Any, unit: str) -> str:
    """A factor's value for people: six digits of what was drawn."""
    from ..sim.studies.levels import written

    return written(float(f"{value:.6g}") if isinstance(value, float) else value, unit)


def written_figure(metric: str, value: Any) -> str:
    """A figure with its unit, for people."""
    from ..sim.studies.metrics import unit_of

    if not isinstance(value, (int, float)):
        return "–" if value is None else str(value)
    unit = unit_of(metric)
    if unit == "ns":
        return latency(value)
    return percent(value) if unit == "1" else number(value, unit)


def ratio(results: Results, at: int) -> dict[str, str]:
    """The objective's figure in a row, by its name, where it is one figure per another."""
    objective, values = results.study.objective, results.objective
    if objective is None or values is None or objective.per is None:
        return {}
    return {f"{objective.metric} per {objective.per}": number(float(values[at]))}


def heading(metric: str) -> str:
    """The column of a metric."""
    root, _, rest = metric.partition(".")
    if root == "throughput":
        return f"{rest}/s"
    return rest.replace(".", " ") if root == "latency_ns" else metric


def curve_of(design: Design, rows: Sequence[Mapping[str, Any]], metric: str) -> list[str]:
    """The lines of the curve of a metric; none where there is nothing to draw."""
    from ..sim.studies.levels import written
    from ..sim.studies.responses import response, short
    from .curves import Curve, curve_lines

    factors = design.factors
    found = response(rows, [f.path for f in factors], [f.unit for f in factors], metric)
    if found is None:
        return []
    points = [point for curve in found.curves.values() for point in curve]
    xs = sorted(x for x, *_ in points)
    ends = [written(float(f"{x:.4g}"), found.unit).replace(".0", "") for x in (xs[0], xs[-1])]
    lines = curve_lines(
        [Curve(name, [(x, y) for x, y, *_ in curve]) for name, curve in found.curves.items()],
        short(found.path) + (" (log)" if found.log else ""),
        heading(metric),
        [*ends, written_figure(metric, max(y for _, y, *_ in points))],
        found.log,
    )
    if found.left_out:
        lines.append(f"… and {found.left_out:,} more curves")
    return ["", *lines]
