"""What runs in a guest: the compiled engine, and a server of requests for it. Nothing else.

    python -I -S driver.py ENGINE MARKS

ENGINE is the compiled module's file, MARKS that of ``numatwin/emulator.py``. Imports take long in
a guest, so this is started as a file, and imports as little as it can.

Requests come as lines of JSON, [what, ...], and each is answered by a line:

    make NAME ARGUMENTS          an object of the engine: {"object": number}
    do NUMBER NAME ARGUMENTS     calls its method; NUMBER null: a function of the module
    get NUMBER NAME              reads an attribute
    hold NUMBER NAME             the same, of an object of the engine: {"object": number}
    set NUMBER NAME VALUE        sets it
    call NAME ARGUMENTS          a function of Python's, such as "os.sched_setaffinity"
    sleep SECONDS                lets the engine work
    begin NUMBER NAME            of the region to count; the method's answer at that moment
    end NUMBER NAME              likewise, at its end

Answers are {"value": ...}, or {"error": type, "text": ...}. In arguments, {"object": number}
stands for that object, {"struct": name, "fields": {...}} for one that is made of these, as in
answers, and {"struct": name, "value": number} for a value of an enumeration. When the requests end,
so does this process.

It stays on one processor, from its program's start on, so that what it accesses while the engine is
counted is local: the first thing it does is to start itself again there. Until then its first
thread, which reads the requests, may use all, as these are what the engine may use
(``memory/host.cpp``).
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time
from queue import SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _loaded(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _plain(value: Any) -> Any:
    """A struct of the engine's."""
    fields = {name: getattr(value, name) for name in value.FIELDS}
    return {"struct": type(value).__name__, "fields": fields}


class _Server:
    def __init__(self, engine: Any, marks: Any) -> None:
        self._engine, self._region = engine, marks.counted_region()
        self._objects: list[Any] = []

    def answer(self, what: str, *words: Any) -> Any:
        return getattr(self, f"_{what}")(*words)

    def _given(self, value: Any) -> Any:
        if isinstance(value, dict) and "object" in value:
            return self._objects[value["object"]]
        if isinstance(value, dict) and "struct" in value:
            kind, fields = self._get(None, value["struct"]), value.get("fields")
            if fields is None:
                return kind(value["value"])
            return kind(**{name: self._given(part) for name, part in fields.items()})
        return [self._given(part) for part in value] if isinstance(value, list) else value

    def _kept(self, made: Any) -> dict[str, int]:
        self._objects.append(made)
        return {"object": len(self._objects) - 1}

    def _make(self, name: str, arguments: list[Any]) -> dict[str, int]:
        return self._kept(self._get(None, name)(*self._given(arguments)))

    def _do(self, number: int | None, name: str, arguments: list[Any]) -> Any:
        return self._get(number, name)(*self._given(arguments))

    def _call(self, name: str, arguments: list[Any]) -> Any:
        module, _, function = name.partition(".")
        return getattr(sys.modules[module], function)(*arguments)

    def _get(self, number: int | None, name: str) -> Any:
        found = self._engine if number is None else self._objects[number]
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def _hold(self, number: int, name: str) -> dict[str, int]:
        return self._kept(self._get(number, name))

    def _set(self, number: int, name: str, value: Any) -> None:
        setattr(self._objects[number], name, self._given(value))

    def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def _begin(self, number: int, name: str) -> Any:
        os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))  # the first thread, too
        found = self._get(number, name)()
        self._region.__enter__()
        return found

    def _end(self, number: int, name: str) -> Any:
        self._region.__exit__(None, None, None)
        return self._get(number, name)()


def _serve(server: _Server, requests: SimpleQueue[str]) -> None:
    while True:
        try:
            value = server.answer(*json.loads(requests.get()))
            answer = json.dumps({"value": value}, default=_plain)
        except Exception as failure:
            kind = type(failure).__name__
            answer = json.dumps({"error": kind, "text": str(failure) or kind})
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


def _main() -> None:
    engine, marks, *cpus = sys.argv[1:]
    if not cpus:
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[:1])
        os.execv(sys.executable, [*sys.orig_argv, *map(str, allowed)])
    requests: SimpleQueue[str] = SimpleQueue()
    server = _Server(_loaded("_engine", engine), _loaded("marks", marks))
    threading.Thread(target=_serve, args=(server, requests), daemon=True).start()
    os.sched_setaffinity(0, map(int, cpus))
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)  # whatever the engine is doing


if __name__ == "__main__":
    _main()
