"""Where a field stands that a setting names without its path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from ...inputs import Document, InputError, Setting, with_setting
from ...inputs.fields import field_names
from ...inputs.yaml_file import Place
from ...topologies import MachineDescription
from ...workloads import WorkloadDescription
from .scenario_parts import named_or_inline


def with_own_setting(document: Document, schema: type[BaseModel], setting: Setting) -> Document:
    """``with_setting`` of a scenario; an error says where the field stands in one of its parts."""
    try:
        return with_setting(document, schema, setting)
    except InputError as failure:
        name, *rest = setting.path
        if rest:
            raise
        path = next(_paths(document, schema, name), None)
        if path is not None:
            failure.expected, failure.hint = None, f"did you mean {path}?"
        raise


def _paths(document: Document, schema: type[BaseModel], name: str) -> Iterator[str]:
    """Paths of the field ``name`` in the parts of a scenario that it names or holds."""
    if name in field_names(schema, ("system",)):
        yield f"system.{name}"
    for part, model in (("workload", WorkloadDescription), ("machine", MachineDescription)):
        if document.part((part,)) is None:
            continue
        described, _ = named_or_inline(document, part)
        for place in _places(described.value, ()):
            if name in field_names(model, place):
                yield ".".join(map(str, (part, *place, name)))


def _places(value: Any, place: Place) -> Iterator[Place]:
    """The places of all mappings, the outer ones first."""
    if isinstance(value, dict):
        yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in inner:
        if isinstance(part, (dict, list)):
            yield from _places(part, (*place, key))
