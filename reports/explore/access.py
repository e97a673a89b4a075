"""Who may ask the server of the page, and what: a link that works once, a cookie, small bodies.

Other users of this computer reach the port, and read the command line in which the browser is
started; other sites' pages may send requests in the browser. So the link in the command line works
once and leaves a cookie, and requests must come from the page itself.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import dash
from dash.exceptions import CallbackException
from flask import Response, abort, request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...inputs import InputError

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
