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
    sleep SECONDS                lets the engine work
    begin NUMBER NAME            of the region to count; the method's answer at that moment
    end NUMBER NAME              likewise, at its end

Answers are {"value": ...}, or {"error": type, "text": ...}. In arguments, {"object": number}
stands for that object. When the requests end, so does this process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def _loaded(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _plain(value: Any) -> Any:
    """An object of the engine that only holds values, such as a report of what it did."""
    names = (name for name in dir(value) if not name.startswith("_"))
    return {name: part for name in names if not callable(part := getattr(value, name))}


def _processor() -> int:
    """The one that this thread runs on now."""
    with open("/proc/thread-self/stat") as file:
        return int(file.read().rpartition(")")[2].split()[36])


class _Server:
    def __init__(self, engine: Any, marks: Any) -> None:
        self._engine, self._region = engine, marks.counted_region()
        self._home = _processor()  # this program's memory lies on its node, mostly
        self._objects: list[Any] = []

    def answer(self, what: str, *words: Any) -> Any:
        return getattr(self, f"_{what}")(*words)

    def _given(self, value: Any) -> Any:
        if isinstance(value, dict) and "object" in value:
            return self._objects[value["object"]]
        return [self._given(part) for part in value] if isinstance(value, list) else value

    def _kept(self, made: Any) -> dict[str, int]:
        self._objects.append(made)
        return {"object": len(self._objects) - 1}

    def _make(self, name: str, arguments: list[Any]) -> dict[str, int]:
        return self._kept(self._get(None, name)(*self._given(arguments)))

    def _do(self, number: int | None, name: str, arguments: list[Any]) -> Any:
        return self._get(number, name)(*self._given(arguments))

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
        # So that what this program itself accesses is local. Not earlier: the engine's threads
        # take the processors that the one which makes them may use.
        for thread in threading.enumerate():
            assert thread.native_id is not None
            os.sched_setaffinity(thread.native_id, {self._home})
        found = self._get(number, name)()
        self._region.__enter__()
        return found

    def _end(self, number: int, name: str) -> Any:
        self._region.__exit__(None, None, None)
        return self._get(number, name)()


def _requests() -> Iterator[list[Any]]:
    """As they come; when they end, whatever the engine is doing, so does all."""
    lines: list[str] = []
    more = threading.Semaphore(0)

    def read() -> None:
        for line in sys.stdin:
            lines.append(line)
            more.release()
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        more.acquire()
        yield json.loads(lines.pop(0))


def _main() -> None:
    server = _Server(_loaded("_engine", sys.argv[1]), _loaded("marks", sys.argv[2]))
    for request in _requests():
        try:
            answer = json.dumps({"value": server.answer(*request)}, default=_plain)
        except Exception as failure:
            kind = type(failure).__name__
            answer = json.dumps({"error": kind, "text": str(failure) or kind})
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
