"""Who may use the page of ``numatwin explore``, and what hostile requests get."""

import gc
import http.client
import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from explore_servers import serving

from numatwin.inputs import InputError
from numatwin.reports.explore import ExploreServer
from numatwin.reports.explore import server as explore_server
from numatwin.reports.explore.explorer import Explorer
from numatwin.reports.explore.server import BODY_MAX_BYTES
from numatwin.sim.studies.base import Base

PREDICT = (
    "..answer.children...failure.children...svg.data...busiest.children...command.children..."
    "done.data.."
)
PIN = "..pins.data...pinned.children...wanted.data.."
CHOICE: dict[str, Any] = {"page": "p", "number": 1.0, "settings": {}, "menus": {}}


@dataclass
class Visitor:
    """Who has opened a link, and asks."""

    server: ExploreServer
    prefix: str
    cookie: str

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        answer = ask(self.server, method, path, body, {"Cookie": self.cookie, **headers})
        return answer, answer.read()

    def post(self, body: bytes, **headers: str) -> tuple[int, bytes]:
        """The status and answer to what the page itself might send."""
        sent = {"Origin": f"http://127.0.0.1:{self.server.port}"}
        sent |= {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in sent.items() if value}
        answer, text = self.ask("POST", f"{self.prefix}_dash-update-component", body, **sent)
        return answer.status, text

    def predict(self, choice: Any) -> tuple[int, bytes]:
        return self.post(request(choice))


def ask(
    server: ExploreServer,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    connection.request(method, path, body, headers or {})
    return connection.getresponse()


def request(choice: Any, **changes: Any) -> bytes:
    """What the page sends for a prediction."""
    outputs = [part.rpartition(".") for part in PREDICT.strip(".").split("...")]
    body = {
        "output": PREDICT,
        "outputs": [{"id": id_, "property": name} for id_, _, name in outputs],
        "inputs": [{"id": "choice", "property": "data", "value": choice}],
        "changedPropIds": ["choice.data"],
        "parsedChangedPropsIds": ["choice.data"],
    }
    return json.dumps(body | changes).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[ExploreServer]:
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def visitor(server: ExploreServer) -> Visitor:
    return opened(server)


def path_of(link: str) -> str:
    return "/" + link.split("/", 3)[3]


def opened(server: ExploreServer) -> Visitor:
    answer = ask(server, "GET", path_of(server.link()))
    assert answer.status == 200
    found = re.search(r"url=(/[^/]+/)\"", answer.read().decode())
    assert found
    cookie, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert sorted(attributes) == ["HttpOnly", f"Path={found[1]}", "SameSite=Strict"]
    return Visitor(server, found[1], cookie)


def test_a_link_opens_the_page_once(server: ExploreServer) -> None:
    path = path_of(server.link())
    assert ask(server, "HEAD", path + "x").status == 403
    assert ask(server, "GET", path).status == 200
    again = ask(server, "GET", path)
    assert (again.status, again.headers["Set-Cookie"]) == (403, None)
    assert b"each works once. If it was not you" in again.read()
    assert server.link() != server.link()


def test_the_page_is_for_who_has_the_cookie(server: ExploreServer, visitor: Visitor) -> None:
    page = visitor.prefix
    answer, _ = visitor.ask("GET", page)
    assert answer.status == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert "http" not in policy
    for path in ("/", page, f"{page}_dash-layout", "/static/x", "/wrong/"):
        assert ask(server, "GET", path).status == 403
        assert ask(server, "GET", path, headers={"Cookie": "numatwin=wrong"}).status == 403
    assert visitor.ask("GET", page, Host="example.org")[0].status == 403
    assert visitor.ask("GET", "/wrong/")[0].status == 404


def test_a_move_waits_for_no_search_of_garbage(visitor: Visitor) -> None:
    assert visitor.ask("GET", visitor.prefix)[0].status == 200  # it serves
    assert gc.get_freeze_count() > 100_000


def test_the_page_predicts(visitor: Visitor) -> None:
    status, text = visitor.predict(CHOICE)
    assert status == 200
    assert "scans/s" in json.loads(text)["response"]["answer"]["children"][0]["props"]["children"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": ""},
        {"Origin": "null"},
        {"Origin": "http://example.org"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {"Cookie": "numatwin=x"},
        {"Host": "example.org"},
    ],
    ids=str,
)
def test_only_the_page_itself_may_ask(visitor: Visitor, headers: dict[str, str]) -> None:
    assert visitor.post(request(CHOICE), **headers)[0] == 403


@pytest.mark.parametrize(
    "choice",
    [
        CHOICE | {"menus": {"machine": "/etc/passwd"}},
        CHOICE | {"menus": {"balancing": "/tmp/p.py:P"}},
        CHOICE | {"menus": {"policy": "/tmp/p.py:P"}},
        CHOICE | {"settings": {"machine": "/etc/passwd"}},
        CHOICE | {"settings": {"policies.balancing.policy": "/tmp/p.py:P"}},
    ],
    ids=str,
)
def test_what_the_page_does_not_offer_is_told_and_not_read(visitor: Visitor, choice: Any) -> None:
    status, text = visitor.predict(choice | {"number": 1e9})
    assert status == 200
    told = json.loads(text)["response"]["failure"]["children"]
    assert re.match(r"not (in the page's menus|a field of this page): found '", told)
    assert "root:" not in told


WRONG: tuple[Any, ...] = (None, True, 0.5, [1], [[]], [{"id": "x"}], {"a": []})
MALFORMED: list[bytes] = [
    *(b"", b"x", b"[]", b"{}", b"null", b'"\\ud800"', b"\xff"),
    b"[" * 200_000,
    b"[" * 200_000 + b"]" * 200_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    *(request(CHOICE | {name: value}) for name in ("page", "settings", "menus") for value in WRONG),
    request(CHOICE | {"more": 1}),
    *map(request, (0, "x", [], {"settings": {}})),
    *(request(CHOICE, **{name: value})
      for name in ("output", "outputs", "inputs", "state", "changedPropIds") for value in WRONG),
    request(CHOICE, output="choice.data"),
    request(CHOICE, changedPropIds=["{.k"]),
    request(CHOICE, outputs=[]),
    request(CHOICE, inputs=[]),
    request(CHOICE, unknown=1),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(MALFORMED)))
def test_malformed_requests_get_400_without_a_traceback(
    visitor: Visitor, k: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert visitor.post(MALFORMED[k]) == (400, b"malformed request\n"), MALFORMED[k][:300]
    assert capfd.readouterr() == ("", "")


def test_pins_that_are_none(visitor: Visitor, capfd: pytest.CaptureFixture[str]) -> None:
    def body(pins: Any, k: Any) -> bytes:
        button = {"id": {"kind": "remove", "k": k}, "property": "n_clicks", "value": 1}
        outputs = [part.rpartition(".") for part in PIN.strip(".").split("...")]
        clicks = [{"id": id_, "property": "n_clicks", "value": None} for id_ in ("pin", "reset")]
        state = [("choice", CHOICE), ("pins", pins)]
        return json.dumps({
            "output": PIN,
            "outputs": [{"id": id_, "property": name} for id_, _, name in outputs],
            "inputs": [*clicks, [], [button]],
            "changedPropIds": [f'{{"k":{json.dumps(k)},"kind":"remove"}}.n_clicks'],
            "parsedChangedPropsIds": [],
            "state": [{"id": id_, "property": "data", "value": value} for id_, value in state],
        }).encode()  # fmt: skip

    pin: dict[str, Any] = {"settings": {}, "menus": {}}
    for k in (0, 7, -1, "x"):
        assert visitor.post(body([pin, pin], k))[0] == 200
    assert visitor.post(body([pin, pin], 1))[0] == 200
    assert visitor.post(body([pin, {"settings": {"machine": "/x"}, "menus": {}}], 5))[0] == 204
    malformed: tuple[Any, ...] = ([], [{}], [pin] * 25, [{**pin, "x": 1}], "x", [[]])
    for pins in malformed:
        assert visitor.post(body(pins, 1))[0] == 400
    assert capfd.readouterr() == ("", "")


def test_large_bodies_are_not_read(visitor: Visitor, capfd: pytest.CaptureFixture[str]) -> None:
    assert visitor.post(b" " * (BODY_MAX_BYTES + 1))[0] == 413
    assert visitor.post(request(CHOICE) + b" " * (BODY_MAX_BYTES // 2))[0] == 200
    assert capfd.readouterr() == ("", "")


def test_who_does_not_finish_a_request_holds_up_nobody(
    server: ExploreServer, visitor: Visitor
) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\n")
        assert visitor.predict(CHOICE | {"page": "q"})[0] == 200
    assert getattr(server._server.RequestHandlerClass, "timeout", None) == 30


def test_a_port_in_use_is_told(server: ExploreServer, capsys: pytest.CaptureFixture[str]) -> None:
    """By the error alone: werkzeug has lines of its own for it."""
    explorer = Explorer(Base("eris-fig12-scan"))
    with pytest.raises(InputError, match=f"cannot listen: found 'port {server.port}'"):
        ExploreServer(explorer, server.port)
    assert capsys.readouterr() == ("", "")


def test_connections_beyond_the_cap_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle ones hold the others up no longer than they last."""
    monkeypatch.setattr(explore_server, "CONNECTIONS_MAX", 2)
    with serving() as server:
        address = ("127.0.0.1", server.port)
        with (
            socket.create_connection(address),
            socket.create_connection(address),
            socket.create_connection(address) as one_more,
        ):
            assert one_more.recv(1) == b""
        free = server._server._free
        assert all(free.acquire(timeout=60) for _ in range(2))  # those two are closed by now
        free.release()
        assert ask(server, "GET", "/").status == 403
