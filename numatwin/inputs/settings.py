"""Settings from the command line: ``path=value``, another value for any field of a description.

A part of a description that another schema reads: kept as written, with its place.

Documents made from others: one over another, one with a part changed, a part of one.

None of them changes the document it is given; each part still knows where it comes from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, PlainSerializer, WithJsonSchema

from .errors import InputError
from .fields import field_names, kinds_at, near
from .yaml_file import Document, Place, parse_yaml

SHOWN_MAX = 80


@dataclass(frozen=True)
class Setting:
    """A value for the field at ``path`` (names and positions in lists, outermost first)."""

    source: str
    """The setting as it was typed, for errors."""
    path: tuple[str, ...]
    value: Any

    def inside(self) -> "Setting":
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


Model = TypeVar("Model", bound=BaseModel)


class OpenPart:
    """A mapping whose fields the enclosing schema does not know.

    It holds what a file says, or a ``model`` that was read or made elsewhere. Two are equal where
    they are written alike.
    """

    def __init__(
        self, value: Mapping[str, Any] | BaseModel, document: Document | None = None,
        place: Place = (),
    ) -> None:  # fmt: skip
        self._document, self._place = document, place
        self._raw: Mapping[str, Any] | None = None
        self.model: BaseModel | None = None
        """What was made of it last, or what it was made of; None before ``read_as``."""
        if isinstance(value, BaseModel):
            self.model = value
        else:
            self._raw = value

    @staticmethod
    def read(value: Any) -> "OpenPart":
        """From a plain value; raises ValueError where it is no mapping."""
        if isinstance(value, OpenPart):
            return value
        if not isinstance(value, (Mapping, BaseModel)):
            raise ValueError("expected a mapping")
        return OpenPart(value)

    def placed(self, document: Document, place: Place) -> "OpenPart":
        """The same, which stands at ``place`` of ``document``: its errors say so."""
        assert self._raw is not None
        return OpenPart(self._raw, document.only(place), place)

    @property
    def plain(self) -> Mapping[str, Any]:
        """As it is written in a file."""
        if self._raw is not None:
            return self._raw
        assert self.model is not None
        return self.model.model_dump(mode="json", exclude_defaults=True)

    def read_as(self, model: type[Model]) -> Model:
        """The part as ``model``; raises InputError, with file and line where these are known."""
        if not isinstance(self.model, model):
            document = self._document or Document(self.plain, "description")
            self.model = document.read_as(model, self._place)
        return self.model

    def error(self, message: str, *, expected: str | None = None) -> InputError:
        """The InputError for the whole part."""
        document = self._document or Document(self.plain, "description")
        return document.error(self._place, message, expected=expected)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenPart) and self.plain == other.plain

    def __hash__(self) -> int:
        return hash(tuple(self.plain))

    def __repr__(self) -> str:
        return f"OpenPart({dict(self.plain)!r})"


AnyPart = Annotated[
    OpenPart,
    BeforeValidator(OpenPart.read),
    PlainSerializer(lambda part: dict(part.plain)),
    WithJsonSchema({"type": "object"}, mode="validation"),
]
"""The type of a field that holds one."""


def merged(base: Document, over: Document) -> Document:
    """``base`` with all that ``over`` says: mappings key by key, anything else as a whole."""
    return Document(
        _merged(base.value, over.value),
        over.file,
        base.marks | over.marks,
        {place: base.source_of(place) for place in base.known_places()}
        | {place: over.source_of(place) for place in over.known_places()},
    )


def changed(document: Document, place: Place, value: Any, source: str) -> Document:
    """``document`` with ``value`` at ``place``; errors about it name ``source``, not a line.

    Mappings on the way are made where there are none; a position in a list must be there.
    """
    made = document.with_value(
        with_part(document.value, place, value), lambda marked: marked[: len(place)] != place
    )
    for depth in range(1, len(place)):
        if place[:depth] not in made.marks:
            made.sources.setdefault(place[:depth], source)
    made.sources[place] = source
    return made


def moved(document: Document, place: Place, to: Place) -> Document:
    """``document`` with the part at ``place`` of a mapping at ``to`` instead, where there is
    nothing yet; errors still name the line where it stands.
    """
    depth = len(place)

    def renamed(marked: Place) -> Place:
        return (*to, *marked[depth:]) if marked[:depth] == place else marked

    made = replace(
        document,
        value=with_part(_without(document.value, place), to, document.part(place)),
        marks={renamed(marked): mark for marked, mark in document.marks.items()},
        sources={renamed(marked): source for marked, source in document.sources.items()},
    )
    for length in range(1, len(to)):  # mappings that were made on the way
        if to[:length] not in made.known_places():
            made.marks[to[:length]] = document.marks.get(place, (1, 1))
    return made


def part_of(document: Document, place: Place) -> Document:
    """The part at ``place`` as a document of its own."""
    depth = len(place)
    inside = [marked for marked in document.known_places() if marked[:depth] == place]
    return Document(
        document.part(place),
        document.source_of(place),
        {marked[depth:]: document.marks[marked] for marked in inside if marked in document.marks},
        {marked[depth:]: document.source_of(marked) for marked in inside},
        (*document.within, *place),
    )


def without(document: Document, place: Place) -> Document:
    """``document`` without the part at ``place`` of a mapping."""
    return document.with_value(
        _without(document.value, place), lambda marked: marked[: len(place)] != place
    )


def _merged(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return {**base, **{key: _merged(base.get(key), value) for key, value in over.items()}}


def _without(whole: Any, place: Place) -> Any:
    key, rest = place[0], place[1:]
    if rest:
        return with_part(whole, (key,), _without(whole[key], rest))
    return {name: value for name, value in whole.items() if name != key}


def with_part(whole: Any, place: Place, value: Any) -> Any:
    """``whole`` with ``value`` at ``place``; no part of ``whole`` is changed."""
    if not place:
        return value
    key, rest = place[0], place[1:]
    if isinstance(whole, list):
        assert isinstance(key, int)
        return [
            with_part(item, rest, value) if index == key else item
            for index, item in enumerate(whole)
        ]
    parts = whole if isinstance(whole, dict) else {}
    return {**parts, key: with_part(parts.get(key), rest, value)}
