"""Plotly's own object of a figure; raises ValueError where a name or value is none of Plotly's."""

import plotly.graph_objects as go

from numatwin.reports.figure import Figure


def plotly(figure: Figure) -> go.Figure:
    return go.Figure(figure.data, {"template": "none", **figure.layout})
