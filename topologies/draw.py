"""Draws machines: a Plotly figure for pages and reports, and files in HTML, SVG and PNG."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..inputs import InputError, write_bytes_atomically, write_text_atomically
from .compose import NodeUse, compose
from .figure import Figure, plotly_js
from .layout import LinkUse
from .machine import Machine
from .picture import INK, PAPER, USE_COLOURS, Areas, Key, Scene, picture_data, read_picture
from .routes import Floats

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["draw_machine", "picture_data", "write_picture"]

LEGEND_PX, TITLE_PX, EDGE_PX = 200, 64, 12


def draw_machine(
    machine: Machine | Mapping[str, Any],
    *,
    link_use: LinkUse | None = None,
    node_use: NodeUse | None = None,
    title: str | None = None,
) -> go.Figure:
    """The picture of a Machine or of its plain data (``picture_data``, a Record's machine).

    ``link_use``: utilisation, 0 to 1, of each directed link by its two ends (from, to);
    ``node_use``: of each node by its id. Where given they colour links and nodes on one scale; half
    of a link is coloured by what leaves the vertex that it touches. ``title`` stands in for the
    machine's own; "" leaves title and note out. Raises InputError where the data are no machine.
    """
    return machine_figure(machine, link_use=link_use, node_use=node_use, title=title).plotly()


def machine_figure(
    machine: Machine | Mapping[str, Any],
    *,
    link_use: LinkUse | None = None,
    node_use: NodeUse | None = None,
    title: str | None = None,
    relative: bool = False,
) -> Figure:
    """The picture as plain data; see ``draw_machine``. ``relative``: what is given as use is
    traffic, as a share of the most that a link or a node has.
    """
    return _figure(_scene(machine, link_use, node_use, title, relative))


def machine_svg(
    machine: Machine | Mapping[str, Any],
    *,
    link_use: LinkUse | None = None,
    node_use: NodeUse | None = None,
    title: str | None = None,
) -> str:
    """The picture as SVG text; see ``draw_machine``."""
    from .svg import svg_text

    return svg_text(_scene(machine, link_use, node_use, title))


def write_picture(
    machine: Machine | Mapping[str, Any],
    path: str | Path,
    *,
    link_use: LinkUse | None = None,
    node_use: NodeUse | None = None,
    title: str | None = None,
) -> Path:
    """Writes the picture to ``path``, whole or not at all; its ending says how.

    ``.html``: a page that works offline, with facts under the mouse; ``.svg``; ``.png``: by the
    Chromium or Chrome of this machine. Raises InputError for another ending, or without a browser.
    """
    from .png import png_from_svg
    from .svg import svg_text

    target = Path(path)
    if target.suffix.lower() not in (".html", ".svg", ".png"):
        raise InputError(
            "not a picture file", token=str(path), expected="the extension .html, .svg or .png"
        )
    scene = _scene(machine, link_use, node_use, title)
    if target.suffix.lower() == ".html":
        return write_text_atomically(target, _page(scene))
    if target.suffix.lower() == ".svg":
        return write_text_atomically(target, svg_text(scene))
    return write_bytes_atomically(target, png_from_svg(svg_text(scene)))


def _scene(
    machine: Machine | Mapping[str, Any],
    link_use: LinkUse | None,
    node_use: NodeUse | None,
    title: str | None,
    relative: bool = False,
) -> Scene:
    picture = read_picture(picture_data(machine) if isinstance(machine, Machine) else machine)
    return compose(picture, link_use=link_use, node_use=node_use, title=title, relative=relative)


def _page(scene: Scene) -> str:
    """The figure as a page of its own, its library included."""
    import plotly.io

    body = plotly.io.to_html(
        _figure(scene).plotly(),
        full_html=False,
        include_plotlyjs=False,
        config={"displaylogo": False},
    )
    name = html.escape(scene.title or scene.name)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{name}</title>'
        f"<script>{plotly_js()}</script></head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _figure(scene: Scene) -> Figure:
    figure = Figure()
    for area in scene.frames:
        _add_area(figure, area)
    for lines in scene.lines:
        x, y = _joined(lines.paths, closed=False)
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": lines.colour, "width": lines.width_px},
            opacity=lines.opacity,
            legendgroup=lines.key,
            hoverinfo="skip",
            showlegend=False,
        )
    for area in scene.areas:
        _add_area(figure, area)
    _add_spots(figure, scene)
    for key in scene.keys:
        _add_legend_entry(figure, key)
    if scene.scale is not None:
        _add_scale(figure, scene.scale)
    return figure.update_layout(**_layout(scene))


def _add_area(figure: Figure, area: Areas) -> None:
    x, y = _joined(area.paths, closed=True)
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        fill="toself",
        fillcolor=area.fill,
        line={"color": area.edge, "width": area.edge_px},
        hoverinfo="skip",
        showlegend=False,
    )


def _joined(paths: list[Floats], *, closed: bool) -> tuple[Any, Any]:
    """x and y of all paths in a row, a gap (NaN) after each."""
    gap = np.full((1, 2), np.nan)
    parts = [part for path in paths for part in (path, path[:1] if closed else path[:0], gap)]
    joined = np.concatenate(parts).astype(np.float32)
    return joined[:, 0], joined[:, 1]


def _add_spots(figure: Figure, scene: Scene) -> None:
    figure.add_scatter(
        x=np.array([spot.x for spot in scene.spots], dtype=np.float32),
        y=np.array([spot.y for spot in scene.spots], dtype=np.float32),
        mode="markers",
        marker={
            "opacity": 0,
            "size": [max(4, round(2 * spot.radius * scene.unit_px)) for spot in scene.spots],
        },
        hovertext=["<br>".join(map(_escaped, spot.lines)) for spot in scene.spots],
        hoverinfo="text",
        showlegend=False,
    )


def _add_legend_entry(figure: Figure, key: Key) -> None:
    look: dict[str, Any] = {"mode": "lines", "line": {"color": key.colour, "width": key.width_px}}
    if key.shape != "line":
        symbol = "square" if key.shape == "box" else "circle"
        marker = {"symbol": symbol, "size": 12, "color": key.colour}
        look = {"mode": "markers", "marker": {**marker, "line": {"color": INK, "width": 1}}}
    figure.add_scatter(
        x=[None], y=[None], name=_escaped(key.name), legendgroup=key.name, hoverinfo="skip", **look
    )


def _add_scale(figure: Figure, title: str) -> None:
    """A point that is not seen, for the bar of colours beside the picture."""
    steps = [[k / (len(USE_COLOURS) - 1), colour] for k, colour in enumerate(USE_COLOURS)]
    bar = {
        "title": {"text": _escaped(title), "side": "top"},
        "tickformat": ".0%",
        "thickness": 14,
        "len": 0.45,
        "x": 1.02,
        "xanchor": "left",
        "y": 0.0,
        "yanchor": "bottom",
    }
    marker = {"color": [0.0], "cmin": 0, "cmax": 1, "colorscale": steps, "colorbar": bar}
    figure.add_scatter(
        x=[None], y=[None], mode="markers", marker=marker, showlegend=False, hoverinfo="skip"
    )


def _layout(scene: Scene) -> dict[str, Any]:
    top = TITLE_PX if scene.title else EDGE_PX
    width = (scene.high[0] - scene.low[0]) * scene.unit_px
    height = (scene.high[1] - scene.low[1]) * scene.unit_px
    axis = {"visible": False, "fixedrange": False}
    layout: dict[str, Any] = {
        "width": round(max(width, 320) + LEGEND_PX + 2 * EDGE_PX),
        "height": round(max(height, 240) + top + EDGE_PX),
        "margin": {"l": EDGE_PX, "r": LEGEND_PX + EDGE_PX, "t": top, "b": EDGE_PX},
        "xaxis": {**axis, "range": [scene.low[0], scene.high[0]]},
        "yaxis": {**axis, "range": [scene.low[1], scene.high[1]], "scaleanchor": "x"},
        "plot_bgcolor": PAPER,
        "paper_bgcolor": PAPER,
        "font": {"family": "Helvetica, Arial, sans-serif", "color": INK},
        "legend": {"x": 1.02, "y": 1, "itemsizing": "trace"},
        "dragmode": "pan",
        "hovermode": "closest",
        "annotations": [
            {
                "x": label.x,
                "y": label.y,
                "text": f"<b>{_escaped(label.text)}</b>" if label.bold else _escaped(label.text),
                "showarrow": False,
                "font": {"size": label.size_px, "color": label.colour},
            }
            for label in scene.labels
        ],
    }
    if scene.title:
        layout["title"] = {
            "text": _escaped(scene.title),
            "subtitle": {"text": _escaped(scene.note)},
            "x": EDGE_PX / layout["width"],
            "xanchor": "left",
            "font": {"size": 17},
        }
    return layout


def _escaped(text: str) -> str:
    """Plotly reads a little HTML in every text."""
    return html.escape(text, quote=False)
