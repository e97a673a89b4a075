"""A page with one picture: how a figure follows a factor, to zoom and to hover."""

from __future__ import annotations

from ..sim.studies.responses import Response, short
from ..topologies.figure import Figure
from .charts import LEGEND, polished
from .page import Plots
from .report import rendered
from .runs import COLOURS
from .words import label


def curve_html(response: Response, title: str, unit: str) -> str:
    """The page as text; ``unit``: of the figure."""
    from .._version import __version__

    caption = f"{response.metric} over {response.path}"
    if response.left_out:
        caption += f"; {response.left_out:,} further curves are left out"
    plot = Plots().plot(curve_figure(response, unit), caption)
    return rendered("curve.html", title=title, plot=plot, version=__version__)


def curve_figure(response: Response, unit: str, height: int = 460) -> Figure:
    """The curves, with bands where intervals are known."""
    figure = Figure()
    several = len(response.curves) > 1
    for k, (name, curve) in enumerate(response.curves.items()):
        colour = COLOURS[k % len(COLOURS)]
        band = [(x, low, high) for x, _, low, high in curve if low is not None and high is not None]
        if len(band) > 1:
            figure.add_scatter(
                x=[x for x, *_ in band] + [x for x, *_ in reversed(band)],
                y=[high for *_, high in band] + [low for _, low, _ in reversed(band)],
                fill="toself",
                mode="none",
                fillcolor=_pale(colour),
                hoverinfo="skip",
                showlegend=False,
                legendgroup=str(k),
            )
        figure.add_scatter(
            x=[x for x, *_ in curve],
            y=[y for _, y, *_ in curve],
            mode="lines+markers",
            name=label(name, 60),
            legendgroup=str(k),
            line={"color": colour},
            hovertemplate=f"%{{x:.6~g}} {label(response.unit)}: %{{y:.4~s}}{label(unit)}"
            f"<extra>{label(name, 60)}</extra>",
        )
    unit_text = f", {response.unit}" if response.unit else ""
    figure.update_xaxes(
        title_text=label(f"{short(response.path)}{unit_text}"),
        type="log" if response.log else "linear",
    )
    figure.update_yaxes(
        title_text=label(response.metric), rangemode="tozero", tickformat="~s", ticksuffix=""
    )
    top = 28 + (24 * -(-len(response.curves) // 2) if several else 0)
    return polished(figure, height + top, showlegend=several, legend=LEGEND, margin={"t": top})


def _pale(colour: str) -> str:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
