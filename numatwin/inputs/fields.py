"""The fields of a schema at a place: to detect a misspelt field, and to suggest the right one."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

LISTED_MAX = 10  # more names than these do not help in one line


def field_names(model: type[BaseModel], place: Iterable[str | int]) -> list[str]:
    """What ``model`` may have at ``place``, in any of its forms; [] where names are free."""
    found = (_names(kind) for kind in kinds_at(model, place) if _is_model(kind))
    return sorted({name for names in found for name in names})


def kinds_at(model: type[BaseModel], place: Iterable[str | int]) -> list[Any]:
    """The types of what ``model`` may have at ``place``, in any of its forms."""
    kinds: list[Any] = [model]
    for key in place:
        kinds = [inner for kind in kinds for inner in _inside(kind, key)]
    return kinds


def near(name: object, names: Iterable[str]) -> str | None:
    """What was meant by ``name``, as an error says it; None where that is unclear."""
    known = list(names)
    if name in known:  # of another form: it does not belong to this one
        return None
    if close := known if len(known) == 1 else difflib.get_close_matches(str(name), known, 1):
        return f"'{close[0]}'"
    return f"one of {', '.join(known)}" if 0 < len(known) <= LISTED_MAX else None


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _names(model: type[BaseModel]) -> dict[str, Any]:
    """The annotation of each field, by the name that it has in a file."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _inside(kind: Any, key: str | int) -> list[Any]:
    """What may stand under ``key`` of a part of this kind."""
    if _is_model(kind):
        names = _names(kind)
        return _forms(names[str(key)]) if key in names else []
    origin, inner = get_origin(kind), get_args(kind)
    if origin is dict:
        return _forms(inner[1])
    if origin in (list, tuple):
        return [form for part in inner if part is not Ellipsis for form in _forms(part)]
    return []


def _forms(annotation: Any) -> list[Any]:
    """The alternatives that an annotation stands for."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _forms(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [form for part in get_args(annotation) for form in _forms(part)]
    return [annotation]
