"""YAML that a user wrote: loaded safely, within limits, every error with its line and column.

The stream is first read as events, without building anything, so that a file too large, too deep
or swollen by aliases is refused before it costs memory. Values stay plain: mappings, lists, text,
whole numbers, floats, booleans, null; no tags.
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from .errors import DescriptionError as DescriptionError
from .errors import InputError
from .errors import Place as Place
from .fields import fields, overlap, part_at, path_of
from .text_lines import check_regular, decoded

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str")}
_NUMBER_TAGS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
# A number as YAML 1.2 has it, and people write it; YAML 1.1 wants a point and a sign in it.
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+", re.ASCII)
# What would act on a terminal or a page instead of being shown there; bidirectional controls too.
_UNSEEN = re.compile(
    "[\\0-\\x08\\x0b-\\x1f\\x7f-\\x84\\x86-\\x9f"
    "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]"
)
# What no YAML may hold; its parser does not say where it stands.
_NOT_YAML = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
# Above it a float is not distinguished from whole numbers next to it.
_EXACT_MAX = 2**53
_LOGGER = logging.getLogger("numatwin")
_TAG_DIRECTIVE = re.compile(r"^%TAG\b", re.MULTILINE)


class Strict(BaseModel):
    """A part of a file's schema: unknown fields are refused, a read part does not change."""

    # Most commands read a few of all parts: each gets its validator when it is first read.
    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, defer_build=True
    )

    @model_validator(mode="after")
    def _checked(self) -> Self:
        self._fits()
        return self

    def _fits(self) -> None:
        """Raises ValueError, or DescriptionError of a field, where its fields do not fit."""


Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Limits:
    """How large a file may be; the defaults hold any machine of 1,024 nodes."""

    bytes_max: int = 8 * 2**20
    depth_max: int = 32
    values_max: int = 1_500_000
    aliases_max: int = 1_000


class ValueMark(tuple[int, int]):
    """Line and column of a plain value; ``key``: those of its name in a mapping."""

    key: tuple[int, int]


def key_mark(mark: tuple[int, int]) -> tuple[int, int]:
    """Line and column of the name of a part."""
    return mark.key if isinstance(mark, ValueMark) else mark


@dataclass
class Document:
    """A loaded file: its plain value, and where each of its parts stands.

    ``sources``: what the parts come from that do not come from ``file``; a part from elsewhere than
    a file (``--set path=value``) has no mark. ``within``: the part of its file that it is.
    """

    value: Any
    file: str
    marks: dict[Place, tuple[int, int]] = field(default_factory=dict)
    sources: dict[Place, str] = field(default_factory=dict)
    within: Place = ()

    def name_of(self, place: Place) -> str:
        """The part at ``place`` in words: its path in the file."""
        return path_of((*self.within, *place))

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
        self,
        place: Place,
        message: str,
        *,
        token: str | None = None,
        expected: str | None = None,
        of_name: bool = False,
    ) -> InputError:
        """The InputError for the part at ``place``, or at its nearest enclosing part; ``of_name``:
        for the name that it has.
        """
        mark = self.marks.get(self._known(place))
        line, column = (None, None) if mark is None else key_mark(mark) if of_name else mark
        source = self.source_of(place)
        return InputError(message, source, line, column, token, expected, place)

    def part(self, place: Place) -> Any:
        """The plain value at ``place``, None where there is none."""
        return part_at(self.value, place)

    def written_place(self, place: Place) -> Place:
        """The place itself; of an item of a list that is written as one plain value, the list's."""
        is_item = bool(place) and isinstance(place[-1], int)
        return place[:-1] if is_item and isinstance(self.part(place[:-1]), str) else place

    def only(self, place: Place) -> "Document":
        """The document with nothing but the part at ``place``, which keeps its place."""
        value = self.part(place)
        for key in reversed(place):
            value = {key: value}

        return self.with_value(value, lambda marked: overlap(marked, place))

    def with_value(self, value: Any, known: Callable[[Place], bool]) -> "Document":
        """With another ``value``, of which the ``known`` places come from where they did."""
        return replace(
            self,
            value=value,
            marks={marked: mark for marked, mark in self.marks.items() if known(marked)},
            sources={marked: source for marked, source in self.sources.items() if known(marked)},
        )

    def read_as(self, model: type[Model], place: Place = ()) -> Model:
        """The document, or its part at ``place``, as ``model``; raises InputError for the first
        thing that does not fit, with the ``others``.
        """
        try:
            return model.model_validate(self.part(place))
        except ValidationError as failure:
            faults = fields(self, failure, model, place)
            first, *others = (
                self.error(
                    fault.place,
                    fault.message,
                    token=fault.token,
                    expected=fault.expected,
                    of_name=fault.of_name,
                )
                for fault in faults
            )
            first.others = tuple(others)
            raise first from None


def load_yaml(
    path: str | Path, limits: Limits | None = None, refused: list[InputError] | None = None
) -> Document:
    """The document in the file at ``path``; raises InputError, with line and column.

    With ``refused``, values that are refused are added there and stand as null.
    """
    limits = limits or Limits()
    name = str(path)
    _LOGGER.info("reading %r", name)
    try:
        check_regular(path)
        with open(path, "rb") as stream:
            content = stream.read(limits.bytes_max + 1)
    except (OSError, ValueError) as failure:  # ValueError: a name with a NUL byte
        reason = failure.strerror if isinstance(failure, OSError) else None
        raise InputError(f"cannot be read: {reason or failure}", name) from None
    return parse_yaml(content, name, limits, refused)


def parse_yaml(
    content: bytes | str,
    name: str,
    limits: Limits | None = None,
    refused: list[InputError] | None = None,
) -> Document:
    """The document in ``content``; ``name`` stands in errors. Raises InputError; ``refused``: see
    ``load_yaml``.
    """
    limits = limits or Limits()
    size = len(content)
    if size > limits.bytes_max:
        raise InputError(f"too large: expected at most {limits.bytes_max:,} bytes", name)
    if isinstance(content, bytes):
        content = decoded(content, name)
    if found := _NOT_YAML.search(content):
        line, column = _line_and_column(content, found.start())
        message = f"not text: control character U+{ord(found[0]):04X}"
        raise InputError(message, name, line, column, expected="UTF-8")
    # The parser looks through all tag directives for each further one.
    if directive := _TAG_DIRECTIVE.search(content):
        line, column = _line_and_column(content, directive.start())
        raise InputError("tag directives are not allowed", name, line, column, token="%TAG")
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
    builder = _Builder(name, limits, refused)
    value = builder.build(root, ())
    return Document(value, name, builder.marks)


def _line_and_column(content: str, position: int) -> tuple[int, int]:
    line = content.count("\n", 0, position) + 1
    return line, position - content.rfind("\n", 0, position)


def _mark_of(begun: yaml.Node | yaml.Event) -> tuple[int, int]:
    """Line and column where it begins."""
    mark: Any = begun.start_mark
    return mark.line + 1, mark.column + 1


def _check_events(content: str, name: str, limits: Limits) -> None:
    """Refuses what is too deep, too long or too entangled, at the cost of a scan."""
    depth = aliases = 0
    for count, event in enumerate(yaml.parse(content, Loader=_Loader)):
        where = (name, *_mark_of(event))
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
            where = (name, *_mark_of(node))
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
                    "aliases expand to too many values",
                    *where,
                    expected=f"at most {limits.values_max:,} values",
                )
            under_way.discard(id(node))
        return sizes[id(node)]

    size(root, 0)


class _Builder:
    """Plain values from composed nodes, with the mark of each."""

    def __init__(self, name: str, limits: Limits, refused: list[InputError] | None) -> None:
        self.name, self.limits, self.refused = name, limits, refused
        self.marks: dict[Place, tuple[int, int]] = {}
        self._constructor = yaml.constructor.SafeConstructor()

    def build(self, node: yaml.Node, place: Place) -> Any:
        self.marks[place] = _mark_of(node)
        if len(place) > self.limits.depth_max:
            raise self._refused(node, "nested too deeply")
        try:
            return self._built(node, place)
        except InputError as failure:
            if self.refused is None:
                raise
            failure.place = place
            self.refused.append(failure)
            return None

    def _built(self, node: yaml.Node, place: Place) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        is_list = isinstance(node, yaml.SequenceNode)
        if node.tag != f"tag:yaml.org,2002:{'seq' if is_list else 'map'}":
            raise self._refused(node, f"tag {node.tag} is not allowed")
        if is_list:
            return [self.build(item, (*place, index)) for index, item in enumerate(node.value)]
        return self._mapping(node, place)

    def _mapping(self, node: yaml.Node, place: Place) -> dict[Any, Any]:
        value: dict[Any, Any] = {}
        first_line: dict[Any, int] = {}
        for key_node, item in node.value:
            try:
                key = self._key(key_node, first_line)
            except InputError as failure:
                if self.refused is None:
                    raise
                self.refused.append(failure)
                continue
            first_line[key] = key_node.start_mark.line + 1
            value[key] = self.build(item, (*place, key))
            named = _mark_of(key_node)
            self.marks[(*place, key)] = named
            if isinstance(item, yaml.ScalarNode):
                mark = ValueMark(_mark_of(item))
                mark.key = named
                self.marks[(*place, key)] = mark
        return value

    def _key(self, node: yaml.Node, first_line: Mapping[Any, int]) -> Any:
        """A key that is plain and not there yet: ``first_line`` has those that are."""
        if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:merge":
            raise self._refused(node, "expected a plain key")
        key = self._scalar(node)
        if key in first_line:
            raise self._refused(node, f"duplicate key '{key}' (first at line {first_line[key]})")
        return key

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if found := _UNSEEN.search(node.value):
            code = f"U+{ord(found[0]):04X}"
            raise self._refused(node, f"control character {code}: expected printable text")
        if node.tag in _PLAIN_TAGS:
            if not node.style and _NUMBER.fullmatch(node.value):
                return _number(node.value)
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
        return InputError(message, self.name, *_mark_of(node))


def _number(text: str) -> float | int:
    """Of a number with an exponent; whole ones are as whole as they would be in digits: ``300e6``
    is a number of keys.
    """
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= _EXACT_MAX else value
