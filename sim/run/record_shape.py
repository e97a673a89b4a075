"""The shape of those parts of a record that are plain data: what who reads them relies on.

A record that was changed by hand, or damaged, is refused as it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel


class _Node(BaseModel):
    id: int | str
    cpus: list[int] | None = None


class _Hub(BaseModel):
    id: int | str


class _Link(BaseModel):
    ends: tuple[int | str, int | str]


class _Machine(BaseModel):
    name: str
    nodes: list[_Node] | None = None
    groups: list[str | int | None] | None = None
    hubs: list[_Hub] | None = None
    links: list[_Link] | None = None


class _Variant(BaseModel):
    value: Any


class _Assumption(BaseModel):
    name: str
    value: Any
    unit: str
    source: str
    low: _Variant | None = None
    high: _Variant | None = None


class _Parts(BaseModel):
    machine: _Machine
    assumptions: list[_Assumption] = []


def check_shape(head: Mapping[str, Any]) -> None:
    """Raises pydantic's ValidationError."""
    _Parts.model_validate(head)
