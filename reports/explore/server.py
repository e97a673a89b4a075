"""Serves the page on this computer only: on 127.0.0.1, at a secret path."""

from __future__ import annotations

import gc
import logging
import secrets
import threading
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import dash
from dash import ALL, MATCH, ClientsideFunction, Input, Output, State, ctx, dcc, no_update
from dash.exceptions import PreventUpdate
from flask import Response, abort, request
from werkzeug.serving import make_server

from ...inputs import InputError
from ..words import shortened
from . import layout
from .explorer import Choice, Explorer, Moment

LOOPBACK = "127.0.0.1"
PINS_MAX = 24
NAME_MAX = 90


class ExploreServer:
    """A server of the page of ``explorer``, on ``port`` or, where it is 0, any free one.

    Raises InputError where the port cannot be had.
    """

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        self._token = secrets.token_urlsafe(18)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # not a line for each move
        app = explore_app(explorer, f"/{self._token}/")
        try:
            with redirect_stderr(StringIO()):
                self._server = make_server(LOOPBACK, port, app.server, threaded=True)
        except (OSError, SystemExit):  # werkzeug prints and exits where a port is in use
            raise InputError(
                "cannot listen", token=f"port {port}", expected="a free port, or 0 for any"
            ) from None
        self.port: int = self._server.server_port
        _guard(app, {f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"})

    @property
    def address(self) -> str:
        """Where the page is; who knows it may use it."""
        return f"http://{LOOPBACK}:{self.port}/{self._token}/"

    def serve(self) -> None:
        """Answers until it is interrupted."""
        gc.collect()
        gc.freeze()  # to look for garbage in all that is loaded takes 0.1 s in the middle of a move
        self._server.serve_forever()

    def close(self) -> None:
        """Ends ``serve``, which another thread may be in."""
        self._server.shutdown()


def _guard(app: dash.Dash, hosts: set[str]) -> None:
    """Refuses what other sites ask for; lets the page load nothing from elsewhere."""
    scripts = " ".join(f"'{one}'" if "'" not in one else one for one in app.csp_hashes())
    policy = (
        f"default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )

    def refuse_other_hosts() -> None:
        if request.host not in hosts:  # a name that somebody else has lead here
            abort(403)

    def add_headers(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return response

    app.server.before_request(refuse_other_hosts)
    app.server.after_request(add_headers)


def explore_app(explorer: Explorer, prefix: str) -> dash.Dash:
    """The page as a Dash application below ``prefix``."""
    app = dash.Dash(
        "numatwin-explore",
        assets_folder=str(Path(__file__).parent / "assets"),
        routes_pathname_prefix=prefix,
        requests_pathname_prefix=prefix,
        title=f"{explorer.scenario.name} – numatwin",
        update_title="",
        serve_locally=True,
        suppress_callback_exceptions=True,
    )
    app.layout = layout.page(explorer.scenario, explorer.name, explorer.menus())
    _Callbacks(explorer).register(app)
    return app


class _Callbacks:
    """What the page asks of the server."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self._first = explorer.moment(Choice())
        self._quick = self._first.predicted_s < layout.LIVE_PREDICTION_MAX_S
        self._own = {"machine": explorer.scenario.machine.name}
        self._own |= {"workload": explorer.scenario.workload.name, **explorer.scenario.policy_names}
        self._turn = threading.Lock()
        self._latest: dict[str, float] = {}

    def register(self, app: dash.Dash) -> None:
        """Adds them, and those that the browser answers by itself (``assets/explore.js``)."""
        failure = Output("failure", "children", allow_duplicate=True)
        texts, slider = Input({"kind": "text", "k": ALL}, "value"), {"kind": "slider", "k": MATCH}
        text, menus = {"kind": "text", "k": MATCH}, {"kind": "menu", "name": ALL}
        app.clientside_callback(
            ClientsideFunction("explore", "link"),
            [Output(slider, "value"), Output(text, "value")],
            [Input(slider, "value"), Input(text, "value")],
            [State({"kind": "field", "k": MATCH}, "data")],
            prevent_initial_call=True,
        )
        app.clientside_callback(
            ClientsideFunction("explore", "choose"),
            Output("choice", "data"),
            [texts, Input(menus, "value")],
            [State({"kind": "field", "k": ALL}, "data"), State(menus, "id")],
        )
        app.clientside_callback(
            ClientsideFunction("explore", "draw"), Output("picture", "title"), Input("svg", "data")
        )
        app.callback(
            [Output("fields", "children"), Output("more", "options"), Output("more", "value")],
            [Output(menus, "value"), failure],
            [Input("more", "value"), Input("wanted", "data"), Input(menus, "value")],
            [State("choice", "data"), State(menus, "id")],
            prevent_initial_call="initial_duplicate",
        )(self.show_fields)
        app.callback(
            [Output("answer", "children"), Output("failure", "children"), Output("svg", "data")],
            [Output("busiest", "children"), Output("command", "children"), Output("done", "data")],
            Input("choice", "data"),
        )(self.predict)
        app.callback(Output("gains", "children"), Input("done", "data"))(self.explain)
        app.callback(
            [Output("pins", "data"), Output("pinned", "children"), Output("wanted", "data")],
            [Input("pin", "n_clicks"), Input("reset", "n_clicks")],
            [Input({"kind": one, "k": ALL}, "n_clicks") for one in ("return", "remove")],
            [State("choice", "data"), State("pins", "data")],
        )(self.pin)
        app.callback(
            [Output("download", "data"), failure],
            [Input("take-scenario", "n_clicks"), Input("take-report", "n_clicks")],
            [State("choice", "data"), State("pins", "data")],
            prevent_initial_call=True,
        )(self.take)

    def show_fields(
        self,
        more: str | None,
        wanted: Mapping[str, Any] | None,
        menus: Sequence[str | None],
        choice: Mapping[str, Any] | None,
        menu_ids: Sequence[Mapping[str, str]],
    ) -> tuple[Any, ...]:
        """Controls of the fields of the largest effect, of those asked for, and of what is set."""
        kinds = [one["name"] for one in menu_ids]
        names = dict(zip(kinds, menus, strict=True))
        source = choice
        if ctx.triggered_id == "wanted" and wanted is not None:
            names, source = names | self._own | wanted["menus"], wanted
        texts: Mapping[str, str] = (source or {}).get("settings", {})
        try:
            fields = self.explorer.fields(replace(self._choice({"menus": names}), policies=()))
        except InputError as failure:
            return no_update, no_update, None, [no_update] * len(kinds), str(failure)
        shown = [field.path for field in fields[: layout.SHOWN] if field.effect != 0.0]
        shown += [path for path in [*texts, more] if path and path not in shown]
        options = [field.path for field in fields if field.path not in shown]
        children = layout.controls(fields, shown, texts, self._quick)
        return children, options, None, [names[kind] for kind in kinds], ""

    def predict(self, choice: Mapping[str, Any] | None) -> tuple[Any, ...]:
        """The first moment of what is chosen, unless the page has asked for another since."""
        page, number = (choice or {}).get("page", ""), (choice or {}).get("number", 0.0)
        self._latest[page] = max(number, self._latest.get(page, 0.0))
        with self._turn:
            if number < self._latest[page]:
                raise PreventUpdate
            try:
                chosen = self._choice(choice)
                moment = self.explorer.moment(chosen)
                command = self.explorer.command(chosen)
            except InputError as failure:
                return (no_update, str(failure), *[no_update] * 4)
        drawn = moment.picture or ""
        return (
            layout.answer(moment, self._first),
            "",
            drawn,
            layout.busiest(moment),
            command,
            choice,
        )

    def explain(self, choice: Mapping[str, Any] | None) -> list[Any]:
        """What binds, of what was predicted last."""
        page, number = (choice or {}).get("page", ""), (choice or {}).get("number", 0.0)
        with self._turn:
            if number < self._latest.get(page, 0.0):
                raise PreventUpdate
            try:
                return layout.gains(self.explorer.why(self._choice(choice)))
            except InputError as failure:
                return [str(failure)]

    def pin(
        self,
        pinned: int | None,
        reset: int | None,
        returned: Sequence[int | None],
        removed: Sequence[int | None],
        choice: Mapping[str, Any] | None,
        pins: Sequence[Mapping[str, Any]] | None,
    ) -> tuple[Any, ...]:
        """The pinned variants after a button; the first is the scenario as it was given."""
        given: dict[str, Any] = {"settings": {}, "menus": {}}
        kept: list[Mapping[str, Any]] = list(pins or [given])
        wanted: Any = no_update
        cause = ctx.triggered_id
        if cause == "pin" and choice is not None and len(kept) < PINS_MAX:
            kept.append({key: choice[key] for key in given})
        elif cause == "reset":
            wanted = given
        elif isinstance(cause, dict) and ctx.triggered[0]["value"]:
            if cause["kind"] == "remove":
                del kept[cause["k"]]
            else:
                wanted = kept[cause["k"]]
        rows = [self._row(one) for one in kept]
        names = ["as given", *(self._name(one) for one in kept[1:])]
        return kept, layout.pinned(rows, names), wanted

    def take(
        self,
        scenario: int | None,
        report: int | None,
        choice: Mapping[str, Any] | None,
        pins: Sequence[Mapping[str, Any]] | None,
    ) -> tuple[Any, str]:
        """A file of what is chosen, or of all that is pinned."""
        name = self.explorer.scenario.name
        try:
            if ctx.triggered_id == "take-scenario":
                text = self.explorer.scenario_file(self._choice(choice))
                return dcc.send_string(text, f"{name}.yaml"), ""
            choices = [self._choice(one) for one in pins or [{}]]
            return dcc.send_string(self.explorer.report(choices), f"{name}.html"), ""
        except InputError as failure:
            return no_update, str(failure)

    def _row(self, one: Mapping[str, Any]) -> tuple[Choice, Moment]:
        choice = self._choice(one)
        return choice, self.explorer.moment(choice)

    def _name(self, one: Mapping[str, Any]) -> str:
        choice = self._choice(one)
        others = [name for name in (choice.machine, choice.workload) if name]
        parts = [*others, *choice.policies, *choice.settings]
        return shortened(", ".join(parts) or "as given", NAME_MAX)

    def _choice(self, chosen: Mapping[str, Any] | None) -> Choice:
        """What the page says, but for what is as the scenario has it."""
        menus = {
            name: value
            for name, value in ((chosen or {}).get("menus") or {}).items()
            if value and value != self._own.get(name)
        }
        settings = (chosen or {}).get("settings") or {}
        return Choice(
            tuple(f"{path}={text}" for path, text in sorted(settings.items())),
            menus.pop("machine", None),
            menus.pop("workload", None),
            tuple(f"{family}={name}" for family, name in sorted(menus.items())),
        )
