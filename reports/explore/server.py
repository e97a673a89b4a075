"""Serves the page on this computer only: on 127.0.0.1.

Who may ask the server of the page, and what: a link that works once, a cookie, small bodies.

Other users of this computer reach the port, and read the command line in which the browser is
started; other sites' pages may send requests in the browser. So the link in the command line works
once and leaves a cookie, and requests must come from the page itself.
"""

import gc
import json
import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import dash
from dash import ALL, MATCH, ClientsideFunction, Input, Output, State, ctx, dcc, no_update
from dash.exceptions import CallbackException, PreventUpdate
from flask import Response, abort, request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, validate_call, with_config
from typing_extensions import TypedDict
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from ...inputs import InputError
from ..words import shortened
from . import layout
from .explorer import Choice, Explorer

LOOPBACK = "127.0.0.1"
PINS_MAX = 24
NAME_MAX = 90
PAGES_MAX = 64
PATIENCE_S = 0.5
CONNECTIONS_MAX = 64  # a browser opens six
_STRICT = ConfigDict(extra="forbid", strict=True)


class ExploreServer:
    """A server of the page of ``explorer``, on ``port`` or, where it is 0, any free one.

    Raises InputError where the port cannot be had.
    """

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # not a line for each move
        prefix = f"/{secrets.token_urlsafe(9)}/"  # cookies of a host are told apart by path alone
        app = explore_app(explorer, prefix)
        try:
            with redirect_stderr(StringIO()):
                self._server = _Server(LOOPBACK, port, app.server, _Handler)
        except (OSError, SystemExit):  # werkzeug prints and exits where a port is in use
            raise InputError(
                "cannot listen", token=f"port {port}", expected="a free port, or 0 for any"
            ) from None
        self.port: int = self._server.server_port
        self._access = Access(app, prefix, {f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"})

    def link(self) -> str:
        """A new address that opens the page once, in the browser that asks first."""
        return f"http://{LOOPBACK}:{self.port}{self._access.link()}"

    def serve(self) -> None:
        """Answers until it is interrupted."""
        gc.collect()
        gc.freeze()  # to look for garbage in all that is loaded takes 0.1 s in the middle of a move
        self._server.serve_forever()

    def close(self) -> None:
        """Ends ``serve``, which another thread may be in."""
        self._server.shutdown()


class _Handler(WSGIRequestHandler):
    timeout = 30  # of each wait for more of a request, or until more of an answer is taken


class _Server(ThreadedWSGIServer):
    """A thread for each of ``CONNECTIONS_MAX`` connections; any more are closed at once."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()


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


@with_config(_STRICT)
class _Chosen(TypedDict):
    settings: dict[str, str]
    menus: dict[str, str]


@with_config(_STRICT)
class _Choice(_Chosen):
    """What the ``number``-th change of a page chose."""

    page: str
    number: float


_Pins = Annotated[list[_Chosen], Field(min_length=1, max_length=PINS_MAX)]
_checked = validate_call(config=_STRICT)


@dataclass
class _Page:
    """A page's requests for predictions: of a fast drag only the newest is predicted."""

    latest: float = 0.0
    turn: threading.Lock = field(default_factory=threading.Lock)


class _Callbacks:
    """What the page asks of the server. What it sends is checked: raises ValidationError."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self._first = explorer.moment(Choice())
        self._quick = self._first.predicted_s < layout.LIVE_PREDICTION_MAX_S
        self._own = {"machine": explorer.scenario.machine.name}
        self._own |= {"workload": explorer.scenario.workload.name, **explorer.scenario.policy_names}
        self._pages: dict[str, _Page] = {}

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
            State("choice", "data"),
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

    @_checked
    def show_fields(
        self,
        more: str | None,
        wanted: _Chosen | None,
        menus: list[str | None],
        choice: _Choice | None,
    ) -> tuple[Any, ...]:
        """Controls of the fields of the largest effect, of those asked for, and of what is set."""
        kinds = list(self.explorer.menus())
        if len(menus) != len(kinds):
            raise InputError("a value for each menu")
        names: dict[str, Any] = dict(zip(kinds, menus, strict=True))
        source: Mapping[str, Any] = choice or {}
        if ctx.triggered_id == "wanted" and wanted is not None:
            names, source = names | self._own | wanted["menus"], wanted
        texts: Mapping[str, str] = source.get("settings", {})
        try:
            fields = self.explorer.fields(replace(self._choice({"menus": names}), policies=()))
        except InputError as failure:
            return no_update, no_update, None, [no_update] * len(kinds), str(failure)
        shown = [field.path for field in fields[: layout.SHOWN] if field.effect != 0.0]
        shown += [path for path in [*texts, more] if path and path not in shown]
        options = [field.path for field in fields if field.path not in shown]
        children = layout.controls(fields, shown, texts, self._quick)
        return children, options, None, [names[kind] for kind in kinds], ""

    @_checked
    def predict(self, choice: _Choice | None) -> tuple[Any, ...]:
        """The first moment of what is chosen, unless the page has asked for another since."""
        chosen = self._choice(choice)
        try:
            with self._wanted(choice) as wanted:
                moment = self.explorer.moment(chosen, wanted)
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

    @_checked
    def explain(self, choice: _Choice | None) -> list[Any]:
        """What binds, of what was predicted last."""
        try:
            with self._wanted(choice) as wanted:
                return layout.gains(self.explorer.why(self._choice(choice), wanted))
        except InputError as failure:
            return [str(failure)]

    @contextmanager
    def _wanted(self, choice: _Choice | None) -> Iterator[Callable[[], bool]]:
        """The page's turn: whether it still waits for ``choice``."""
        name, number = (choice["page"], choice["number"]) if choice else ("", 0.0)
        page = self._pages.setdefault(name, _Page())
        for oldest in list(self._pages)[:-PAGES_MAX]:
            self._pages.pop(oldest, None)
        page.latest = max(number, page.latest)
        mine = page.turn.acquire(timeout=PATIENCE_S)  # not for a long one
        try:
            yield lambda: number >= page.latest
        finally:
            if mine:
                page.turn.release()

    @_checked
    def pin(
        self,
        pinned: int | None,
        reset: int | None,
        returned: list[int | None],
        removed: list[int | None],
        choice: _Choice | None,
        pins: _Pins | None,
    ) -> tuple[Any, ...]:
        """The pinned variants after a button; the first is the scenario as it was given."""
        given: _Chosen = {"settings": {}, "menus": {}}
        kept = list(pins or [given])
        wanted: Any = no_update
        clicked = bool(ctx.triggered and ctx.triggered[0]["value"])
        match ctx.triggered_id:
            case "pin" if choice is not None and len(kept) < PINS_MAX:
                kept.append({"settings": choice["settings"], "menus": choice["menus"]})
            case "reset":
                wanted = given
            case {"kind": "remove", "k": int(k)} if clicked and 0 < k < len(kept):
                del kept[k]
            case {"kind": "return", "k": int(k)} if clicked and 0 <= k < len(kept):
                wanted = kept[k]
        try:
            rows = [(one, self.explorer.moment(one)) for one in map(self._choice, kept)]
        except InputError:  # told where it was predicted
            raise PreventUpdate from None
        names = ["as given", *(self._name(one) for one in kept[1:])]
        return kept, layout.pinned(rows, names), wanted

    @_checked
    def take(
        self, scenario: int | None, report: int | None, choice: _Choice | None, pins: _Pins | None
    ) -> tuple[Any, str]:
        """A file of what is chosen, or of all that is pinned."""
        name = self.explorer.scenario.name
        try:
            if ctx.triggered_id == "take-scenario":
                text = self.explorer.scenario_file(self._choice(choice))
                return dcc.send_string(text, f"{name}.yaml"), ""
            choices = [self._choice(one) for one in pins] if pins else [Choice()]
            return dcc.send_string(self.explorer.report(choices), f"{name}.html"), ""
        except InputError as failure:
            return no_update, str(failure)

    def _name(self, one: _Chosen) -> str:
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


OPEN, COOKIE = "/open/", "numatwin"
BODY_MAX_BYTES = 1 << 20
HEADERS = {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
HEADERS |= {"Cross-Origin-Resource-Policy": "same-origin"}
MALFORMED = ("malformed request\n", 400, {"Content-Type": "text/plain"})
UNKNOWN_LINK = (
    "No link, or opened before: each works once. If it was not you, end 'numatwin explore' with "
    "Ctrl-C: somebody else on this computer reads command lines.\n"
)


class Access:
    """Refuses what does not come from the page of ``app``, below ``prefix`` on ``hosts``."""

    def __init__(self, app: dash.Dash, prefix: str, hosts: set[str]) -> None:
        self._app, self._prefix, self._hosts = app, prefix, hosts
        self._session = secrets.token_urlsafe(32)
        self._links: set[str] = set()
        scripts = " ".join(f"'{one}'" if "'" not in one else one for one in app.csp_hashes())
        self._policy = (
            f"default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
            "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        )
        app.server.config["MAX_CONTENT_LENGTH"] = BODY_MAX_BYTES
        app.server.before_request(self._refuse)
        app.server.after_request(self._add_headers)
        app.server.add_url_rule(f"{OPEN}<secret>", view_func=self._open)
        for kind in (ValidationError, InputError, CallbackException):  # as much as the request
            app.server.register_error_handler(kind, lambda _: MALFORMED)

    def link(self) -> str:
        """The path of a new link."""
        secret = secrets.token_urlsafe(24)
        self._links.add(secret)
        return OPEN + secret

    def _open(self, secret: str) -> Response:
        try:
            self._links.remove(secret)  # of two that ask at a time one fails
        except KeyError:
            return Response(UNKNOWN_LINK, 403, mimetype="text/plain")
        # By the page, not by a status: what the browser then asks for comes from this site, as the
        # cookie demands.
        refresh = f'<meta http-equiv="refresh" content="0; url={self._prefix}">'
        answer = Response(f'<link rel="icon" href="data:,">{refresh}')
        options: dict[str, Any] = {"path": self._prefix, "httponly": True, "samesite": "Strict"}
        answer.set_cookie(COOKIE, self._session, **options)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    def _refuse(self) -> None:
        if request.host not in self._hosts:  # a name that somebody else has lead here
            abort(403)
        if request.method in ("GET", "HEAD") and request.path.startswith(OPEN):
            return
        cookie = request.cookies.get(COOKIE, "").encode()
        if not secrets.compare_digest(cookie, self._session.encode()):
            abort(403)
        if request.method in ("GET", "HEAD"):
            return
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
        if origin != f"http://{request.host}" or site not in (None, "same-origin"):
            abort(403)
        _Request.model_validate_json(request.get_data()).check(self._app.callback_map)

    def _add_headers(self, response: Response) -> Response:
        response.headers.update(HEADERS | {"Content-Security-Policy": self._policy})
        return response


class _Part(BaseModel):
    """A property of a component, and its value."""

    model_config = ConfigDict(strict=True, extra="forbid")

    id: str | dict[str, str | int]
    property: str
    value: Any = None

    def name(self) -> str:
        """As Dash writes it."""
        id_ = self.id
        if isinstance(id_, dict):
            id_ = json.dumps(id_, sort_keys=True, separators=(",", ":"))
        return f"{id_}.{self.property}"


_Parts = list[_Part | list[_Part]]


class _Request(BaseModel):
    """What Dash's page sends to have a callback called. Values are checked by the callback."""

    model_config = ConfigDict(strict=True, extra="forbid")

    output: str
    outputs: _Part | _Parts
    inputs: _Parts
    changed: list[str] = Field(alias="changedPropIds")
    parsed: list[Any] = Field(alias="parsedChangedPropsIds")
    state: _Parts = []

    def check(self, callbacks: Mapping[str, Any]) -> None:
        """Raises InputError where no callback takes it."""
        callback = callbacks.get(self.output, {})
        given = [self.inputs, self.state, _listed(self.outputs)]
        taken = [callback.get(name, ()) for name in ("inputs", "state", "outputs_indices")]
        taken[2] = _listed(taken[2])
        names = {one.name() for part in self.inputs for one in _listed(part)}
        fit = [len(one) for one in given] == [len(one) for one in taken]
        if "callback" not in callback or not fit or not names.issuperset(self.changed):
            raise InputError("no such callback")


def _listed(one: Any) -> Sequence[Any]:
    return one if isinstance(one, (list, tuple)) else [one]
