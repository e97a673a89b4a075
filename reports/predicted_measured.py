"""The pictures of a validation: predicted and measured figures, and their differences.

Pure functions of rows, for any command that holds predictions against measurements.

A page that compares predictions with measurements: pictures, a summary, all rows.

It is made of plain rows and tables, for any command that validates.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..inputs import write_text_atomically
from ..inputs.quantities import size_text
from .charts import LEGEND, SOFT, polished
from .figure import Figure, error_bars
from .page import Plot, Plots
from .report import rendered
from .runs import COLOURS
from .words import label, plain, seconds, si, signed_percent

Interval = tuple[float, float]

# Filled: what was fitted to; open: what was not.
FITTED = ("fitted", "calibration")
SETS = ("", "-open", "-dot", "-open-dot")
# Once the colours begin again, another shape.
SHAPES = ("circle", "diamond", "square", "triangle-up", "star", "hexagram", "triangle-down")
BAND = 0.10
# A bar that reaches further is of no worth. From this logarithm of a ratio on, factors are shown.
RATIO_MAX, FACTORS_FROM = 1e6, 0.5
ROW_PX = 30
LABEL_MAX = 120


@dataclass(frozen=True)
class Row:
    """One figure, measured and predicted; values and intervals are in SI units.

    ``group``: what is alike (an operation, a kind of measurement), drawn in one colour; ``set``:
    what it was for (``fitted``, ``held out``; ``calibration``, ``test``), drawn with one symbol;
    ``unit``: ``s``, ``B/s``, ``/s``, ``1`` … ; ``size``: what residuals are drawn over, in bytes,
    None where the figure has none.
    """

    label: str
    group: str
    set: str
    unit: str
    measured: float
    predicted: float
    measured_interval: Interval | None = None
    predicted_interval: Interval | None = None
    size: float | None = None

    @property
    def ratio(self) -> float | None:
        """Predicted over measured; None where one of them is not above 0."""
        if self.measured > 0 and 0 < self.predicted < math.inf:
            return self.predicted / self.measured
        return None

    @property
    def ratio_interval(self) -> Interval | None:
        """Between which ratios the two intervals leave room: 1 lies within where they overlap."""
        low, high = self.measured_interval or (self.measured, self.measured)
        least, most = self.predicted_interval or (self.predicted, self.predicted)
        if low <= 0 or not math.isfinite(most):
            return None
        return max(least, 0.0) / high, most / low


def units(rows: Sequence[Row]) -> list[str]:
    """The units among the rows, in their order: each needs a picture of its own."""
    return list(dict.fromkeys(row.unit for row in rows))


def predicted_against_measured(rows: Sequence[Row]) -> Figure | None:
    """A point a row, of rows of one unit, with both intervals; on the diagonal they agree.

    Both axes are logarithmic, with the band of ±10% around the diagonal. None without a row of two
    positive values.
    """
    shown = [row for row in rows if row.measured > 0 and 0 < row.predicted < math.inf]
    if not shown:
        return None
    if len(units(shown)) > 1:
        raise ValueError("rows of several units have no axis in common")
    unit = shown[0].unit
    low, high = _ends(shown)
    figure = Figure()
    _add_band(figure, low, high)
    for name, ones, marker in _series(shown):
        _add_points(
            figure,
            name,
            ones,
            marker,
            "<br>measured %{customdata[1]}<br>predicted %{customdata[2]}<br>%{customdata[3]}",
            x=[row.measured for row in ones],
            y=[row.predicted for row in ones],
            error_x=_bars([row.measured for row in ones], [row.measured_interval for row in ones]),
            error_y=_bars(
                [row.predicted for row in ones], [row.predicted_interval for row in ones]
            ),
        )
    ticks: dict[str, Any] = {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "exponentformat": "SI",
    }
    ticks |= _ticks(unit, low, high)
    figure.update_xaxes(**ticks, title_text="measured", title_standoff=6)
    figure.update_yaxes(**ticks, title_text="predicted", title_standoff=6)
    return _finished(figure, 470, _top(figure))


def residuals_over_size(rows: Sequence[Row]) -> Figure | None:
    """The ratio of each row over its size; None where fewer than two sizes are known."""
    shown = [row for row in rows if row.size and row.ratio is not None]
    if len({row.size for row in shown}) < 2:
        return None
    figure = Figure()
    _add_one(figure, "h")
    for name, ones, marker in _series(shown):
        places: dict[str, Any] = {"x": [row.size for row in ones], "y": [row.ratio for row in ones]}
        _add_points(figure, name, ones, marker, error_y=_ratio_bars(ones), **places)
    powers = _binary_powers([row.size for row in shown if row.size])
    figure.update_xaxes(
        type="log",
        title_text="size of the data",
        title_standoff=6,
        tickvals=powers,
        ticktext=[size_text(power) for power in powers],
    )
    figure.update_yaxes(**_ratio_axis(shown))
    return _finished(figure, 380, _top(figure))


def residuals_by_group(rows: Sequence[Row]) -> Figure | None:
    """A line for each group with the ratio of each of its rows; None without a ratio."""
    shown = [row for row in rows if row.ratio is not None]
    if not shown:
        return None
    groups = list(dict.fromkeys(row.group for row in shown))
    sets = _sets(shown)
    figure = Figure()
    _add_one(figure, "v")
    for k, of_set in enumerate(sets):
        ones = [row for row in shown if row.set == of_set]
        marker = _marker(COLOURS[k % len(COLOURS)], SHAPES[0] + SETS[k % len(SETS)])
        # Sets beside each other, so that none hides another.
        lines = [groups.index(row.group) + 0.24 * (k - (len(sets) - 1) / 2) for row in ones]
        ratios = [row.ratio for row in ones]
        error = _ratio_bars(ones)
        _add_points(figure, label(of_set, 40), ones, marker, x=ratios, y=lines, error_x=error)
    figure.name_rows((label(group, 34) for group in groups), 0.4)
    figure.update_xaxes(**_ratio_axis(shown))
    return _finished(figure, 130 + ROW_PX * len(groups), {"t": 52})


def _finished(figure: Figure, height: int, margin: Mapping[str, int]) -> Figure:
    options = {"legend": LEGEND, "showlegend": True, "hovermode": "closest", "margin": margin}
    return polished(figure, height, **options)


def _add_points(
    figure: Figure,
    name: str,
    rows: Sequence[Row],
    marker: Mapping[str, Any],
    text: str = ": %{customdata[3]}",
    **places: Any,
) -> None:
    """``text``: what a point says behind the row's label, of ``_hover_texts``."""
    figure.add_scatter(
        **places,
        name=name,
        mode="markers",
        marker=marker,
        customdata=[_hover_texts(row) for row in rows],
        hovertemplate=f"%{{customdata[0]}}{text}<extra>%{{fullData.name}}</extra>",
    )


def _series(rows: Sequence[Row]) -> list[tuple[str, list[Row], Mapping[str, Any]]]:
    """(name, rows, marker): colours and shapes tell the groups, filled and open the sets."""
    groups = list(dict.fromkeys(row.group for row in rows))
    sets = _sets(rows)
    found: list[tuple[str, list[Row], Mapping[str, Any]]] = []
    for k, group in enumerate(groups):
        for s, of_set in enumerate(sets):
            ones = [row for row in rows if row.group == group and row.set == of_set]
            if ones:
                shape = SHAPES[k // len(COLOURS) % len(SHAPES)]
                symbol = shape + SETS[s % len(SETS)]
                name = f"{label(group, 40)}, {label(of_set, 24)}"
                found.append((name, ones, _marker(COLOURS[k % len(COLOURS)], symbol)))
    return found


def _sets(rows: Sequence[Row]) -> list[str]:
    """The sets, those that were fitted to first."""
    sets = list(dict.fromkeys(row.set for row in rows))
    return sorted(sets, key=lambda of_set: of_set not in FITTED)


def _marker(colour: str, symbol: str) -> dict[str, Any]:
    return {"color": colour, "symbol": symbol, "size": 8, "line": {"width": 1.6, "color": colour}}


def _bars(values: Sequence[float], intervals: Sequence[Interval | None]) -> dict[str, Any]:
    """Error bars from each value to the bounds of its interval."""
    bounds = [interval or (value, value) for value, interval in zip(values, intervals, strict=True)]
    return error_bars(
        values, [(max(low, 0.0), high) for low, high in bounds], thickness=1.2, width=2
    )


def _ratio_bars(rows: Sequence[Row]) -> dict[str, Any]:
    """Error bars of ratios; one that reaches 0 has no end on a logarithmic axis, and is cut."""
    ratios = [row.ratio or 1.0 for row in rows]
    bounds = [row.ratio_interval or (ratio, ratio) for row, ratio in zip(rows, ratios, strict=True)]
    ends = [
        (max(low, ratio / RATIO_MAX), min(high, ratio * RATIO_MAX))
        for (low, high), ratio in zip(bounds, ratios, strict=True)
    ]
    return _bars(ratios, ends)


def _ratio_axis(rows: Sequence[Row]) -> dict[str, Any]:
    """A logarithmic axis around 1, on which half and twice are as far away, that holds every ratio;
    an interval of little worth may leave it. Near 1 it tells errors, else factors.
    """
    most = max(abs(math.log(row.ratio)) for row in rows if row.ratio)
    ends = [end for row in rows for end in row.ratio_interval or () if end > 0]
    bounds = max((abs(math.log(end)) for end in ends), default=0.0)
    reach = 1.15 * max(most, min(bounds, 2.0 * most), 0.02)
    ticks = _error_ticks(reach) if reach < FACTORS_FROM else _factor_ticks(reach)
    return {
        "type": "log",
        "range": [-reach / math.log(10), reach / math.log(10)],
        "tickvals": list(ticks),
        "ticktext": list(ticks.values()),
        "title_text": "predicted over measured" + (" − 1" if reach < FACTORS_FROM else ""),
    }


def _error_ticks(reach: float) -> dict[float, str]:
    """Ratios by their error, in round steps, within exp(±reach)."""
    wanted = 2.0 * math.sinh(reach) / 8
    step = next((step for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if step >= wanted), 0.2)
    digits = 1 if step < 0.01 else 0
    count = int(math.expm1(reach) / step)
    errors = [k * step for k in range(-count, count + 1) if math.log1p(k * step) > -reach]
    return {1.0 + error: f"{100 * error:+.{digits}f}%" if error else "0" for error in errors}


def _factor_ticks(reach: float) -> dict[float, str]:
    """Ratios as factors, within exp(±reach): ×2 and ÷2 are as far from 1."""
    steps: tuple[float, ...] = (1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
    steps = steps if reach < math.log(12) else (2.0, 5.0, 10.0)
    if reach > math.log(1e3):
        steps = (10.0,)
    factors = [
        step * 10.0**power
        for power in range(math.ceil(reach / math.log(10)))
        for step in steps
        if math.log(step * 10.0**power) <= reach
    ]
    below = {1.0 / factor: f"÷{factor:g}" for factor in reversed(factors)}
    return {**below, 1.0: "1", **{factor: f"×{factor:g}" for factor in factors}}


def _hover_texts(row: Row) -> list[str]:
    ratio = row.ratio
    return [
        label(row.label, LABEL_MAX),
        _with_interval(row.measured, row.measured_interval, row.unit),
        _with_interval(row.predicted, row.predicted_interval, row.unit),
        "–" if ratio is None else signed_percent(ratio - 1.0),
    ]


def _with_interval(value: float, interval: Interval | None, unit: str) -> str:
    text = in_unit(value, unit)
    if interval is None or interval[0] == interval[1]:
        return text
    return f"{text} ({in_unit(interval[0], unit)} to {in_unit(interval[1], unit)})"


def in_unit(value: float, unit: str) -> str:
    """``129 ns``, ``26.7 GB/s``, ``4.5 M/s``, ``0.93``."""
    if unit == "s":
        return seconds(value)
    if unit in ("1", ""):
        return plain(value)
    return f"{si(value, '')}/s" if unit == "/s" else si(value, label(unit, 24))


def _ends(rows: Sequence[Row]) -> Interval:
    """A little more than the range of all values, and at least a factor of 1.5 wide."""
    values = [value for row in rows for value in (row.measured, row.predicted)]
    low, high = min(values), max(values)
    room = max((high / low) ** 0.06, 1.12)
    if high / low < 1.5:
        room = max(room, math.sqrt(1.5 * low / high) * 1.12)
    return low / room, high * room


def _ticks(unit: str, low: float, high: float) -> dict[str, Any]:
    """1, 2 and 5 of each power of ten, with their unit; powers alone over many decades."""
    steps: tuple[float, ...] = (1.0, 2.0, 5.0) if high / low < 1e4 else (1.0,)
    if high / low < 5:
        steps = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [step * 10.0**power for power in powers for step in steps]
    inside = [value for value in values if low <= value <= high]
    return {"tickvals": inside, "ticktext": [in_unit(value, unit) for value in inside]}


def _binary_powers(sizes: Sequence[float]) -> list[float]:
    """Powers of two around the sizes, at most some ten."""
    first = math.floor(math.log2(min(sizes)))
    last = math.ceil(math.log2(max(sizes)))
    step = max(1, math.ceil((last - first) / 10))
    return [2.0**power for power in range(first, last + 1, step)]


def _add_band(figure: Figure, low: float, high: float) -> None:
    """The diagonal, and ±10% around it."""
    ends = [low, high]
    figure.add_scatter(
        x=[*ends, *reversed(ends)],
        y=[(1 - BAND) * low, (1 - BAND) * high, (1 + BAND) * high, (1 + BAND) * low],
        fill="toself",
        fillcolor="rgba(91,104,117,0.10)",
        line={"width": 0},
        mode="lines",
        name=f"±{BAND:.0%}",
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=ends,
        y=ends,
        mode="lines",
        line={"color": SOFT, "width": 1, "dash": "dot"},
        showlegend=False,
        hoverinfo="skip",
    )


def _add_one(figure: Figure, direction: str) -> None:
    line = {"color": SOFT, "width": 1, "dash": "dot"}
    if direction == "h":
        figure.add_hline(1.0, line=line)
    else:
        figure.add_vline(1.0, line=line)


def _top(figure: Figure) -> dict[str, int]:
    """Room for the legend: some four names stand beside each other."""
    names = sum(trace.get("showlegend") is not False for trace in figure.data)
    return {"t": 40 + 20 * math.ceil(names / 4)}


AGAINST = "Predicted against measured, each with its interval; in the band: within 10%"
OVER_SIZE = "Predicted over measured, by the size of the data"
BY_GROUP = "Predicted over measured, by what was run; bars reach as far as both intervals allow"
OF_UNIT = {"/s": "rates", "B/s": "bandwidths", "s": "times", "1": "shares"}


@dataclass(frozen=True)
class Cell:
    """A cell of a table; ``bad`` ones are seen from afar."""

    text: str
    note: str = ""
    bad: bool = False


@dataclass(frozen=True)
class Table:
    """A table with its title; the first ``texts`` columns are text, the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    texts: int = 1
    note: str = ""


@dataclass(frozen=True)
class Validation:
    """What a page of a validation says.

    ``path``: the line above the title; ``answer``: the paragraph below; ``summaries``, ``tables``:
    before and behind the pictures, which are made of ``rows``; ``doubts``: what to distrust;
    ``facts``: names and values.
    """

    title: str
    path: str
    answer: str
    version: str
    rows: Sequence[Row]
    summaries: Sequence[Table] = ()
    tables: Sequence[Table] = ()
    doubts: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    figures_by_set: bool = False
    """Whether each set of rows has pictures of its own."""


@dataclass(frozen=True)
class _Chapter:
    """The pictures of rows of one unit."""

    title: str
    against: Plot | None
    over_size: Plot | None
    by_group: Plot | None


def write_validation(validation: Validation, path: str | Path) -> Path:
    """Writes the page to ``path``, whole or not at all; raises InputError."""
    return write_text_atomically(path, validation_html(validation))


def validation_html(validation: Validation) -> str:
    """The page as text."""
    return rendered(
        "validation.html", page=validation, chapters=list(_chapters(Plots(), validation))
    )


def _chapters(plots: Plots, validation: Validation) -> Iterator[_Chapter]:
    rows = validation.rows
    sets = dict.fromkeys(row.set for row in rows) if validation.figures_by_set else [None]
    for of_set in sets:
        chosen = [row for row in rows if of_set in (None, row.set)]
        for unit in units(chosen):
            title = f"predicted and measured {OF_UNIT.get(unit, 'figures')}"
            title = title.capitalize() if of_set is None else f"{of_set.capitalize()} set: {title}"
            yield _chapter(plots, title, [row for row in chosen if row.unit == unit])


def _chapter(plots: Plots, title: str, rows: Sequence[Row]) -> _Chapter:
    return _Chapter(
        title,
        plots.plot(predicted_against_measured(rows), AGAINST),
        plots.plot(residuals_over_size(rows), OVER_SIZE),
        plots.plot(residuals_by_group(rows), BY_GROUP),
    )
