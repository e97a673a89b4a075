"""All errors of a file at once: after each, a stand-in takes the place of the part at fault, and
the file is read again.

An error at a part that was replaced, around it or inside it, may come from the stand-in: it is not
reported. Nor is that the value of a misspelt field does not suit the field that was meant, as the
guess may be wrong; errors inside the value are.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .errors import InputError, Place
from .fields import overlap
from .quantities import DIMENSIONS
from .settings import changed, moved, without
from .yaml_file import Document, key_mark

READ_MAX = 400  # a file with more faults than this allows is reported with the first ones

_SAMPLES = (*(example for _, example in DIMENSIONS.values()), 1, 0.5, "x", True, [], {})
_DELETED = object()


@dataclass
class _Mending:
    """A document whose parts at fault are replaced one after another."""

    document: Document
    found: list[InputError] = field(default_factory=list)
    stand_ins: dict[Place, Iterator[object]] = field(default_factory=dict)
    guessed: set[Place] = field(default_factory=set)  # where misspelt fields were moved

    def add(self, failure: InputError) -> bool:
        """Tells the errors, replaces their parts; False where no part can be at fault."""
        errors = [failure, *failure.others]
        meant = {
            place: name
            for error in errors
            if (place := self._place(error)) and (name := _renamed(error, place)) is not None
        }
        for error in errors:
            place = self._place(error)
            if place is None:
                if not _names_stand_in(error):
                    self.found.append(error)
                return False
            replaced = any(overlap(place, at) for at in self.stand_ins)  # around or inside it, too
            if not (replaced or place in meant.values() or place in self.guessed):
                self.found.append(error)
        at_fault = {place: error for error in errors if (place := self._place(error))}
        repaired = [self._replace(place, value, meant) for place, value in at_fault.items()]
        return all(repaired)

    def _replace(self, place: Place, failure: InputError, meant: dict[Place, Place]) -> bool:
        """Another value for the part; for what is around it where none is left."""
        to = meant.get(place)
        if to is not None and self.document.part(to) is None:
            self.document = moved(self.document, place, to)
            self.guessed.add(to)
            return True
        if place in meant.values():
            return True
        for length in range(len(place), 0, -1):
            at = place[:length]
            around = self.document.part(at[:-1])
            if not (
                around is None or isinstance(around, list if isinstance(at[-1], int) else dict)
            ):
                continue  # such as a list that is short for a mapping
            wanted = _expected(failure) if at == place else []
            choices = self.stand_ins.setdefault(at, _choices(self.document, at, wanted))
            value = next(choices, None)
            if value is _DELETED:
                self.document = without(self.document, at)
                return True
            if value is not None:
                self.document = changed(self.document, at, value, self.document.file)
                return True
        return False

    def _place(self, failure: InputError) -> Place | None:
        """The part of this document at fault; None where the error is elsewhere, or of no part."""
        marks, mark = self.document.marks, (failure.line, failure.column)
        if failure.place is not None and failure.file == self.document.source_of(failure.place):
            known = failure.place
            while known and known not in marks:
                known = known[:-1]
            stands = marks.get(known)
            if failure.line is None or (stands and mark in (stands, key_mark(stands))):
                return failure.place
        if failure.file != self.document.file:
            return None
        found = [place for place, marked in marks.items() if marked == mark and place]
        return max(found, key=len, default=None)


def every_error(
    document: Document, read: Callable[[Document], object]
) -> tuple[list[InputError], Document]:
    """All errors that ``read`` raises for ``document``, in the order of lines, and the document
    with stand-ins in place of what is wrong.
    """
    mending = _Mending(document)
    for _ in range(READ_MAX):
        try:
            read(mending.document)
            break
        except InputError as failure:
            if not mending.add(failure):
                break
    return in_order(mending.found), mending.document


def in_order(errors: list[InputError]) -> list[InputError]:
    """Sorted by file, line and column, each once."""
    once = {str(error): error for error in errors}.values()
    return sorted(once, key=lambda error: (error.file or "", error.line or 0, error.column or 0))


def _names_stand_in(failure: InputError) -> bool:
    """Whether it is of a file that is not there, as a stand-in is its name."""
    names = tuple(f"/{one}" for one in _SAMPLES if isinstance(one, str))
    return failure.file is not None and f"/{failure.file}".endswith(names)


def _renamed(failure: InputError, place: Place) -> Place | None:
    """The place that an unknown field was meant for; None where that is unclear."""
    expected = failure.expected or ""
    if failure.message.startswith("unknown field") and expected[:1] == expected[-1:] == "'":
        return (*place[:-1], expected.strip("'"))
    return None


def _expected(failure: InputError) -> list[object]:
    """Values that an error says it expected."""
    text = failure.expected or failure.message.partition("expected ")[2]
    found: list[object] = re.findall(r"'([^']+)'", text)
    if text.startswith("one of "):
        found += text.removeprefix("one of ").split(", ")
    found += [int(digits.replace(",", "")) for digits in re.findall(r"\d[\d,]*\b", text)]
    return found


def _choices(document: Document, place: Place, wanted: list[object]) -> Iterator[object]:
    """What may stand at ``place`` instead: what is ``wanted``; nothing, where a mapping may lack
    it; a sample.
    """
    around = document.part(place[:-1])
    if not (isinstance(place[-1], str) and place[-1] in wanted):
        yield from wanted
    if isinstance(around, dict) and place[-1] in around:
        yield _DELETED
    yield from _SAMPLES
