"""Figures as the plain data that plotly.js draws: its traces and layout, under its own names.

Plotly's Python library takes longer to import than most scenarios to run, so pages do without it;
tests make its object of a figure, which knows every name and refuses others.

The part of Plotly that pages need, packed: they work without a network.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

TITLE = "title_"
# What would end a script element stands in JSON as an escape.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "/": "\\u002f"}


class Figure:
    """Traces and a layout; methods are named as in Plotly, and return the figure where they do.

    ``row_heights``: of rows one below the other with an x axis in common, ``spacing`` between
    them, in any one unit; by default one pair of axes. Fields are merged into what is there;
    ``title_text`` is ``text`` of ``title``.
    """

    def __init__(
        self,
        traces: Sequence[Mapping[str, Any]] = (),
        *,
        row_heights: Sequence[float] = (),
        spacing: float = 0.0,
    ) -> None:
        self.data: list[dict[str, Any]] = [dict(trace) for trace in traces]
        self.layout: dict[str, Any] = {}
        self._rows = len(row_heights)
        whole = sum(row_heights) + spacing * (self._rows - 1)
        top = whole
        for row, height in enumerate(row_heights, 1):
            k = _number(row)
            self.layout[f"xaxis{k}"] = {"anchor": f"y{k}", "domain": [0.0, 1.0]}
            self.layout[f"yaxis{k}"] = {
                "anchor": f"x{k}",
                "domain": [max(0.0, (top - height) / whole), top / whole],
            }
            if row < self._rows:
                shared = {"matches": f"x{_number(self._rows)}", "showticklabels": False}
                self.layout[f"xaxis{k}"] |= shared
            top -= height + spacing

    def add_trace(self, kind: str, *, row: int = 1, **fields: Any) -> Figure:
        """A trace of that ``kind`` of plotly.js in the axes of ``row``."""
        k = _number(row)
        axes = {"xaxis": f"x{k}", "yaxis": f"y{k}"} if self._rows else {}
        self.data.append({"type": kind, **fields, **axes})
        return self

    def add_scatter(self, *, row: int = 1, **fields: Any) -> Figure:
        """Lines or markers."""
        return self.add_trace("scatter", row=row, **fields)

    def add_bar(self, **fields: Any) -> Figure:
        """Bars."""
        return self.add_trace("bar", **fields)

    def add_heatmap(self, **fields: Any) -> Figure:
        """A heat map."""
        return self.add_trace("heatmap", **fields)

    def add_shape(self, **fields: Any) -> Figure:
        """A shape."""
        self.layout.setdefault("shapes", []).append(fields)
        return self

    def add_annotation(self, **fields: Any) -> Figure:
        """Text in the picture."""
        self.layout.setdefault("annotations", []).append(fields)
        return self

    def add_vline(self, x: float, **fields: Any) -> Figure:
        """A line from the bottom to the top of the first axes."""
        ends = {"x0": x, "x1": x, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
        return self.add_shape(type="line", **ends, **fields)

    def add_hline(self, y: float, **fields: Any) -> Figure:
        """A line from the left to the right of the first axes."""
        ends = {"y0": y, "y1": y, "yref": "y", "x0": 0, "x1": 1, "xref": "x domain"}
        return self.add_shape(type="line", **ends, **fields)

    def update_layout(self, **fields: Any) -> Figure:
        """Changes the layout."""
        merge(self.layout, fields)
        return self

    def update_xaxes(self, *, row: int | None = None, **fields: Any) -> Figure:
        """Changes the x axis of ``row``, by default of all."""
        return self._update_axes("xaxis", row, fields)

    def update_yaxes(self, *, row: int | None = None, **fields: Any) -> Figure:
        """Changes the y axis of ``row``, by default of all."""
        return self._update_axes("yaxis", row, fields)

    def name_rows(
        self, names: Iterable[str], end: float | None = None, row: int | None = None
    ) -> Figure:
        """The y axis of ``row`` names its rows from above. ``end``: how far before the place of one
        more it ends; by default it is as long as what is drawn."""
        texts = list(names)
        fields: dict[str, Any] = {"tickvals": list(range(len(texts))), "ticktext": texts}
        fields |= (
            {"autorange": "reversed"} if end is None else {"range": [len(texts) - end, end - 1]}
        )
        return self.update_yaxes(row=row, **fields, showgrid=False)

    def _update_axes(self, axis: str, row: int | None, fields: dict[str, Any]) -> Figure:
        for row_number in range(1, max(self._rows, 1) + 1) if row is None else [row]:
            merge(self.layout.setdefault(f"{axis}{_number(row_number)}", {}), fields)
        return self

    def to_json(self) -> str:
        """JSON text for plotly.js, safe inside a script element.

        Arrays of floats are in base64, as Plotly writes them; elsewhere what is not finite is null.
        """
        whole = {"data": self.data, "layout": self.layout}
        try:
            text = _dumped(whole)
        except ValueError:
            text = _dumped(_finite(whole))
        for character, escape in _ESCAPES.items():
            text = text.replace(character, escape)
        return text


def merge(into: dict[str, Any], fields: Mapping[str, Any]) -> None:
    """Puts ``fields`` into ``into``, mappings into mappings; ``fields`` stay as they are."""
    for name, value in fields.items():
        if name.startswith(TITLE):
            name, value = "title", {name.removeprefix(TITLE): value}
        if isinstance(value, Mapping):
            into[name] = dict(into.get(name, {}))
            merge(into[name], value)
        else:
            into[name] = value


def error_bars(
    values: Sequence[float], ends: Iterable[Sequence[float]], **look: Any
) -> dict[str, Any]:
    """Error bars from each value to the two ends of its interval."""
    pairs = list(zip(values, ends, strict=True))
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(high - value, 0.0) for value, (_, high) in pairs],
        "arrayminus": [max(value - low, 0.0) for value, (low, _) in pairs],
        **look,
    }


def _number(row: int) -> str:
    """How plotly.js numbers axes: the first has no number."""
    return "" if row == 1 else str(row)


def _dumped(whole: Any) -> str:
    return json.dumps(
        whole, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_plain
    )


def _plain(value: Any) -> Any:
    if not isinstance(value, (np.ndarray, np.generic)):
        raise TypeError(f"{type(value).__name__} is unknown to plotly.js")
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        data = base64.b64encode(little.tobytes()).decode("ascii")
        shape = {"shape": ", ".join(map(str, value.shape))} if value.ndim > 1 else {}
        return {"dtype": f"f{value.dtype.itemsize}", "bdata": data, **shape}
    return value.tolist()


def _finite(value: Any) -> Any:
    """With None in place of floats that JSON has no words for."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# The part that draws lines, bars and heat maps, as its makers publish it (MIT license):
# `npm pack plotly.js-cartesian-dist-min@4.1.1`, plotly-cartesian.min.js, then `gzip -9n`.
# HASH is what a page's policy knows the unpacked script by (a test works it out).
FILE = Path(__file__).parent / "plotly-cartesian.min.js.gz"
HASH = "sha256-eVQhUIVaUsVnJg4xNwldvit0Tm1wKlyr5n2iRpQvuno="


def packed_plotly() -> bytes:
    """The script, by gzip; a browser unpacks it."""
    return FILE.read_bytes()
