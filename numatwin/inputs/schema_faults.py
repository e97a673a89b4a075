"""Faults of a value against its schema: each with its place, in this project's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .errors import DescriptionError, Place
from .fields import field_names, near


class Fault(NamedTuple):
    """One fault: of the part at ``place``, of its name, or of a field that is missing there."""

    place: Place
    message: str
    token: str | None = None
    expected: str | None = None
    of_name: bool = False


class Read(Protocol):
    """What was read: a plain value, where its parts stand, and what they are called."""

    value: Any

    @property
    def marks(self) -> Mapping[Place, tuple[int, int]]:
        """Line and column of each part."""

    @property
    def within(self) -> Place:
        """The part of its file that it is."""

    def name_of(self, place: Place, /) -> str:
        """A part's name in messages."""

    def part(self, place: Place, /) -> Any:
        """The plain value at ``place``, None where there is none."""


def part_at(value: Any, place: Place) -> Any:
    """The part of a plain value at ``place``, None where there is none."""
    for key in place:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def path_of(place: Place) -> str:
    """A place in words: ``operations.lookup.share``."""
    return ".".join(map(str, place)) or "file"


def schema_faults(
    document: Read, failure: ValidationError, model: type[BaseModel], root: Place
) -> list[Fault]:
    """The faults that kept the part at ``root`` of a document from being a ``model``, in the order
    in which they stand in the file. Of several forms that a part may have, one fault tells.
    """
    value = document.value
    problems = failure.errors(include_url=False, include_context=True)
    located = [(_place(value, (*root, *problem["loc"])), problem) for problem in problems]
    # A list is also too short where an item of it does not fit: that is the fault to tell.
    located = [
        (place, problem)
        for place, problem in located
        if problem["type"] not in ("too_short", "too_long")
        or not any(len(other) > len(place) and other[: len(place)] == place for other, _ in located)
    ]
    located.sort(key=lambda pair: document.marks.get(pair[0], (1, 1)))
    faults, seen = [], set[tuple[object, ...]]()
    for place, problem in located:
        form = _form(value, (*root, *problem["loc"]), problem["type"] == "missing")
        fault = _fault(document, place, problem, model, root)
        if form not in seen and fault not in faults:
            faults.append(fault)
        if form is not None:
            seen.add(form)
    # A field that is missing because it is misspelt is one fault: the misspelt one tells more.
    meant = {
        (*fault.place[:-1], fault.expected.strip("'"))
        for fault in faults
        if fault.of_name and fault.expected is not None
    }
    return [
        fault
        for fault in faults
        if not (fault.message.startswith("missing field") and fault.place in meant)
    ]


def _place(value: Any, location: Place) -> Place:
    """The part of the file behind pydantic's location, which also names union branches."""
    place: Place = ()
    for key in location:
        if _is_inside(value, key):
            value, place = value[key], (*place, key)
    return place


def _form(value: Any, location: Place, is_missing: bool) -> Place | None:
    """The part that may have several forms (a union) of which the location names one."""
    place: Place = ()
    for key in location[:-1] if is_missing else location:
        if not _is_inside(value, key):
            return place
        value, place = value[key], (*place, key)
    return None


def _is_inside(value: Any, key: str | int) -> bool:
    return (isinstance(value, dict) and key in value) or (
        isinstance(value, list) and isinstance(key, int) and key < len(value)
    )


def _inside(document: Read, place: Place) -> str:
    return f" in {document.name_of(place)}" if (*document.within, *place) else ""


def _fault(
    document: Read, place: Place, problem: ErrorDetails, model: type[BaseModel], root: Place
) -> Fault:
    kind, name = problem["type"], document.name_of(place)
    if kind == "extra_forbidden":
        names = field_names(model, place[len(root) : -1]) if place else []
        return Fault(
            place,
            f"unknown field '{place[-1] if place else ''}'{_inside(document, place[:-1])}",
            expected=near(place[-1], names) if place else None,
            of_name=True,
        )
    if kind == "missing":
        missing = problem["loc"][-1]
        return Fault((*place, missing), f"missing field '{missing}'{_inside(document, place)}")
    if kind == "union_tag_invalid":
        tag = problem["ctx"]["discriminator"].strip("'")
        found_tag, known = str(problem["ctx"]["tag"]), f"one of {problem['ctx']['expected_tags']}"
        return Fault((*place, tag), f"{name}: unknown {tag}", found_tag, known)
    if kind == "union_tag_not_found":
        tag = problem["ctx"]["discriminator"].strip("'")
        return Fault((*place, tag), f"missing field '{tag}' in {name}")
    error = problem.get("ctx", {}).get("error")
    if isinstance(error, DescriptionError):  # of a check that knows which field is at fault
        place = (*place, *error.place)
        name = document.name_of(place)
    raw = document.part(place)
    token = str(raw) if isinstance(raw, (str, int, float, bool)) else None
    if expected := expected_by(problem):
        return Fault(place, name, token, expected)
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if message.startswith("expected ") and token is not None:
        return Fault(place, name, token, message.removeprefix("expected "))
    return Fault(place, f"{name}: {message}", token)


# By pydantic's type of error; the names in braces are those of its context.
_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_too_long": "text, at most {max_length} long",
    "string_too_short": "text, at least {min_length} long",
    "string_type": "text",
    "too_long": "at most {max_length} in it",
    "too_short": "at least {min_length} in it",
    "tuple_type": "a list",
}


def expected_by(problem: ErrorDetails) -> str | None:
    """What was expected instead of the value at fault; None where its message says it."""
    words = _EXPECTED.get(problem["type"])
    if words is None:
        return None
    context = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in problem.get("ctx", {}).items()
    }
    return words.format(**context)
