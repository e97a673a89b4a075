"""The machine of a record, its links coloured by their use and its nodes by their memory's."""

from __future__ import annotations

import plotly.graph_objects as go

from ..inputs import InputError
from ..sim.run.record import Record
from ..topologies.draw import draw_machine
from .charts import polished

ADAPTER = ("nic out", "nic in")
NODE_KINDS = ("memory", *ADAPTER)
BELOW_PX, EDGE_PX = 100, 12  # room for the legend and the bar of colours


def machine_in_use(record: Record) -> tuple[go.Figure, str] | None:
    """The picture and its caption; None where the record's machine cannot be drawn, and where it
    tells no use of its parts, as on the native plane.

    Use is the mean over the horizon. Where two links join the same ends, the busier one counts. A
    node is coloured by its memory's use; by its adapter's busier direction where transactions ran.
    """
    links: dict[tuple[int | str, int | str], float] = {}
    nodes: dict[int | str, float] = {}
    for use in record.resources:
        if use.kind == "link" and use.ends is not None:
            links[use.ends] = max(use.utilisation, links.get(use.ends, 0.0))
        elif use.kind in NODE_KINDS and use.node is not None:
            nodes[use.node] = max(use.utilisation, nodes.get(use.node, 0.0))
    if record.resources and not links and not nodes:
        return None
    of = "network adapter" if any(use.kind in ADAPTER for use in record.resources) else None
    facts = [
        "links by their mean use" if links else "",
        f"nodes by that of their {of or 'memory controller'}" if links and nodes else "",
        f"nodes by the mean use of their {of or 'memory controller'}" if not links else "",
    ]
    caption = ", ".join(part for part in facts if part)
    try:
        figure = draw_machine(record.machine, link_use=links, node_use=nodes, title="")
    except InputError:  # a record of a machine without nodes or links: the rest still tells
        return None
    return _with_legend_below(figure), f"{caption[:1].upper()}{caption[1:]}."


def _with_legend_below(figure: go.Figure) -> go.Figure:
    """The same picture, as narrow as it can be: reports put several side by side."""
    layout = figure.layout
    width = layout.width - layout.margin.r + EDGE_PX
    height = layout.height + BELOW_PX
    plot_px = layout.height - layout.margin.t - layout.margin.b
    for trace in figure.data:
        if "colorbar" in trace.to_plotly_json().get("marker", {}):
            trace.marker.colorbar.update(
                orientation="h",
                x=0,
                xanchor="left",
                y=-10 / plot_px,
                yanchor="top",
                ypad=0,
                len=0.55,
                thickness=10,
                outlinewidth=0,
                title={"side": "top"},
                tickfont={"size": 11},
            )
    legend = {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"}
    figure = polished(
        figure,
        height,
        legend=legend | {"font": {"size": 11}},
        margin={"l": EDGE_PX, "r": EDGE_PX, "t": EDGE_PX, "b": EDGE_PX + BELOW_PX},
    )
    return figure.update_layout(width=width)
