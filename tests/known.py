"""A value that must be there, for a test and for the checker of its types."""

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    assert value is not None
    return value
