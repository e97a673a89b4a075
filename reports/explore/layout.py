"""The parts of the page: headings, controls, results. Texts are children, never markup."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dash import dcc, html

from ...inputs.grouping import by_key
from ...sim.machine.assumptions import split_quantity
from ...sim.planes.outcome import Why
from ...sim.run.limit import together
from ...sim.run.scenario import Scenario
from ...sim.studies.influences import Field
from ...sim.studies.levels import written
from ..words import nanoseconds, percent, plural, shortened, si, signed_percent
from .explorer import Choice, Moment

SHOWN = 8
OCTAVES, STEP = 2.0, 0.05  # sliders go from a quarter of a value to four times as much
LIVE_PREDICTION_MAX_S = 0.1  # what takes longer to predict is predicted once the slider rests
LABEL_MAX = 60


def text_of(field: Field) -> str:
    """The field's value as its control has it."""
    return field.value if isinstance(field.value, str) else _number(field.value, field)


def _number(value: float, field: Field) -> str:
    number = max(1, round(value)) if field.whole else float(f"{value:.6g}")
    return written(number, field.unit)


def page(scenario: Scenario, name: str, menus: Mapping[str, Sequence[str]]) -> html.Main:
    """The page before its first prediction."""
    chosen = {"machine": scenario.machine.name, "workload": scenario.workload.name}
    chosen |= scenario.policy_names
    return html.Main(
        [
            html.Header(
                [
                    html.P(name, className="path"),
                    html.H1(scenario.title or scenario.name),
                    html.P(id="answer", role="status", className="answer"),
                    html.P(id="failure", role="alert"),
                ]
            ),
            _card(
                "What if",
                "controls",
                html.H2("What if"),
                html.Div([_menu(kind, names, chosen) for kind, names in menus.items()]),
                _note(
                    "The fields that change throughput most, each tried at half and double its "
                    "value, and by up to what factor:"
                ),
                html.Div(id="fields"),
                html.Label("One more field", htmlFor="more"),
                dcc.Dropdown(id="more", options=[], placeholder="its name …"),
                _buttons(
                    html.Button("Pin this variant", id="pin"),
                    html.Button("As it was given", id="reset", className="quiet"),
                ),
            ),
            _card(
                "Machine",
                "machine",
                html.Div(id="picture", className="picture"),
                html.P("use of links and nodes: none to all", className="note scale"),
            ),
            _card(
                "Prediction",
                "results",
                html.Div(
                    [
                        html.Div([html.H2("Gain per 10% more"), html.Div(id="gains")]),
                        html.Div([html.H2("Busiest"), html.Div(id="busiest")]),
                    ],
                    className="columns",
                ),
                html.H2("Pinned"),
                html.Div(id="pinned", className="scroll"),
                html.H2("Take it along"),
                _buttons(
                    html.Button("Scenario file", id="take-scenario"),
                    html.Button("Report of all pinned", id="take-report"),
                ),
                html.Pre(id="command"),
                _note(
                    "Flow plane, first millisecond, data where they are laid out at first; the "
                    "report and the command run the whole scenario."
                ),
            ),
            *(dcc.Store(id=one, data=None) for one in ("choice", "svg", "done", "wanted", "pins")),
            dcc.Download(id="download"),
        ]
    )


def _card(name: str, kind: str, *parts: Any) -> html.Section:
    return html.Section([*parts], className=f"card {kind}", **{"aria-label": name})


def _buttons(*buttons: html.Button) -> html.Div:
    return html.Div([*buttons], className="buttons")


def _note(text: str) -> html.P:
    return html.P(text, className="note")


def _menu(kind: str, names: Sequence[str], chosen: Mapping[str, str]) -> html.Div:
    now = chosen.get(kind)
    options = list(dict.fromkeys([*([now] if now else []), *names]))
    key = {"kind": "menu", "name": kind}
    menu = dcc.Dropdown(id=key, options=options, value=now, clearable=False)
    return _group(kind, [html.Label(kind), menu])


def _group(name: str, parts: list[Any], kind: str = "") -> html.Div:
    """A field's label and controls; a screen reader tells ``name`` of each of them."""
    return html.Div(parts, className=f"field {kind}", role="group", **{"aria-label": name})


def controls(
    fields: Sequence[Field], shown: Sequence[str], texts: Mapping[str, str], quick: bool
) -> list[html.Div]:
    """A control for each field of ``shown``: with its text of ``texts``, or as it was given."""
    by_path = {field.path: field for field in fields}
    return [
        _control(k, by_path[path], texts.get(path), quick)
        for k, path in enumerate(path for path in shown if path in by_path)
    ]


def _control(k: int, field: Field, text: str | None, quick: bool) -> html.Div:
    own = text_of(field)
    effect = "not tried" if field.effect is None else f"×{1.0 + field.effect:.3g}"
    label = html.Label([field.path.replace(".", " · "), html.Small(effect)], title=field.path)
    key = {"kind": "text", "k": k}
    data: dict[str, Any] = {"path": field.path, "own": own}
    if field.choices:
        menu = dcc.Dropdown(id=key, options=list(field.choices), value=text or own, clearable=False)
        return _group(field.path, [label, menu, _store(k, data)])
    assert not isinstance(field.value, str)
    data |= {"value": field.value, "unit": field.unit, "whole": field.whole}
    number, unit = split_quantity(text or own)
    at = 0.0
    if unit == field.unit and not isinstance(number, str) and number > 0:
        at = min(max(math.log2(number / field.value), -OCTAVES), OCTAVES)
    ends = {
        x: {"label": _number(field.value * 2.0**x, field)} for x in (-int(OCTAVES), int(OCTAVES))
    }
    slider = dcc.Slider(
        id={"kind": "slider", "k": k},
        min=-OCTAVES,
        max=OCTAVES,
        step=STEP,
        value=at,
        marks=ends,
        included=False,
        updatemode="drag" if quick else "mouseup",
        allow_direct_input=False,
    )
    box = dcc.Input(id=key, value=text or own, type="text", debounce=True, autoComplete="off")
    return _group(field.path, [label, box, slider, _store(k, data)], "number")


def _store(k: int, data: Mapping[str, Any]) -> dcc.Store:
    return dcc.Store(id={"kind": "field", "k": k}, data=dict(data))


def answer(moment: Moment, first: Moment) -> list[Any]:
    """The prediction in a line, against the scenario as it was given."""
    parts: list[Any] = []
    for name, rate in moment.throughput.items():
        parts += [html.Strong(si(rate, f"{plural(name)}/s")), " "]
        if name in moment.latency_ns:
            parts += [f"({nanoseconds(moment.latency_ns[name])} on average) "]
    if moment.total != first.total and first.total > 0:
        parts.append(f"{signed_percent(moment.total / first.total - 1.0)} against the scenario")
    if moment.power_W is not None:
        parts.append(f" · {si(moment.power_W, 'W')}")
    return parts


def busiest(moment: Moment) -> html.Table:
    """The busiest resource of each kind, in the order of their use."""
    rows = []
    for uses in by_key((use.kind, use) for use in moment.busiest).values():
        mean = sum(use.utilisation for use in uses) / len(uses)
        others = html.Small(f"mean of {len(uses)}: {percent(mean)}" if len(uses) > 1 else "")
        bar = _bar(min(uses[0].utilisation, 1.0), percent(uses[0].utilisation), "use")
        rows.append(html.Tr([html.Th([shortened(uses[0].name, LABEL_MAX), others]), html.Td(bar)]))
    return html.Table(html.Tbody(rows))


def _bar(part: float, text: str, kind: str) -> html.Div:
    style = {"width": f"{100 * max(part, 0.0):.1f}%"}
    return html.Div([html.Span(style=style), html.B(text)], className=f"bar {kind}")


def gains(why: Mapping[str, Why]) -> list[Any]:
    """What binds, and what more of each resource would bring, as bars."""
    found: list[Any] = []
    for names, one in together(why):
        helpful = [gain for gain in one.gains if gain.gain_per_10pct >= 5e-4]
        found.append(
            html.P(
                [f"{', '.join(map(plural, names))}: ", html.Strong(one.resource, className="binds")]
            )
        )
        rows = [
            html.Tr(
                [
                    html.Th(shortened(gain.resource, LABEL_MAX)),
                    html.Td(
                        _bar(gain.gain_per_10pct / 0.1, signed_percent(gain.gain_per_10pct), "gain")
                    ),
                ]
            )
            for gain in helpful
        ]
        nothing = _note("10% more of any one resource brings next to nothing.")
        found.append(html.Table(html.Tbody(rows)) if rows else nothing)
    return found or [_note("Nothing runs.")]


def pinned(rows: Sequence[tuple[Choice, Moment]], names: Sequence[str]) -> html.Table:
    """The pinned variants, each against the first."""
    first = rows[0][1].total if rows else 0.0
    body = []
    for k, ((_, moment), name) in enumerate(zip(rows, names, strict=True)):
        change = "" if k == 0 or not first else signed_percent(moment.total / first - 1.0)
        rates = ", ".join(si(rate, f"{plural(n)}/s") for n, rate in moment.throughput.items())
        busy = moment.busiest[0] if moment.busiest else None
        use = f"{busy.name} {percent(busy.utilisation)}" if busy else ""
        buttons = [html.Button("Return", id={"kind": "return", "k": k}, className="quiet")]
        if k:
            buttons.append(html.Button("Remove", id={"kind": "remove", "k": k}, className="quiet"))
        cells = [html.Th(name), html.Td(rates), html.Td(change), html.Td(use), html.Td(buttons)]
        body.append(html.Tr(cells))
    head = html.Tr([html.Th(x) for x in ("variant", "throughput", "change", "busiest", "")])
    return html.Table([html.Thead(head), html.Tbody(body)])
