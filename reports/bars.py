"""Bar charts of the bottleneck: gains from more of each resource, an operation's time by part."""

from collections.abc import Mapping, Sequence

from ..sim.planes.outcome import Why
from ..sim.run.record import Record, part_at
from ..sim.run.recovery import Recovery
from .charts import INK, LEGEND, polished
from .figure import Figure, error_bars
from .runs import COLOURS, Run
from .words import label, label_of_row, percent, seconds, si, signed_percent

Found = Mapping[str, Sequence[Recovery]]  # by a run's label

GAINS_MAX = 10
GAIN_MIN = 0.0005  # less than +0.05% for 10% more of a resource is nothing
PARTS = (*COLOURS[:6], "#8c6d31", "#7f7f7f", "#b4bec8")


def gains(why: Why) -> Figure | None:
    """A bar for each resource of which 10% more would help; None where none would."""
    shown = [gain for gain in why.gains if gain.gain_per_10pct >= GAIN_MIN][:GAINS_MAX]
    if not shown:
        return None
    values = [gain.gain_per_10pct for gain in shown]
    rows = list(range(len(shown)))
    figure = Figure().add_bar(
        x=values,
        y=rows,
        orientation="h",
        width=0.62,
        marker={"color": [COLOURS[0]] + ["#8fb8d6"] * (len(shown) - 1)},
        text=[signed_percent(value) for value in values],
        textposition="outside",
        textfont={"color": INK},
        cliponaxis=False,
        customdata=[label(gain.resource, 120) for gain in shown],
        hovertemplate="10% more %{customdata}: +%{x:.2%} throughput<extra></extra>",
    )
    figure.name_rows(label_of_row(gain.resource, 34) for gain in shown)
    # Throughput grows at most as much as all resources do together.
    figure.update_xaxes(range=[0, max(0.105, 1.15 * max(values))], tickformat=".0%", nticks=6)
    return polished(figure, 58 + 32 * len(shown), margin={"t": 6, "b": 34}, showlegend=False)


def rates(runs: Sequence[Run], operation: str) -> Figure | None:
    """A bar of throughput for each run, a whisker over its interval; None where none has one."""
    values = [run.record.throughput.get(operation, 0.0) for run in runs]
    bounds = [_interval(run.record, operation) for run in runs]
    if not any(bounds):
        return None
    ends = [found or [value, value] for found, value in zip(bounds, values, strict=True)]
    pairs = list(zip(ends, values, strict=True))
    rows = list(range(len(runs)))
    figure = Figure().add_bar(
        x=values,
        y=rows,
        orientation="h",
        width=0.5,
        marker={"color": [run.colour for run in runs], "opacity": 0.75},
        error_x=error_bars(values, ends, color=INK, thickness=1.4, width=6),
        customdata=[
            [label(run.label, 60), f"{si(value, '')}/s, {si(low, '')}/s to {si(high, '')}/s"]
            for run, ((low, high), value) in zip(runs, pairs, strict=True)
        ],
        hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
    )
    figure.name_rows(label_of_row(run.label, 24) for run in runs)
    most = 1.05 * max(*values, *(high for (_, high), _ in pairs))
    figure.update_xaxes(range=[0, most], tickformat="~s", ticksuffix="/s", nticks=6)
    height = 58 + 38 * len(runs)
    return polished(figure, height, margin={"t": 6, "b": 34}, showlegend=False)


def _interval(record: Record, operation: str) -> list[float] | None:
    """Of all that throughput leans on, where that was drawn, else of its replications."""
    path = ("throughput", operation)
    likely: list[float] | None = part_at(record.uncertainty, path)
    return likely or record.interval(*path)


def parts_of_time(why: Mapping[str, Why]) -> Figure | None:
    """Each operation's time on its core as one bar of its parts; None where none has several."""
    operations = [name for name, one in why.items() if sum(one.demands.values()) > 0]
    if all(len(why[name].demands) < 2 for name in operations):
        return None
    parts = list(dict.fromkeys(part for name in operations for part in why[name].demands))
    figure = Figure()
    rows = list(range(len(operations)))
    for k, part in enumerate(parts):
        values = [why[name].demands.get(part, 0.0) * 1e-9 for name in operations]
        totals = [sum(why[name].demands.values()) * 1e-9 for name in operations]
        figure.add_bar(
            x=values,
            y=rows,
            name=label(part, 40),
            orientation="h",
            width=0.5,
            marker={"color": PARTS[k % len(PARTS)], "line": {"color": "white", "width": 1}},
            customdata=[
                [label(operations[row], 60), seconds(value), percent(value / total)]
                for row, (value, total) in enumerate(zip(values, totals, strict=True))
            ],
            hovertemplate="%{customdata[0]}: %{customdata[1]} (%{customdata[2]})"
            "<extra>%{fullData.name}</extra>",
        )
    figure.name_rows(label(name, 24) for name in operations)
    figure.update_xaxes(
        title_text="time of one operation",
        title_standoff=6,
        tickformat="~s",
        ticksuffix="s",
        nticks=8,
    )
    return polished(
        figure,
        150 + 46 * len(operations),
        barmode="stack",
        legend=LEGEND,
        margin={"t": 64},
        showlegend=True,
    )


def depths(runs: Sequence[Run], found: Found) -> Figure | None:
    """How deep throughput falls after each change, a bar for each run; None without changes."""
    figure = Figure()
    for run, ones in _with_changes(runs, found):
        figure.add_bar(
            x=[f"{one.change_s:.4g} s" for one in ones],
            y=[one.depth for one in ones],
            name=label(run.label, 60),
            marker={"color": run.colour},
            customdata=[percent(one.depth) for one in ones],
            hovertemplate="%{customdata} below the level<extra>%{fullData.name}</extra>",
        )
    figure.update_yaxes(tickformat=".0%", range=[0, 1], title_text="below the level")
    return _per_change(figure)


def recovery_times(runs: Sequence[Run], found: Found) -> Figure | None:
    """How long until throughput is back; a hatched bar to the next change where it is not."""
    figure = Figure()
    for run, ones in _with_changes(runs, found):
        never = [one.recovery_s is None for one in ones]
        figure.add_bar(
            x=[f"{one.change_s:.4g} s" for one in ones],
            y=[one.lasts_s for one in ones],
            name=label(run.label, 60),
            marker={
                "color": run.colour,
                "opacity": [0.5 if missed else 1.0 for missed in never],
                "pattern": {"shape": ["/" if missed else "" for missed in never]},
            },
            customdata=[
                f"back after {seconds(one.lasts_s)}"
                if not missed
                else f"not back before the next change, {seconds(one.lasts_s)} later"
                if one.settled and one is not ones[-1]
                else f"not back by the end, {seconds(one.lasts_s)} later"
                if one.settled
                else f"not recovered by the end, {seconds(one.lasts_s)} later: still changing"
                for one, missed in zip(ones, never, strict=True)
            ],
            hovertemplate="%{customdata}<extra>%{fullData.name}</extra>",
        )
    figure.update_yaxes(title_text="time, s", rangemode="tozero")
    return _per_change(figure)


def _with_changes(runs: Sequence[Run], found: Found) -> list[tuple[Run, Sequence[Recovery]]]:
    return [(run, found[run.label]) for run in runs if found.get(run.label)]


def _per_change(figure: Figure) -> Figure | None:
    if not figure.data:
        return None
    figure.update_xaxes(type="category", title_text="change at", title_standoff=6, showgrid=False)
    return polished(figure, 330, barmode="group", legend=LEGEND, margin={"t": 52}, showlegend=True)
