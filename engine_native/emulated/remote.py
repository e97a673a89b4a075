"""The compiled engine of a guest, to be used like the one of this process (``_engine``).

Its objects live in the guest; here are their numbers. Where a method returns arrays, its twin
``plain_...`` is asked instead, for the guest has no NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...sim.planes.plane import Experiment, Plane
from .. import _engine
from .guest_process import GuestProcess

PLAIN = "plain_"


class RemoteObject:
    """An object of the class ``kind`` in the guest."""

    def __init__(self, process: GuestProcess, kind: type, number: int) -> None:
        self.__dict__.update(_process=process, _kind=kind, number=number)

    def __getattr__(self, name: str) -> Any:
        process: GuestProcess = self.__dict__["_process"]
        kind, number = self.__dict__["_kind"], self.__dict__["number"]
        if not callable(getattr(kind, name)):
            return process.ask("get", number, name)
        plain = hasattr(kind, PLAIN + name)

        def call(*arguments: Any) -> Any:
            wanted = PLAIN + name if plain else name
            answer = process.ask("do", number, wanted, _plain(arguments))
            return _arrays(answer) if plain else answer

        return call

    def held(self, name: str, kind: type) -> RemoteObject:
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
    return _arrays(process.ask(which, number, PLAIN + name))


class RemoteClass:
    """Makes objects of a class in the guest, by a call or by a static method."""

    def __init__(self, process: GuestProcess, kind: type) -> None:
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

    def __init__(self, process: GuestProcess) -> None:
        self._process = process

    def __getattr__(self, name: str) -> Any:
        found = getattr(_engine, name)
        if isinstance(found, type):
            return RemoteClass(self._process, found)
        return lambda *arguments: self._process.ask("do", None, name, _plain(arguments))


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, RemoteObject):
        return {"object": value.__dict__["number"]}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def _arrays(value: Any) -> Any:
    """Lists as arrays, in dicts too."""
    if isinstance(value, dict):
        return {name: _arrays(part) for name, part in value.items()}
    return np.array(value) if isinstance(value, list) else value


EmulatedPlane = Callable[[Experiment], Plane]
"""Makes the plane of the one replication that is played."""
