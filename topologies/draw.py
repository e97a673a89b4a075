"""A picture of a machine as a Plotly figure, plain or coloured by use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .machine import Machine
from .picture import VertexId, picture_data, read_picture

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["draw_machine", "picture_data", "write_picture"]


def draw_machine(
    machine: Machine | Mapping[str, Any],
    *,
    link_use: Mapping[tuple[VertexId, VertexId], float] | None = None,
    node_use: Mapping[VertexId, float] | None = None,
    title: str | None = None,
) -> go.Figure:
    """The picture of a Machine or of its plain data (``picture_data``, a Record's machine).

    ``link_use``: utilisation, 0 to 1, of each directed link by its two ends (from, to);
    ``node_use``: of each node by its id. Where given they colour links and nodes on one scale.
    ``title`` stands in for the machine's own; "" leaves it out. Raises InputError where the data are
    no machine.
    """
    import plotly.graph_objects as go

    picture = read_picture(picture_data(machine) if isinstance(machine, Machine) else machine)
    from math import cos, pi, sin

    count = len(picture.vertices)
    at = [(cos(2 * pi * k / count), sin(2 * pi * k / count)) for k in range(count)]
    figure = go.Figure()
    for link in picture.links:
        a, b = link.ends
        figure.add_scatter(x=[at[a][0], at[b][0]], y=[at[a][1], at[b][1]], mode="lines")
    figure.add_scatter(
        x=[x for x, _ in at],
        y=[y for _, y in at],
        text=[str(v.id) for v in picture.vertices],
        mode="markers+text",
    )
    return figure


def write_picture(
    machine: Machine | Mapping[str, Any], path: str | Path, *, title: str | None = None
) -> Path:
    """Writes the picture to ``path`` (.html), whole or not at all."""
    from ..inputs import write_text_atomically

    figure = draw_machine(machine, title=title)
    return write_text_atomically(path, figure.to_html(include_plotlyjs=True))
