"""Documents made from others: one over another, one with a part changed, a part of one.

None of them changes the document it is given; each part still knows where it comes from.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .yaml_file import Document, Place


def merged(base: Document, over: Document) -> Document:
    """``base`` with all that ``over`` says: mappings key by key, anything else as a whole."""
    return Document(
        _merged(base.value, over.value),
        over.file,
        base.marks | over.marks,
        {place: base.source_of(place) for place in base.known_places()}
        | {place: over.source_of(place) for place in over.known_places()},
    )


def changed(document: Document, place: Place, value: Any, source: str) -> Document:
    """``document`` with ``value`` at ``place``; errors about it name ``source``, not a line.

    Mappings on the way are made where there are none; a position in a list must be there.
    """
    made = replace(
        document,
        value=_with(document.value, place, value),
        marks={
            marked: mark for marked, mark in document.marks.items() if marked[: len(place)] != place
        },
        sources={
            marked: by for marked, by in document.sources.items() if marked[: len(place)] != place
        },
    )
    for depth in range(1, len(place)):
        if place[:depth] not in made.marks:
            made.sources.setdefault(place[:depth], source)
    made.sources[place] = source
    return made


def moved(document: Document, place: Place, to: Place) -> Document:
    """``document`` with the part at ``place`` of a mapping at ``to`` instead, where there is
    nothing yet; errors still name the line where it stands.
    """
    depth = len(place)

    def renamed(marked: Place) -> Place:
        return (*to, *marked[depth:]) if marked[:depth] == place else marked

    made = replace(
        document,
        value=_with(_without(document.value, place), to, document.part(place)),
        marks={renamed(marked): mark for marked, mark in document.marks.items()},
        sources={renamed(marked): source for marked, source in document.sources.items()},
    )
    for length in range(1, len(to)):  # mappings that were made on the way
        if to[:length] not in made.known_places():
            made.marks[to[:length]] = document.marks.get(place, (1, 1))
    return made


def part_of(document: Document, place: Place) -> Document:
    """The part at ``place`` as a document of its own."""
    depth = len(place)
    inside = [marked for marked in document.known_places() if marked[:depth] == place]
    return Document(
        document.part(place),
        document.source_of(place),
        {marked[depth:]: document.marks[marked] for marked in inside if marked in document.marks},
        {marked[depth:]: document.source_of(marked) for marked in inside},
        (*document.within, *place),
    )


def _merged(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return {**base, **{key: _merged(base.get(key), value) for key, value in over.items()}}


def _without(whole: Any, place: Place) -> Any:
    key, rest = place[0], place[1:]
    if rest:
        return _with(whole, (key,), _without(whole[key], rest))
    return {name: value for name, value in whole.items() if name != key}


def _with(whole: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    key, rest = place[0], place[1:]
    if isinstance(whole, list):
        assert isinstance(key, int)
        return [
            _with(item, rest, value) if index == key else item for index, item in enumerate(whole)
        ]
    parts = whole if isinstance(whole, dict) else {}
    return {**parts, key: _with(parts.get(key), rest, value)}
