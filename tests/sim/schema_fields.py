"""Every field of the schemas."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

Field = tuple[str, str]


def fields_of(model: type[BaseModel]) -> set[Field]:
    """(class, field) of all that a schema holds, however deep; parts that hold parts are left out,
    as theirs are there."""
    found: dict[Field, None] = {}
    _collect(model, found, set())
    return set(found)


def _collect(model: type[BaseModel], found: dict[Field, None], seen: set[type]) -> None:
    if model in seen:
        return
    seen.add(model)
    for name, field in model.model_fields.items():
        inner = list(_models(field.annotation))
        if not inner:
            found[model.__name__, field.alias or name] = None
        for part in inner:
            _collect(part, found, seen)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
