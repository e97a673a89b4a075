"""Settings from the command line: ``path=value``, another value for any field of a description."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from .changes import changed
from .errors import InputError
from .fields import field_names, kinds_at, near
from .open_part import OpenPart
from .yaml_file import Document, Place, parse_yaml

SHOWN_MAX = 80


@dataclass(frozen=True)
class Setting:
    """A value for the field at ``path`` (names and positions in lists, outermost first)."""

    source: str
    """The setting as it was typed, for errors."""
    path: tuple[str, ...]
    value: Any

    def inside(self) -> Setting:
        """The same setting as seen from within the first part of its path."""
        return Setting(self.source, self.path[1:], self.value)


@lru_cache(maxsize=4_096)
def parse_setting(text: str) -> Setting:
    """The setting ``path=value``; the value is read as YAML. Raises InputError."""
    source = f"--set {text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + '…'}"
    path, equals, written = text.partition("=")
    parts = tuple(part.strip() for part in path.split("."))
    if not equals or not all(parts) or not written.strip():
        raise InputError(
            "not a setting", source, expected="path=value, such as system.nodes=4 or seed=1"
        )
    try:
        value = parse_yaml(written, source).value
    except InputError as failure:
        failure.line = failure.column = None  # there is but one line
        raise
    if isinstance(value, (dict, list)) and written.lstrip()[0] not in "{[":
        value = written.strip()  # a text with a colon, such as a title
    return Setting(source, parts, value)


def with_setting(document: Document, model: type[BaseModel], setting: Setting) -> Document:
    """``document``, to be read as ``model``, with the setting's value in its place.

    Raises InputError where the path leads nowhere; whether the value fits is seen on reading.
    """
    return changed(document, place_of(document, model, setting), setting.value, setting.source)


def place_of(document: Document, model: type[BaseModel], setting: Setting) -> Place:
    """Where the setting's value goes; raises InputError where its path leads nowhere."""
    place: Place = ()
    value, parts = document.value, setting.path
    while parts:
        key, parts = _step(value, place, parts, model, setting)
        place = (*place, key)
        value = document.part(place)
    return place


def _step(
    value: Any, place: Place, parts: tuple[str, ...], model: type[BaseModel], setting: Setting
) -> tuple[str | int, tuple[str, ...]]:
    """The next key of the path, and what is left of the path behind it."""
    where = f" in {'.'.join(map(str, place))}" if place else ""
    if isinstance(value, list):
        if not parts[0].isascii() or not parts[0].isdigit() or int(parts[0]) >= len(value):
            expected = f"0 to {len(value) - 1}" if value else "no position, as the list is empty"
            raise InputError(f"no position '{parts[0]}'{where}", setting.source, expected=expected)
        return int(parts[0]), parts[1:]
    if value is not None and not isinstance(value, dict):
        raise InputError(f"no field '{parts[0]}'{where}: it has no parts", setting.source)
    present = value or {}
    for count in range(len(parts), 0, -1):  # a name may have dots itself
        if (name := ".".join(parts[:count])) in present:
            return name, parts[count:]
    names = _names_at(model, place)
    free = (not names and len(parts) == 1) or _is_open(model, (*place, parts[0]))
    if parts[0] in names or free:
        return parts[0], parts[1:]
    raise InputError(
        f"unknown field '{parts[0]}'{where}",
        setting.source,
        expected=near(parts[0], sorted({*names, *map(str, present)})),
    )


_names_at = lru_cache(maxsize=4_096)(field_names)


@lru_cache(maxsize=4_096)
def _is_open(model: type[BaseModel], place: Place) -> bool:
    """Whether another schema says what may stand at ``place``, or in it."""
    return any(OpenPart in kinds_at(model, place[:depth]) for depth in range(len(place) + 1))
