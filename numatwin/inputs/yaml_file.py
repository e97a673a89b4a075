"""YAML that a user wrote: loaded safely, within limits, every error with its line and column.

The stream is first read as events, without building anything, so that a file too large, too deep
or swollen by aliases is refused before it costs memory. Values stay plain: mappings, lists, text,
whole numbers, floats, booleans, null; no tags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from .errors import InputError
from .fields import field_names, near
from .regular import check_regular
from .wording import expected_by

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str")}
_NUMBER_TAGS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
# A number as YAML 1.2 has it, and people write it; YAML 1.1 wants a point and a sign in it.
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+", re.ASCII)
_TAG_DIRECTIVE = re.compile(r"^%TAG\b", re.MULTILINE)

Place = tuple[str | int, ...]


class Strict(BaseModel):
    """A part of a file's schema: unknown fields are refused, a read part does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


Model = TypeVar("Model", bound=BaseModel)


class DescriptionError(ValueError):
    """A description that reads well but makes no sense; ``place`` names the part at fault."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True)
class Limits:
    """How large a file may be; the defaults hold any machine of 1,024 nodes."""

    bytes_max: int = 8 * 2**20
    depth_max: int = 32
    values_max: int = 1_500_000
    aliases_max: int = 1_000


@dataclass
class Document:
    """A loaded file: its plain value, and where each of its parts stands.

    ``sources``: what the parts come from that do not come from ``file``; a part from elsewhere than
    a file (``--set path=value``) has no mark.
    """

    value: Any
    file: str
    marks: dict[Place, tuple[int, int]] = field(default_factory=dict)
    sources: dict[Place, str] = field(default_factory=dict)

    def source_of(self, place: Place) -> str:
        """What the part at ``place`` comes from: a file, or a setting."""
        return self.sources.get(self._known(place), self.file)

    def known_places(self) -> set[Place]:
        """The places that are known to come from somewhere."""
        return {*self.marks, *self.sources}

    def _known(self, place: Place) -> Place:
        """The place itself, or the nearest enclosing one that is known."""
        while place and place not in self.marks and place not in self.sources:
            place = place[:-1]
        return place

    def error(
        self, place: Place, message: str, *, token: str | None = None, expected: str | None = None
    ) -> InputError:
        """The InputError for the part at ``place``, or at its nearest enclosing part."""
        line, column = self.marks.get(self._known(place), (None, None))
        return InputError(message, self.source_of(place), line, column, token, expected)

    def part(self, place: Place) -> Any:
        """The plain value at ``place``, None where there is none."""
        value = self.value
        for key in place:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def written_place(self, place: Place) -> Place:
        """The place itself; of an item of a list that is written as one plain value, the list's."""
        is_item = bool(place) and isinstance(place[-1], int)
        return place[:-1] if is_item and isinstance(self.part(place[:-1]), str) else place

    def only(self, place: Place) -> Document:
        """The document with nothing but the part at ``place``, which keeps its place."""
        value = self.part(place)
        for key in reversed(place):
            value = {key: value}

        def kept(at: Place) -> bool:
            shorter = min(len(at), len(place))
            return at[:shorter] == place[:shorter]

        return Document(
            value,
            self.file,
            {at: mark for at, mark in self.marks.items() if kept(at)},
            {at: source for at, source in self.sources.items() if kept(at)},
        )

    def read_as(self, model: type[Model], place: Place = ()) -> Model:
        """The document, or its part at ``place``, as ``model``; raises InputError for the first
        thing that does not fit.
        """
        try:
            return model.model_validate(self.part(place))
        except ValidationError as failure:
            raise self._first_error(failure, model, place) from None

    def _first_error(
        self, failure: ValidationError, model: type[BaseModel], root: Place
    ) -> InputError:
        problems = failure.errors(include_url=False, include_context=True)
        # The one that stands first in the file is the one to mend first.
        located = [(self._place((*root, *problem["loc"])), problem) for problem in problems]
        # A list is also too short where an item of it does not fit: that is the fault to tell.
        located = [
            (place, problem)
            for place, problem in located
            if problem["type"] not in ("too_short", "too_long")
            or not any(len(at) > len(place) and at[: len(place)] == place for at, _ in located)
        ]
        place, problem = min(located, key=lambda pair: self._mark_of(pair[0]))
        kind, name = problem["type"], ".".join(map(str, place)) or "file"
        if kind == "extra_forbidden":
            return self.error(
                place,
                f"unknown field '{place[-1] if place else ''}'{self._near(place)}",
                expected=near(place[-1], field_names(model, place[len(root) : -1]))
                if place
                else None,
            )
        if kind == "missing":
            missing = problem["loc"][-1]
            return self.error(place, f"missing field '{missing}'{' in ' + name if place else ''}")
        if kind == "union_tag_invalid":
            tag = problem["ctx"]["discriminator"].strip("'")
            return self.error(
                (*place, tag),
                f"{name}: unknown {tag}",
                token=str(problem["ctx"]["tag"]),
                expected=f"one of {problem['ctx']['expected_tags']}",
            )
        if kind == "union_tag_not_found":
            tag = problem["ctx"]["discriminator"].strip("'")
            return self.error(place, f"missing field '{tag}' in {name}")
        error = problem.get("ctx", {}).get("error")
        if isinstance(error, DescriptionError):  # of a check that knows which field is at fault
            place = (*place, *error.place)
            name = ".".join(map(str, place))
        raw = self.part(place)
        token = str(raw) if isinstance(raw, (str, int, float, bool)) else None
        if expected := expected_by(problem):
            return self.error(place, name, token=token, expected=expected)
        message = problem["msg"].removeprefix("Value error, ")
        message = message.removeprefix("Assertion failed, ")
        if message.startswith("expected ") and token is not None:
            return self.error(place, name, token=token, expected=message.removeprefix("expected "))
        return self.error(place, f"{name}: {message}", token=token)

    def _near(self, place: Place) -> str:
        return f" in {'.'.join(map(str, place[:-1]))}" if len(place) > 1 else ""

    def _place(self, location: Place) -> Place:
        """The part of the file behind pydantic's location, which also names union branches."""
        place: Place = ()
        value = self.value
        for key in location:
            inside = (isinstance(value, dict) and key in value) or (
                isinstance(value, list) and isinstance(key, int) and key < len(value)
            )
            if inside:
                value, place = value[key], (*place, key)
        return place

    def _mark_of(self, place: Place) -> tuple[int, int]:
        return self.marks.get(place, (1, 1))


def load_yaml(path: str | Path, limits: Limits | None = None) -> Document:
    """The document in the file at ``path``; raises InputError, with line and column."""
    limits = limits or Limits()
    name = str(path)
    try:
        check_regular(path)
        with open(path, "rb") as stream:
            content = stream.read(limits.bytes_max + 1)
    except (OSError, ValueError) as failure:  # ValueError: a name with a NUL byte
        reason = failure.strerror if isinstance(failure, OSError) else None
        raise InputError(f"cannot be read: {reason or failure}", name) from None
    return parse_yaml(content, name, limits)


def parse_yaml(content: bytes | str, name: str, limits: Limits | None = None) -> Document:
    """The document in ``content``; ``name`` stands in errors. Raises InputError."""
    limits = limits or Limits()
    size = len(content)
    if size > limits.bytes_max:
        raise InputError(f"too large: expected at most {limits.bytes_max:,} bytes", name)
    if isinstance(content, bytes):
        if b"\0" in content:
            raise InputError("not text: holds a NUL byte", name, expected="UTF-8")
        try:
            content = content.decode("utf-8-sig")
        except UnicodeDecodeError as failure:
            before = failure.object[: failure.start]
            raise InputError(
                "not text",
                name,
                before.count(b"\n") + 1,
                token=f"byte 0x{failure.object[failure.start]:02x}",
                expected="UTF-8",
            ) from None
    # The parser looks through all tag directives for each further one.
    if directive := _TAG_DIRECTIVE.search(content):
        line = content.count("\n", 0, directive.start()) + 1
        raise InputError("tag directives are not allowed", name, line, 1, token="%TAG")
    try:
        _check_events(content, name, limits)
        root = yaml.compose(content, Loader=_Loader)
    except yaml.MarkedYAMLError as failure:
        mark = failure.problem_mark or failure.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise InputError(
            f"not YAML: {failure.problem or failure.context}", name, line, column
        ) from None
    except yaml.YAMLError as failure:
        raise InputError(f"not YAML: {str(failure).splitlines()[0]}", name) from None
    except (ValueError, RecursionError) as failure:
        raise InputError(f"not YAML: {failure}", name) from None
    if root is None:
        raise InputError("empty file: expected a mapping", name, 1, 1)
    _check_expanded(root, name, limits)
    builder = _Builder(name, limits)
    value = builder.build(root, ())
    return Document(value, name, builder.marks)


def _check_events(content: str, name: str, limits: Limits) -> None:
    """Refuses what is too deep, too long or too entangled, at the cost of a scan."""
    depth = aliases = 0
    for count, event in enumerate(yaml.parse(content, Loader=_Loader)):
        mark: Any = event.start_mark
        where = (name, mark.line + 1, mark.column + 1)
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
            if depth > limits.depth_max:
                raise InputError(
                    "nested too deeply", *where, expected=f"at most {limits.depth_max} levels"
                )
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
            if aliases > limits.aliases_max:
                raise InputError(
                    "too many aliases", *where, expected=f"at most {limits.aliases_max}"
                )
        if count >= limits.values_max:
            raise InputError("too many values", *where, expected=f"at most {limits.values_max:,}")


def _check_expanded(root: yaml.Node, name: str, limits: Limits) -> None:
    """Refuses aliases that lead back to themselves or would swell the file, before they do."""
    sizes: dict[int, int] = {}
    under_way: set[int] = set()

    def size(node: yaml.Node, depth: int) -> int:
        if isinstance(node, yaml.ScalarNode):
            return 1
        if id(node) not in sizes:
            where = (name, node.start_mark.line + 1, node.start_mark.column + 1)
            if id(node) in under_way:
                raise InputError("an alias inside its own anchor", *where)
            if depth > limits.depth_max:
                raise InputError("nested too deeply", *where)
            under_way.add(id(node))
            parts = node.value
            if isinstance(node, yaml.MappingNode):
                parts = [value for _, value in node.value]
            sizes[id(node)] = 1 + sum(size(part, depth + 1) for part in parts)
            if sizes[id(node)] > limits.values_max:
                raise InputError(
                    "aliases swell the file",
                    *where,
                    expected=f"at most {limits.values_max:,} values",
                )
            under_way.discard(id(node))
        return sizes[id(node)]

    size(root, 0)


class _Builder:
    """Plain values from composed nodes, with the mark of each."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.name, self.limits = name, limits
        self.marks: dict[Place, tuple[int, int]] = {}
        self._constructor = yaml.constructor.SafeConstructor()

    def build(self, node: yaml.Node, place: Place) -> Any:
        mark = (node.start_mark.line + 1, node.start_mark.column + 1)
        self.marks[place] = mark
        if len(place) > self.limits.depth_max:
            raise self._refused(node, "nested too deeply")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        value: Any
        if isinstance(node, yaml.SequenceNode):
            if node.tag != "tag:yaml.org,2002:seq":
                raise self._refused(node, f"tag {node.tag} is not allowed")
            value = [self.build(item, (*place, index)) for index, item in enumerate(node.value)]
        else:
            value = self._mapping(node, place)
        return value

    def _mapping(self, node: yaml.Node, place: Place) -> dict[Any, Any]:
        if node.tag != "tag:yaml.org,2002:map":
            raise self._refused(node, f"tag {node.tag} is not allowed")
        value: dict[Any, Any] = {}
        for key_node, item in node.value:
            if (
                not isinstance(key_node, yaml.ScalarNode)
                or key_node.tag == "tag:yaml.org,2002:merge"
            ):
                raise self._refused(key_node, "expected a plain key")
            key = self._scalar(key_node)
            if key in value:
                raise self._refused(key_node, f"'{key}' stands twice in one mapping")
            value[key] = self.build(item, (*place, key))
            self.marks[(*place, key)] = (
                (item.start_mark.line + 1, item.start_mark.column + 1)
                if isinstance(item, yaml.ScalarNode)
                else (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            )
        return value

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag in _PLAIN_TAGS:
            if not node.style and _NUMBER.fullmatch(node.value):
                return float(node.value)
            # YAML 1.1 reads '1:30' as a number to the base 60: text here, as in YAML 1.2.
            if node.tag in _NUMBER_TAGS and ":" in node.value:
                return str(node.value)
            try:
                return self._constructor.construct_object(node)
            except (ValueError, ArithmeticError, LookupError, yaml.YAMLError):
                raise self._refused(node, f"not a value: '{node.value[:40]}'") from None
        if node.tag == "tag:yaml.org,2002:timestamp":
            return str(node.value)
        raise self._refused(node, f"tag {node.tag} is not allowed")

    def _refused(self, node: yaml.Node, message: str) -> InputError:
        return InputError(message, self.name, node.start_mark.line + 1, node.start_mark.column + 1)
