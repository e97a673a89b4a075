"""Pictures that a system has of its own, drawn from plain data: strips, timelines, steps …"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..inputs import InputError
from ..sim.planes.pictures import Picture, Square, Steps, Strips, Timeline
from ..sim.run.record import Record
from ..sim.systems.registry import SYSTEMS, system_named
from .charts import INK, LEGEND, TIME_MARGINS, USE_SCALE, polished, use_scale_bar
from .figure import Figure
from .runs import COLOURS
from .traffic import matrix
from .words import label, seconds

ROW_PX, NAME_MAX = 22, 24
SPREAD = "#8c96a0"  # of what lies in all places alike
STATES = (*COLOURS[:6], "#8c6d31", "#7f3b8f", "#4c6b22", "#a04a5a")


def system_pictures(record: Record) -> Iterator[tuple[Figure, str]]:
    """(picture, caption) of what its system shows of the record; nothing of one that shows nothing.

    Raises InputError where the record's figures do not fit together.
    """
    system = record.settings.get("system")
    kind = system.get("kind") if isinstance(system, Mapping) else None
    pictures = system_named(kind).pictures if isinstance(kind, str) and kind in SYSTEMS else None
    if pictures is None:
        return
    try:
        made = [(_drawn(one, record.horizon_s), one.caption) for one in pictures.load()(record)]
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as failure:
        raise InputError(f"record: its system's figures do not fit together: {failure}") from None
    yield from made


def _drawn(picture: Picture, end_s: float) -> Figure:
    if isinstance(picture, Square):
        names = [label(name, 12) for name in picture.names]
        return matrix(picture.values, names, picture.of, picture.to, picture.unit)
    if isinstance(picture, Strips):
        figure, height = _strips(picture), 84 + ROW_PX * len(picture.rows)
    elif isinstance(picture, Timeline):
        figure, height = _timeline(picture), 110 + ROW_PX * len(picture.rows)
    else:
        figure, height = _steps(picture), 250
    figure.update_xaxes(range=[0, end_s], title_text="time, s", title_standoff=6)
    named = isinstance(picture, Timeline) or (isinstance(picture, Steps) and len(picture.lines) > 1)
    margin = TIME_MARGINS | {"t": 44 if named else 12}
    return polished(
        figure,
        height,
        margin=margin,
        showlegend=named,
        legend=LEGEND,
        barmode="overlay",
        hovermode="closest",
    )


def _strips(strips: Strips) -> Figure:
    rows = list(range(len(strips.rows)))
    bar = use_scale_bar() if strips.share else {"thickness": 12, "outlinewidth": 0}
    figure = Figure().add_heatmap(
        x=strips.edges_s,
        y=rows,
        z=strips.values.astype(np.float32),
        zmin=0,
        zmax=1 if strips.share else max(float(strips.values.max(initial=0.0)), 1e-9),
        colorscale=USE_SCALE,
        colorbar=bar if strips.share else bar | {"tickformat": "~s"},
        ygap=2,
        hovertemplate="%{y}<br>from %{x:.4~r} s: "
        + ("%{z:.1%}" if strips.share else f"%{{z:.4~s}} {label(strips.unit, 20)}")
        + "<extra></extra>",
    )
    return figure.name_rows((label(name, NAME_MAX) for name in strips.rows), 0.5)


def _timeline(timeline: Timeline) -> Figure:
    """A bar for each span, in the colour of its state; lighter while it changes."""
    figure = Figure()
    seen = {span.state for spans in timeline.rows.values() for span in spans}
    states = [state for state in (*timeline.states, None) if state in seen]
    for state in states:
        at = None if state is None else timeline.states.index(state) % len(STATES)
        spans = [
            (row, span)
            for row, of_row in enumerate(timeline.rows.values())
            for span in of_row
            if span.state == state
        ]
        figure.add_bar(
            orientation="h",
            base=[span.start_s for _, span in spans],
            x=[span.end_s - span.start_s for _, span in spans],
            y=[row for row, _ in spans],
            width=0.72,
            name=label(timeline.spread if state is None else state, 30),
            marker={
                "color": SPREAD if at is None else STATES[at],
                "opacity": [0.45 if span.changing else 1.0 for _, span in spans],
                "line": {"color": "rgba(0,0,0,0)", "width": 1},
            },
            customdata=[
                label(f"{seconds(s.start_s)} to {seconds(s.end_s)}: {s.words}", 120)
                for _, s in spans
            ],
            hovertemplate="%{y}, %{fullData.name}<br>%{customdata}<extra></extra>",
        )
    return figure.name_rows((label(name, NAME_MAX) for name in timeline.rows), 0.5)


def _steps(steps: Steps) -> Figure:
    figure = Figure()
    stacked: dict[str, Any]
    for k, (name, values) in enumerate(steps.lines.items()):
        colour = COLOURS[k % len(COLOURS)]
        stacked = {"stackgroup": "all", "fillcolor": colour} if steps.stacked else {}
        figure.add_scatter(
            x=steps.edges_s,
            y=np.append(values, values[-1:]),
            name=label(name, 40),
            mode="lines",
            line={"shape": "hv", "color": colour, "width": 1 if steps.stacked else 2},
            **stacked,
            hovertemplate=f"%{{y:.4~s}} {label(steps.unit, 20)} at %{{x:.4~r}} s"
            "<extra>%{fullData.name}</extra>",
        )
    return figure.update_yaxes(
        title_text=label(steps.unit, 30),
        rangemode="tozero",
        tickformat="~s",
        nticks=6,
        title_font={"color": INK},
    )
