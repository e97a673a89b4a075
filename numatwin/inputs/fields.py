"""Fields of a schema, and what of a value does not fit them: each fault with its place."""

import difflib
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Protocol, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .errors import DescriptionError, Place


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


def part_at(value: Any, place: Iterable[str | int]) -> Any:
    """The part of a plain value at ``place``, None where there is none."""
    for key in place:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def put_at(whole: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Sets the value at ``path`` of nested mappings, which are made where there are none."""
    for name in path[:-1]:
        whole = whole.setdefault(name, {})
    whole[path[-1]] = value


def path_of(place: Place) -> str:
    """A place in words: ``operations.lookup.share``."""
    return ".".join(map(str, place)) or "file"


def fields(
    document: Read, failure: ValidationError, model: type[BaseModel], root: Place
) -> list[Fault]:
    """The faults that kept the part at ``root`` of a document from being a ``model``, in the order
    in which they stand in the file. Of several forms that a part may have, one fault tells.
    """
    value = document.value
    problems = failure.errors(include_url=False, include_context=True)
    located = [(_place(value, (*root, *problem["loc"])), problem) for problem in problems]
    # A list is also too short where an item of it does not fit, and a mapping is no word where one
    # of its fields does not fit: that is the fault to tell.
    located = [
        (place, problem)
        for place, problem in located
        if problem["type"] not in _OF_THE_WHOLE
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


_OF_THE_WHOLE = ("too_short", "too_long", "literal_error", "string_type", "int_type", "float_type")


def _place(value: Any, location: Place) -> Place:
    """The part of the file behind pydantic's location, which also names union branches."""
    place: Place = ()
    for key in location:
        if is_inside(value, key):
            value, place = value[key], (*place, key)
    return place


def _form(value: Any, location: Place, is_missing: bool) -> Place | None:
    """The part that may have several forms (a union) of which the location names one."""
    place: Place = ()
    for key in location[:-1] if is_missing else location:
        if not is_inside(value, key):
            return place
        value, place = value[key], (*place, key)
    return None


def overlap(one: Place, other: Place) -> bool:
    """Whether a place is the other, or lies in it, or around it."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def is_inside(value: Any, key: str | int) -> bool:
    """Whether a plain value has such a part."""
    return (isinstance(value, Mapping) and key in value) or (
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
        if isinstance(missing, int):  # of a list of so many
            least = f"at least {missing + 1} in it"
            pair = "two numbers: low, high" if place and place[-1] == "range" else least
            return Fault(place, name, expected=pair)
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


LISTED_MAX = 10  # more names than these do not help in one line


def field_names(model: type[BaseModel], place: Iterable[str | int]) -> list[str]:
    """What ``model`` may have at ``place``, in any of its forms; [] where names are free."""
    found = (_names(kind) for kind in kinds_at(model, place) if _is_model(kind))
    return sorted({name for names in found for name in names})


def kinds_at(model: type[BaseModel], place: Iterable[str | int]) -> list[Any]:
    """The types of what ``model`` may have at ``place``, in any of its forms."""
    kinds: list[Any] = [model]
    for key in place:
        kinds = [inner for kind in kinds for inner in _kinds_inside(kind, key)]
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


def _kinds_inside(kind: Any, key: str | int) -> list[Any]:
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
