"""The compiled engine of a guest, to be used like the one of this process (``_engine``).

Its objects live in the guest, which has no NumPy; here are their numbers.

What a system offers to run in a guest: a maker of its plane.

A process in a guest that has the compiled engine, and does what it is asked for.
"""

import contextlib
import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ... import emulator
from ...inputs import InputError
from ...sim.planes.plane import Experiment, Plane
from ...topologies.emulator import GuestMachine
from ...topologies.emulator.counting import CountedRun, Counting, run_counted
from .. import _engine


class RemoteObject:
    """An object of the class ``kind`` in the guest."""

    def __init__(self, process: "GuestProcess", kind: type, number: int) -> None:
        self.__dict__.update(_process=process, _kind=kind, number=number)

    def __getattr__(self, name: str) -> Any:
        process: GuestProcess = self.__dict__["_process"]
        kind, number = self.__dict__["_kind"], self.__dict__["number"]
        if not callable(getattr(kind, name)):
            return process.ask("get", number, name)
        return lambda *arguments: process.ask("do", number, name, _plain(arguments))

    def held(self, name: str, kind: type) -> "RemoteObject":
        """Its attribute ``name``, an object of the class ``kind`` that lives as long as this."""
        process: GuestProcess = self.__dict__["_process"]
        number = process.ask("hold", self.__dict__["number"], name)["object"]
        return RemoteObject(process, kind, number)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__["_process"].ask("set", self.__dict__["number"], name, _plain(value))


def counted(which: str, remote: Any, name: str) -> Any:
    """``begin`` or ``end`` of the region to count, and what the method answers at that moment.

    One request, as what lies between two of them would be counted too.
    """
    process, number = remote.__dict__["_process"], remote.__dict__["number"]
    return process.ask(which, number, name)


class RemoteClass:
    """Makes objects of a class in the guest, by a call or by a static method."""

    def __init__(self, process: "GuestProcess", kind: type) -> None:
        self._process, self._kind = process, kind

    def __call__(self, *arguments: Any) -> RemoteObject:
        """Of the class itself."""
        return self._made(self._kind.__name__, arguments)

    def __getattr__(self, name: str) -> Callable[..., RemoteObject]:
        return lambda *arguments: self._made(f"{self._kind.__name__}.{name}", arguments)

    def _made(self, name: str, arguments: tuple[Any, ...]) -> RemoteObject:
        answer = self._process.ask("make", name, _plain(arguments))
        return RemoteObject(self._process, self._kind, answer["object"])


class RemoteEngine:
    """The module: its classes and functions."""

    def __init__(self, process: "GuestProcess") -> None:
        self._process = process

    def __getattr__(self, name: str) -> Any:
        found = getattr(_engine, name)
        if isinstance(found, type):
            return RemoteClass(self._process, found)
        return lambda *arguments: self._process.ask("do", None, name, _plain(arguments))


def _plain(value: Any) -> Any:
    """As JSON has it; the engine's structs by their fields, enumerations' values by number."""
    if isinstance(value, RemoteObject):
        return {"object": value.__dict__["number"]}
    if type(value).__module__ == _engine.__name__:
        fields = getattr(type(value), "FIELDS", None)
        if fields is None:
            return {"struct": type(value).__name__, "value": int(value)}
        of_fields = {name: _plain(getattr(value, name)) for name in fields}
        return {"struct": type(value).__name__, "fields": of_fields}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def _made(found: dict[str, Any]) -> Any:
    """Of an answer: the engine's structs are made here of their fields."""
    return getattr(_engine, found["struct"])(**found["fields"]) if "struct" in found else found


def answered(line: bytes | str) -> Any:
    """The value in an answer; raises what the request raised there."""
    answer = json.loads(line, object_hook=_made)
    if "error" in answer:
        raise ERRORS.get(answer["error"], RuntimeError)(answer["text"])
    return answer["value"]


EmulatedPlane = Callable[[Experiment], Plane]
"""Makes the plane of the one replication that is played."""


DRIVER = Path(__file__).with_name("driver.py")
ANSWER_LIMIT_S = 600.0
END_LIMIT_S = 60.0
ERRORS = {"MemoryError": MemoryError, "ValueError": ValueError, "OSError": OSError}


class GuestProcess:
    """Boots ``guest`` with the process in it. A context manager: at its end the guest is gone.

    ``counting``: see ``run_counted``.
    """

    def __init__(self, guest: GuestMachine, counting: Counting | None = None) -> None:
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._part = bytearray()
        self._counted: CountedRun | None = None
        self._failure: BaseException | None = None
        self._errors = bytearray()
        self._reading, self._writing = os.pipe()
        files = (str(_engine.__file__), str(emulator.__file__))
        self._command = [sys.executable, "-I", "-S", str(DRIVER), *files]
        self._guest, self._counting = guest, counting
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> "GuestProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._end()

    def ask(self, *request: Any, limit_s: float = ANSWER_LIMIT_S) -> Any:
        """The answer to a request (``driver.py`` says which there are).

        Raises what the request raised there, and InputError where the guest is gone.
        """
        try:
            os.write(self._writing, json.dumps(request).encode() + b"\n")
            line = self._answers.get(timeout=limit_s)
        except BrokenPipeError:
            line = None
        except queue.Empty:
            raise InputError(f"the engine in the guest did not answer in {limit_s:g} s") from None
        if line is None:
            raise self._why_ended()
        return answered(line)

    def counted(self) -> CountedRun:
        """Ends the guest; what was counted of the process and its region."""
        self._end()
        if self._counted is None or self._counted.run.status:
            raise self._why_ended()
        return self._counted

    def _end(self) -> None:
        if self._writing >= 0:
            os.close(self._writing)  # at the end of its requests, the process ends
            self._writing = -1
        self._thread.join(END_LIMIT_S)

    def _run(self) -> None:
        try:
            self._counted = run_counted(
                self._guest,
                self._command,
                self._counting,
                stdin=self._reading,
                stdout=self._take,
                stderr=self._errors.extend,
            )
        except BaseException as failure:
            self._failure = failure
        finally:
            self._answers.put(None)
            with contextlib.suppress(OSError):
                os.close(self._reading)

    def _take(self, piece: bytes) -> None:
        self._part += piece
        while b"\n" in self._part:
            line, _, rest = bytes(self._part).partition(b"\n")
            self._part[:] = rest
            self._answers.put(line)

    def _why_ended(self) -> BaseException:
        if self._failure is not None:
            return self._failure
        lines = self._errors.decode(errors="replace").strip().splitlines()
        memory = self._counted.run.out_of_memory if self._counted is not None else None
        why = memory or (lines[-1] if lines else "it ended")
        return InputError(f"the engine in the guest: {why}")
