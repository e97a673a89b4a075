"""A part of a description that another schema reads: kept as written, with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, PlainSerializer, WithJsonSchema

from .errors import InputError
from .yaml_file import Document, Place

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
    def read(value: Any) -> OpenPart:
        """From a plain value; raises ValueError where it is no mapping."""
        if isinstance(value, OpenPart):
            return value
        if not isinstance(value, (Mapping, BaseModel)):
            raise ValueError("expected a mapping")
        return OpenPart(value)

    def placed(self, document: Document, place: Place) -> OpenPart:
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
