"""Figures and factors of studies with units, in tables and curves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .output import Part, figure, number, whole_table

if TYPE_CHECKING:
    from ..sim.studies.designs import Design, Factor
    from ..sim.studies.regret import UnderDoubt
    from ..sim.studies.results import Response, Results


def factor_names(factors: "Sequence[Factor]") -> list[str]:
    """Their names in short, as columns of a table have them."""
    from ..sim.studies.results import short

    return [short(factor.path) for factor in factors]


def factor_values(factors: "Sequence[Factor]", row: Mapping[str, Any]) -> list[str]:
    """Their values in a run, with units."""
    return [written_value(row.get(factor.path), factor.unit) for factor in factors]


def written_value(value: Any, unit: str) -> str:
    """A factor's value for people: six digits of what was drawn."""
    from ..sim.studies.levels import written

    return written(float(f"{value:.6g}") if isinstance(value, float) else value, unit)


def written_figure(metric: str, value: Any) -> str:
    """A figure with its unit, for people."""
    from ..sim.run.record import unit_of

    if not isinstance(value, (int, float)):
        return "–" if value is None else str(value)
    return figure(value, unit_of(metric))


def runs_table(
    results: "Results",
    positions: Iterable[int],
    figures: Sequence[str] | None = None,
    name: str = "point",
    doubt: "UnderDoubt | None" = None,
) -> Part:
    """Runs of a study with their values and ``figures``; by default those that are asked for, and
    the objective's own where that is one figure per another; with what intervals are known.
    """
    factors, objective = results.study.factors, results.study.objective
    columns = [name, *factor_names(factors), *(results.asked if figures is None else figures)]
    ratios = results.objective if objective is not None and objective.per is not None else None
    cells = []
    for at in positions:
        row = results.rows[at]
        cells.append([str(row["point"]), *factor_values(factors, row)])
        cells[-1] += [written_figure(one, row.get(one)) for one in columns[1 + len(factors) :]]
        if figures is None and ratios is not None:
            cells[-1].append(number(float(ratios[at])))
    if figures is None and ratios is not None and objective is not None:
        columns.append(objective.figure)
    if doubt is not None and doubt.figures:
        columns.append(LIKELY)
        for cell in cells:
            cell.append(between(doubt.of, doubt.intervals.get(int(cell[0]))))
    return whole_table(columns, cells, left=1 + len(factors))


LIKELY = "90% interval"


def between(metric: str, interval: Sequence[float] | None) -> str:
    """``377.7 M/s to 1.912 G/s``; of a ratio without a unit."""
    ratio = " per " in metric
    ends = [number(v) if ratio else written_figure(metric, v) for v in interval or ()]
    return " to ".join(ends) or "–"


def heading(metric: str) -> str:
    """The column of a metric."""
    root, _, rest = metric.partition(".")
    if root == "throughput":
        return f"{rest}/s"
    return rest.replace(".", " ") if root == "latency_ns" else metric


def curve_of(
    design: "Design", rows: Sequence[Mapping[str, Any]], metric: str, knee: bool = False
) -> list[str]:
    """The lines of the curve of a metric, and its ``knee``; none where there is nothing to draw."""
    from ..sim.studies.levels import written
    from ..sim.studies.results import response, short
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
    return ["", *lines, *(_knee_lines(found) if knee else ())]


def _knee_lines(found: "Response") -> Iterator[str]:
    """Where each curve of a latency over a load has its knee."""
    yield ""
    for name in found.curves:
        load, latency_ns = found.knees.get(name, (None, None))
        at = f"{written_value(load, found.unit)}, {written_figure(found.metric, latency_ns)}"
        yield f"Knee{f' of {name}' if name else ''}: {'none' if load is None else at}"
