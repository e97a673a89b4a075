"""Structs of the compiled kernel (``described.hpp``), for Python code that reads them often."""

from types import SimpleNamespace
from typing import Any, ClassVar, Protocol, TypeVar, cast


class Described(Protocol):
    """A struct that knows its fields' names."""

    FIELDS: ClassVar[tuple[str, ...]]


Struct = TypeVar("Struct", bound=Described)


def plain(struct: Struct) -> Struct:
    """Its fields as Python's own values, read once: the struct itself makes a new list of a vector
    each time it is asked."""
    return cast(Struct, _plain(struct))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    names = getattr(value, "FIELDS", None)
    if names is None:
        return value
    return SimpleNamespace(**{name: _plain(getattr(value, name)) for name in names})
