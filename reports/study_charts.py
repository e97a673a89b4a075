"""Pictures of a study, as Plotly figures: responses, heat map, Pareto front, tornado, waterfall."""

from typing import Any

import numpy as np

from ..sim.run.record import unit_of
from ..sim.studies.explanation import Explanation, level_effects, main_effects
from ..sim.studies.levels import is_number, written
from ..sim.studies.regret import UnderDoubt
from ..sim.studies.results import Results, short
from .charts import SOFT, polished
from .figure import Figure, error_bars
from .runs import COLOURS
from .words import figure_text, label, si

BEATEN_MAX = 1_500  # points that others beat, beside the front
HEAT_MAX = 24
LARGE = 1e6


def response_band(results: Results, path: str, metric: str) -> Figure | None:
    """The mean figure by a factor's value, over all other factors, with the band of most runs."""
    effects = level_effects(results, path, metric)
    if len(effects) < 2:
        return None
    factor = next(f for f in results.study.factors if f.path == path)
    numeric = all(is_number(effect.value) for effect in effects)
    xs: list[Any] = [e.value if numeric else label(e.value, 24) for e in effects]
    unit = unit_of(metric)
    figure = Figure()
    if numeric:
        figure.add_scatter(
            x=xs + xs[::-1],
            y=[e.high for e in effects] + [e.low for e in reversed(effects)],
            fill="toself",
            mode="none",
            fillcolor="rgba(0,114,178,0.15)",
            hoverinfo="skip",
            showlegend=False,
        )
    means = [e.mean for e in effects]
    figure.add_scatter(
        x=xs,
        y=means,
        error_y=None if numeric else error_bars(means, [(e.low, e.high) for e in effects]),
        mode="lines+markers" if numeric else "markers",
        line={"color": COLOURS[0]},
        customdata=[
            [e.runs, figure_text(e.mean, unit), figure_text(e.low, unit), figure_text(e.high, unit)]
            for e in effects
        ],
        hovertemplate="%{x}: %{customdata[1]}<br>80% of %{customdata[0]} runs: %{customdata[2]} to "
        "%{customdata[3]}<extra></extra>",
        showlegend=False,
    )
    wide = numeric and min(xs) > 0 and max(xs) / min(xs) > 20
    figure.update_xaxes(
        title_text=label(f"{short(path)}{f', {factor.unit}' if factor.unit else ''}"),
        type="log" if wide else "linear" if numeric else "category",
    )
    figure.update_yaxes(title_text=label(metric), rangemode="tozero", tickformat="~s")
    return polished(figure, 300)


def likely_chart(doubt: UnderDoubt) -> Figure | None:
    """Figures of some runs with their intervals, one below the other."""
    if not doubt.figures:
        return None
    values = [one.value for one in doubt.figures]
    figure = Figure().add_scatter(
        x=values,
        y=[f"point {one.point}" for one in doubt.figures],
        error_x=error_bars(values, doubt.intervals.values()),
        mode="markers",
        marker={"color": COLOURS[0], "size": 9},
        hovertemplate="%{y}: %{x:.4~s}<extra></extra>",
    )
    figure.update_xaxes(title_text=label(doubt.of), rangemode="tozero", tickformat="~s")
    figure.update_yaxes(type="category", autorange="reversed")
    return polished(figure, 100 + 34 * len(values), margin={"l": 90})


def heat_map(results: Results, metric: str) -> Figure | None:
    """The mean figure by the two factors that matter most."""
    paths = list(main_effects(results, metric))[:2]
    if len(paths) < 2:
        return None
    values = {path: list(dict.fromkeys(row.get(path) for row in results.rows)) for path in paths}
    for path in paths:
        if all(map(is_number, values[path])):
            values[path].sort()
    if any(len(found) > HEAT_MAX for found in values.values()):
        return None
    figures = results.column(metric)
    sums = np.zeros([len(values[path]) for path in paths])
    runs = np.zeros_like(sums)
    for row, figure in zip(results.rows, figures, strict=True):
        if np.isfinite(figure):
            at = tuple(values[path].index(row.get(path)) for path in paths)
            sums[at] += figure
            runs[at] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / runs
    units = {factor.path: factor.unit for factor in results.study.factors}
    names = [[label(level_text(v, units[p]), 20) for v in values[p]] for p in paths]
    unit = unit_of(metric)
    drawn = Figure().add_heatmap(
        x=names[1],
        y=names[0],
        z=[[float(one) if np.isfinite(one) else None for one in line] for line in means],
        customdata=[[figure_text(float(one), unit) for one in line] for line in means],
        colorscale="Viridis",
        colorbar={"tickformat": "~s", "thickness": 14},
        hovertemplate="%{y}, %{x}: %{customdata}<extra></extra>",
    )
    drawn.update_xaxes(title_text=label(short(paths[1])), type="category")
    drawn.update_yaxes(title_text=label(short(paths[0])), type="category")
    return polished(drawn, 380)


def pareto_chart(results: Results, least: str, most: str) -> Figure | None:
    """All runs by two figures, and those that no other beats in both."""
    cost, gain = results.column(least), results.column(most)
    holds = results.feasible
    front = results.front(least, most)
    if not front:
        return None
    others = np.setdiff1d(np.flatnonzero(np.isfinite(cost) & np.isfinite(gain)), front)
    others = others[:: max(1, len(others) // BEATEN_MAX)]
    figure = Figure()
    for name, at, colour, mode, size in (
        ("holds the constraints", others[holds[others]], "#8aa1b4", "markers", 5),
        ("breaks a constraint", others[~holds[others]], "#e0b58f", "markers", 5),
        ("no run is better in both", np.array(front), COLOURS[1], "lines+markers", 8),
    ):
        if len(at):
            figure.add_scatter(
                x=cost[at],
                y=gain[at],
                mode=mode,
                name=name,
                marker={"color": colour, "size": size},
                line={"shape": "hv"},
                customdata=[[int(results.points[k]), _named(results, int(k))] for k in at],
                hovertemplate="point %{customdata[0]}<br>%{customdata[1]}<br>%{x:.4~s}, %{y:.4~s}"
                "<extra></extra>",
            )
    figure.update_xaxes(title_text=label(least), tickformat="~s", rangemode="tozero")
    figure.update_yaxes(title_text=label(most), tickformat="~s", rangemode="tozero")
    return polished(figure, 400, legend={"orientation": "h", "y": 1.12}, margin={"t": 48})


def tornado(results: Results, metric: str) -> Figure | None:
    """How far the mean figure goes from each factor's worst value to its best."""
    effects = main_effects(results, metric)
    if not effects:
        return None
    overall = float(np.nanmean(results.column(metric)))
    lowest = min(pair[0].mean for pair in effects.values())
    highest = max(pair[1].mean for pair in effects.values())
    small = {
        p for p, pair in effects.items() if pair[1].mean - pair[0].mean < 0.01 * (highest - lowest)
    }
    units = {factor.path: factor.unit for factor in results.study.factors}
    names = [label(short(path), 28) for path in effects]
    unit = unit_of(metric)
    figure, longest = Figure(), 4
    for side, colour in ((0, "#b4bec8"), (1, COLOURS[0])):
        ends = [pair[side] for pair in effects.values()]
        # Where a bar has no length, both ends' values would stand on top of each other.
        texts = [
            "" if p in small else label(level_text(e.value, units[p]), 20)
            for p, e in zip(effects, ends, strict=True)
        ]
        longest = max(longest, *map(len, texts))
        figure.add_bar(
            y=names,
            x=[end.mean - overall for end in ends],
            base=overall,
            orientation="h",
            marker={"color": colour},
            text=texts,
            textposition="outside",
            cliponaxis=False,
            customdata=[figure_text(end.mean, unit) for end in ends],
            hovertemplate="%{y} %{text}: %{customdata} on average<extra></extra>",
            showlegend=False,
        )
    figure.update_layout(barmode="overlay")
    figure.update_yaxes(autorange="reversed", type="category")
    room = (0.1 + 0.02 * longest) * (highest - lowest or 1.0)
    figure.update_xaxes(
        title_text=label(metric), tickformat="~s", range=[lowest - room, highest + room]
    )
    return polished(figure, 90 + 38 * len(names), margin={"l": 150})


def waterfall(results: Results, first: int, second: int, metric: str, found: Explanation) -> Figure:
    """From one run to another: what each factor's change brings."""
    unit = unit_of(metric)
    units = {factor.path: factor.unit for factor in results.study.factors}
    one, other = results.rows[first], results.rows[second]

    def step(path: str) -> str:
        before, after = (level_text(row.get(path), units[path]) for row in (one, other))
        words = label(short(path), 16).replace(" ", "<br>")
        return "<br>".join((words, f"{label(before, 14)} →", label(after, 16)))

    changes = list(found.parts.values())
    values = [found.before, *changes, found.after]
    names = [f"point {one['point']}", *map(step, found.parts), f"point {other['point']}"]
    # Where each bar begins: the first and the last at 0, a change where the one before it ends.
    levels = np.cumsum([values[0], *changes])
    rise, fall = "#009E73", "#D55E00"
    figure = Figure().add_bar(
        x=names,
        y=values,
        base=[0.0, *levels[:-1].tolist(), 0.0],
        text=[figure_text(value, unit) for value in values],
        textposition="outside",
        cliponaxis=False,
        marker={"color": [COLOURS[0], *(rise if by >= 0 else fall for by in changes), COLOURS[0]]},
        hovertemplate="%{x}: %{text}<extra></extra>",
    )
    for k, level in enumerate(levels.tolist()):
        figure.add_scatter(
            x=names[k : k + 2],
            y=[level, level],
            mode="lines",
            line={"color": SOFT, "width": 1},
            hoverinfo="skip",
        )
    figure.update_layout(showlegend=False)
    figure.update_yaxes(title_text=label(metric), tickformat="~s")
    figure.update_xaxes(tickangle=0, tickfont={"size": 11})
    return polished(figure, 400, margin={"t": 40, "b": 85})


def _named(results: Results, at: int) -> str:
    row = results.rows[at]
    texts = (
        f"{short(factor.path)} {level_text(row.get(factor.path), factor.unit)}"
        for factor in results.study.factors
    )
    return label(", ".join(texts), 120)


def level_text(value: Any, unit: str) -> str:
    """A factor's value for people: large numbers with a prefix."""
    if is_number(value) and abs(value) >= LARGE and unit[:1] in ("", "/", "B"):
        return si(float(value), unit, 4)
    if isinstance(value, float):
        return f"{float(f'{value:.4g}'):g} {unit}".rstrip()
    return written(value, unit)
