"""Plain figures are what Plotly's own would be."""

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots
from plotly_figures import plotly

from numatwin.reports.figure import Figure


def without_template(figure: go.Figure) -> Any:
    made = figure.to_plotly_json()
    del made["layout"]["template"]
    return made


def test_rows_stand_where_plotly_puts_subplots() -> None:
    heights = [250, 110, 60]
    ours = Figure(row_heights=heights, spacing=18).layout
    theirs = without_template(
        make_subplots(rows=3, shared_xaxes=True, row_heights=heights, vertical_spacing=18 / 456)
    )["layout"]
    for axis in theirs:
        assert ours[axis].pop("domain") == pytest.approx(theirs[axis].pop("domain"))
    assert ours == theirs


def test_one_picture_drawn_by_both() -> None:
    """The same calls, but for rows, which Plotly counts with columns."""
    figures: tuple[Any, Any] = (
        Figure(row_heights=[2, 1]),
        make_subplots(rows=2, shared_xaxes=True, row_heights=[2, 1], vertical_spacing=0.0),
    )
    for figure, column in zip(figures, ({}, {"col": 1}), strict=True):
        figure.add_scatter(x=[1, 2], y=[3, None], line={"width": 2}, row=1, **column)
        figure.add_scatter(x=[1, 2], y=[5, 6], row=2, **column)
        figure.update_layout(height=300, margin={"l": 1})
        figure.update_layout(margin={"r": 2})
        figure.update_xaxes(title_text="time, s", title_standoff=6, row=2, **column)
        figure.update_yaxes(tickfont={"size": 11})
        figure.update_yaxes(tickfont={"color": "#123456"}, row=1, **column)
        figure.add_shape(type="rect", x0=0, x1=1, y0=0, y1=1)
        figure.add_annotation(text="here", x=1)
    ours, theirs = figures
    assert plotly(ours).to_plotly_json()["data"] == theirs.to_plotly_json()["data"]
    found, expected = without_template(plotly(ours))["layout"], without_template(theirs)["layout"]
    for axis in ("yaxis", "yaxis2"):
        assert found[axis].pop("domain") == pytest.approx(expected[axis].pop("domain"))
    assert found == expected


def test_lines_across_stand_where_plotly_draws_them() -> None:
    figures: tuple[Any, Any] = Figure(), go.Figure()
    for figure in figures:
        figure.add_bar(x=[1], y=[1])
        figure.add_hline(1.5, line={"dash": "dot"})
        figure.add_vline(2.5, line={"dash": "dot"})
    ours, theirs = (plotly(figure) if figure is figures[0] else figure for figure in figures)
    assert without_template(ours) == without_template(theirs)


def test_a_name_that_plotly_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="colour"):
        plotly(Figure().add_bar(x=[1], y=[1], colour="red"))
    with pytest.raises(ValueError, match="legends"):
        plotly(Figure().update_layout(legends={"x": 0}))


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.5, np.nan, -0.25]),
        np.array([[1.5, 2.0], [3.0, 4.0]], dtype=np.float32),
        np.arange(3),
        [1.0, float("nan"), float("inf"), None],
    ],
)
def test_values_are_written_as_plotly_writes_them(values: Any) -> None:
    figure = Figure().add_heatmap(z=values)
    written = json.loads(figure.to_json())["data"][0]["z"]
    theirs = json.loads(plotly(figure).to_json(engine="json"))["data"][0]["z"]
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        assert written == values.tolist()  # Plotly: the shortest integers that hold them
    else:
        assert written == theirs


def test_no_text_ends_the_script_element() -> None:
    figure = Figure().add_scatter(x=[1], y=[1], name="</script><b>ü")
    text = figure.to_json()
    assert not set("<>/") & set(text)
    assert json.loads(text)["data"][0]["name"] == "</script><b>ü"


def test_what_is_given_is_not_changed() -> None:
    legend = {"x": 0, "font": {"size": 3}}
    figure = Figure().update_layout(legend=legend).update_layout(legend={"font": {"size": 4}})
    assert figure.layout["legend"] == {"x": 0, "font": {"size": 4}}
    assert legend == {"x": 0, "font": {"size": 3}}
