"""Charts over time: throughput, balance and utilisation, with events of the control plane."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..sim.kernel.arrays import Floats as Floats
from ..sim.planes.outcome import ControlEvent, ResourceUse
from ..sim.run.record import Record
from ..topologies.picture import USE_COLOURS
from .figure import Figure
from .runs import COLOURS, Run
from .words import label, plural, seconds

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, SOFT, GRID = "#1b2733", "#5b6875", "#e6eaee"
USE_SCALE = [[k / (len(USE_COLOURS) - 1), colour] for k, colour in enumerate(USE_COLOURS)]
LINES_MAX = 6  # as lines; more resources than that make a heat map
HEAT_ROWS_MAX = 40
EVENTS_MAX = 2_000
MARGIN_LEFT, MARGIN_RIGHT = 64, 24
ROW_SPACING_PX = 18
# Of all pictures of one run over time, so that one time stands below the other.
TIME_MARGINS = {"l": 172, "r": 78}
# At the top of the picture, above the axes, whatever their height.
LEGEND = {
    "orientation": "h",
    "x": 0,
    "y": 1,
    "yanchor": "top",
    "yref": "container",
    "traceorder": "normal",
}

# Kind of control event -> (name on the axis, colour, symbol); phases are bands instead.
EVENT_KINDS = {
    "fault": ("faults", "#D55E00", "x"),
    "recovery": ("recoveries", "#009E73", "diamond"),
    "balance": ("decisions", "#0072B2", "triangle-down"),
    "transfer": ("transfers", "#E69F00", "line-ns-open"),
    "done": ("cycles done", "#009E73", "circle"),
}


def polished(figure: Figure, height: int, **layout: Any) -> Figure:
    """The figure in the report's type, colours and margins."""
    margin = {"l": MARGIN_LEFT, "r": MARGIN_RIGHT, "t": 28, "b": 44} | layout.pop("margin", {})
    figure.update_layout(
        height=height,
        margin=margin,
        font={"family": FONT, "size": 13, "color": INK},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#b4bec8", "activecolor": SOFT},
        hoverlabel={"bgcolor": "white", "bordercolor": "#c5ced6", "font": {"color": INK}},
        **layout,
    )
    quiet: dict[str, Any] = {
        "gridcolor": GRID,
        "zeroline": False,
        "tickcolor": GRID,
        "automargin": True,
    }
    figure.update_xaxes(**quiet, linecolor="#b4bec8", tickfont={"color": SOFT})
    figure.update_yaxes(**quiet, tickfont={"color": SOFT}, title_standoff=8)
    return figure


def use_scale_bar() -> dict[str, Any]:
    """The bar that explains colours of use."""
    return {"tickformat": ".0%", "thickness": 12, "outlinewidth": 0}


def throughput_over_time(runs: Sequence[Run], operations: Sequence[str]) -> Figure:
    """A row per operation, one per object's imbalance, and one of events: of several runs, of what
    failed in them and when that was over."""
    columns = [
        f"throughput/{name}"
        for name in operations
        if any(f"throughput/{name}" in run.record.series for run in runs)
    ]
    columns += [
        name
        for name in dict.fromkeys(name for run in runs for name in run.record.series)
        if name.startswith("imbalance/") and _varies(runs, name)
    ]
    record = runs[0].record
    kinds = _event_kinds(runs)
    heights = [250 if name.startswith("throughput/") else 110 for name in columns]
    if kinds:
        heights.append(16 + 22 * len(kinds))
    total = sum(heights) + ROW_SPACING_PX * (len(heights) - 1)
    figure = Figure(row_heights=heights, spacing=ROW_SPACING_PX)
    for row, name in enumerate(columns, 1):
        part, subject = name.split("/", 1)
        for run in runs:
            if name in run.record.series:
                _add_steps(figure, run, name, row, len(runs) > 1)
        title = f"{label(plural(subject), 24)}/s" if part == "throughput" else "imbalance"
        figure.update_yaxes(title_text=title, title_standoff=8, row=row)
        ticks = {"tickformat": "~s" if part == "throughput" else "~g", "nticks": 6}
        figure.update_yaxes(rangemode="tozero", **ticks, row=row)
    if kinds:
        _add_events(figure, runs, kinds, len(heights))
    # The bands of the last drawn run would hide those of the others: all runs of one scenario share
    # them, so the first run's are shown.
    _add_phases(figure, record)
    # A steady run is the same at any time: it need not be seen for as long as it was played.
    moving = [run for run in runs if len(run.record.series.get("time_s", ())) > 1] or runs
    end_s = max(run.record.horizon_s for run in moving)
    figure.update_xaxes(range=[0, end_s])
    figure.update_xaxes(title_text="time, s", title_standoff=6, row=len(heights))
    return polished(
        figure,
        total + 28 + 44 + (30 if len(runs) > 1 else 0),
        showlegend=len(runs) > 1,
        legend=LEGEND,
        margin={"t": 58} if len(runs) > 1 else TIME_MARGINS,
        hovermode="x" if len(runs) > 1 else "closest",
    )


def use_over_time(record: Record) -> Figure | None:
    """Use of the busiest resources as lines, or as a heat map of many; None where none is known."""
    known = [use for use in record.resources if f"utilisation/{use.name}" in record.series]
    if not known:
        return None
    series = {u.name: _column(record, f"utilisation/{u.name}") for u in known}
    peak = {name: float(values.max(initial=0.0)) for name, values in series.items()}
    busiest = sorted((u for u in known if peak[u.name] > 0), key=lambda u: -peak[u.name])
    if not busiest:
        return None
    if len(busiest) <= LINES_MAX:
        return _use_lines(record, busiest)
    chosen = {use.name for use in busiest[:HEAT_ROWS_MAX]}
    return _use_heat(record, [use for use in known if use.name in chosen])


def _use_lines(record: Record, uses: Sequence[ResourceUse]) -> Figure:
    figure = Figure()
    for k, use in enumerate(uses):
        run = Run(record, use.name, COLOURS[k % len(COLOURS)], "solid")
        _add_steps(figure, run, f"utilisation/{use.name}", None, True)
    _add_phases(figure, record)
    figure.update_yaxes(range=[0, 1.04], tickformat=".0%", title_text="in use")
    figure.update_xaxes(range=[0, record.horizon_s], title_text="time, s", title_standoff=6)
    margin = TIME_MARGINS | {"t": 62}
    return polished(figure, 340, margin=margin, legend=LEGEND, hovermode="closest")


def _use_heat(record: Record, uses: Sequence[ResourceUse]) -> Figure:
    """Rows in the record's order, kinds together, so that a moving load shows as a moving band."""
    values = np.array([_column(record, f"utilisation/{use.name}") for use in uses])
    names = [label(use.name, 25) for use in uses]
    figure = Figure().add_heatmap(
        x=_edges(record),
        y=list(range(len(uses))),
        z=values.astype(np.float32),
        zmin=0,
        zmax=1,
        colorscale=USE_SCALE,
        colorbar=use_scale_bar(),
        ygap=1,
        hovertemplate="%{y}<br>from %{x:.4~r} s: %{z:.1%}<extra></extra>",
    )
    figure.name_rows(names)
    for at_s, _, _ in _phases(record)[1:]:
        figure.add_vline(at_s, line={"color": INK, "width": 1, "dash": "dot"})
    figure.update_xaxes(range=[0, record.horizon_s], title_text="time, s", title_standoff=6)
    polished(figure, 90 + 17 * len(uses), margin=TIME_MARGINS)
    return figure.update_yaxes(tickfont={"size": 11.5})


def _add_steps(figure: Figure, run: Run, column: str, row: int | None, named: bool) -> None:
    """The column as steps; the last piece is drawn to its end."""
    values = _column(run.record, column)
    part, subject = column.split("/", 1)
    unit = {
        "throughput": f"%{{y:.4~s}} {label(plural(subject), 40)}/s",
        "imbalance": f"imbalance of {label(subject, 40)} %{{y:.3~r}}",
        "utilisation": "%{y:.1%}",
    }[part]
    figure.add_scatter(
        x=_edges(run.record),
        y=np.append(values, values[-1:]),
        name=label(run.label, 60),
        legendgroup=run.label,
        showlegend=named and row in (None, 1),
        mode="lines",
        line={"shape": "hv", "color": run.colour, "width": 2, "dash": run.dash},
        hovertemplate=f"{unit} at %{{x:.4~r}} s"
        + ("<extra>%{fullData.name}</extra>" if named else "<extra></extra>"),
        row=row or 1,
    )


def _event_kinds(runs: Sequence[Run]) -> list[str]:
    found = {event.kind for run in runs for event in run.record.control_events} - {"phase"}
    if len(runs) > 1:
        found &= {"fault", "recovery"}
    return [kind for kind in EVENT_KINDS if kind in found] + sorted(found - set(EVENT_KINDS))


def _add_events(figure: Figure, runs: Sequence[Run], kinds: Sequence[str], row: int) -> None:
    """A line of marks for each kind of event, to be read by pointing at them."""
    for height, kind in enumerate(kinds):
        _, colour, symbol = EVENT_KINDS.get(kind, (kind, SOFT, "diamond"))
        named = [
            (event, f"{run.label}: {event.text}" if len(runs) > 1 else event.text)
            for run in runs
            for event in run.record.control_events
            if event.kind == kind
        ][:EVENTS_MAX]
        figure.add_scatter(
            x=[event.time_s for event, _ in named],
            y=[height] * len(named),
            mode="markers",
            marker={"symbol": symbol, "size": 10, "color": colour, "line": {"width": 1.5}},
            customdata=[label(text, 160) for _, text in named],
            hovertemplate="%{x:.4~r} s: %{customdata}<extra></extra>",
            showlegend=False,
            row=row,
        )
    names = (EVENT_KINDS[k][0] if k in EVENT_KINDS else label(k, 14) for k in kinds)
    figure.name_rows(names, 0.4, row)


def _add_phases(figure: Figure, record: Record) -> None:
    """Every second phase shaded, each with its name on top (named ``phase``: phones hide it)."""
    phases = _phases(record)
    if len(phases) < 2:
        return
    for k, (start_s, end_s, text) in enumerate(phases):
        if k % 2:
            figure.add_shape(
                type="rect",
                x0=start_s,
                x1=end_s,
                xref="x",
                y0=0,
                y1=1,
                yref="paper",
                layer="below",
                line={"width": 0},
                fillcolor="rgba(91,104,117,0.08)",
            )
        # About 160 letters fit side by side at the width of a report.
        room = int(160 * (end_s - start_s) / max(record.horizon_s, 1e-12)) - 2
        if room >= 4:
            figure.add_annotation(
                name="phase",
                x=start_s,
                xref="x",
                y=1,
                yref="paper",
                xanchor="left",
                yanchor="bottom",
                showarrow=False,
                text=label(text, room),
                hovertext=label(f"from {seconds(start_s)}: {text}", 200),
                font={"size": 11, "color": SOFT},
            )


def _phases(record: Record) -> list[tuple[float, float, str]]:
    """(start, end, text) of each phase; what ran before the first named one has no text."""
    starts = [(0.0, ControlEvent(0.0, "phase", ""))]
    for event in record.control_events:
        if event.kind == "phase" and 0.0 <= event.time_s < record.horizon_s:
            if event.time_s == starts[-1][0]:
                starts.pop()
            starts.append((event.time_s, event))
    ends = [*(start for start, _ in starts[1:]), record.horizon_s]
    return [(start, end, e.text) for (start, e), end in zip(starts, ends, strict=True)]


def _column(record: Record, name: str) -> Floats:
    return np.nan_to_num(np.asarray(record.series[name], dtype=np.float64))


def _edges(record: Record) -> Floats:
    """The starts of all pieces and the end of the last."""
    start = np.asarray(record.series["time_s"], dtype=np.float64)
    return np.append(start, start[-1:] + record.series["duration_s"][-1:])


def _varies(runs: Sequence[Run], column: str) -> bool:
    return any(
        column in run.record.series and float(np.ptp(_column(run.record, column))) > 0
        for run in runs
        if len(run.record.series.get("time_s", ()))
    )
