"""XML read as a stream into small elements, without entities that could expand or read files.

A document type with declarations of its own is refused before it is read, so there are no entities
to expand, no defaults to copy and no other file to fetch; depth, number and size are bounded.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from ...inputs import InputError
from .source import Source

# How large a document may be. hwloc writes some five elements per hardware thread.
_DEPTH_MAX, _ELEMENTS_MAX = 256, 150_000
_PENDING_BYTES_MAX = 4 << 20  # of one tag; expat reads an unfinished one again and again


@dataclass(slots=True)
class Element:
    """An element: its attributes and children as far as they were wanted, text, line."""

    tag: str
    line: int
    attributes: dict[str, str] = field(default_factory=dict)
    children: "list[Element]" = field(default_factory=list)
    text: str = ""

    def each(self, tag: str) -> "Iterator[Element]":
        """The children of that tag."""
        return (child for child in self.children if child.tag == tag)


@dataclass(frozen=True)
class Wanted:
    """What to keep: attributes by tag, and the tags whose text counts.

    An element of another tag is left out with all that is in it, and so is one whose ``type`` is
    among ``types_left_out``.
    """

    attributes: Mapping[str, Collection[str]]
    texts: Collection[str]
    types_left_out: Collection[str]


def read_elements(source: Source, wanted: Wanted) -> Element:
    """The root of the document in ``source``; raises InputError."""
    return _Reader(source, wanted).root()


class _Reader:
    def __init__(self, source: Source, wanted: Wanted) -> None:
        self._source, self._wanted = source, wanted
        self._root: Element | None = None
        self._open: list[Element] = []
        self._skipped = 0  # how deep inside an element that is left out
        self._count = 0
        self._texts: list[str] = []
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.SkippedEntityHandler = self._entity

    def root(self) -> Element:
        fed_bytes = 0
        try:
            for chunk in self._source.chunks():
                self._parser.Parse(chunk, False)
                fed_bytes += len(chunk)
                if fed_bytes - max(self._parser.CurrentByteIndex, 0) > _PENDING_BYTES_MAX:
                    raise self._refused("a tag is too long")
            self._parser.Parse(b"", True)
        except expat.ExpatError as failure:
            what = expat.errors.messages.get(failure.code, "not well-formed")
            raise InputError(
                f"damaged or cut off XML: {what}",
                self._source.name,
                failure.lineno,
                failure.offset + 1,
            ) from None
        except (LookupError, ValueError) as failure:  # an encoding that Python does not have
            raise self._source.error(f"damaged XML: {failure}") from None
        assert self._root is not None  # expat refuses a document without an element
        return self._root

    def _refused(self, message: str, expected: str | None = None) -> InputError:
        parser = self._parser
        return self._source.error(
            message,
            parser.CurrentLineNumber,
            column=parser.CurrentColumnNumber + 1,
            expected=expected,
        )

    def _doctype(self, _name: str, _system: str | None, _public: str | None, inside: int) -> None:
        if inside:
            raise self._refused("entities and other declarations in the XML are not allowed")

    def _entity(self, name: str, _is_parameter: int) -> None:
        raise self._refused(f"an unknown entity '{name[:40]}'")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > _ELEMENTS_MAX:
            raise self._refused(f"more than {_ELEMENTS_MAX:,} XML elements")
        if len(self._open) + self._skipped >= _DEPTH_MAX:
            raise self._refused("nested too deeply", f"at most {_DEPTH_MAX} levels")
        kept = self._wanted.attributes.get(tag)
        if self._root is None:
            kept = kept or ()
        if self._skipped or kept is None or attributes.get("type") in self._wanted.types_left_out:
            self._skipped += 1
            return
        element = Element(
            tag,
            self._parser.CurrentLineNumber,
            {name: value for name, value in attributes.items() if name in kept},
        )
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)
        if tag in self._wanted.texts:
            self._texts = []
            self._parser.CharacterDataHandler = self._texts.append

    def _end(self, _tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        element = self._open.pop()
        if element.tag in self._wanted.texts:
            element.text = "".join(self._texts)
            self._parser.CharacterDataHandler = None
