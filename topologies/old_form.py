"""Machine files of earlier versions: parts that have moved since are put where they belong, parts
that nothing reads any more are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..inputs import Document, moved
from ..inputs.quantities import parse_quantity
from ..inputs.yaml_file import Place
from .schema import DISTURBANCE_MAX_S, INTERRUPTION_MAX_S, MachineDescription

# Where parts stood until version 0.1, and where they stand today.
MOVED: tuple[tuple[Place, Place], ...] = (
    (("engine",), ("engines", "eris")),
    *(
        (("processes", name), ("engines", "commits", name))
        for name in ("key_draw", "timestamp", "note", "blocks", "transports")
    ),
)
# Of disturbances that no plane models now (docs/model.md): what they are called, and where they
# stood; "*" is any name or place in a list.
RETIRED: tuple[tuple[str, Place], ...] = (
    ("paces", ("paces",)),
    ("apart", ("apart",)),
    ("others of caches", ("node_types", "*", "caches", "*", "others")),
    *(
        (name, (*place, name))
        for name in ("begin_spread", "block_spreads")
        for place in (("processes",), ("engines", "commits"))
    ),
    *(
        ("blocks …_apart", (*place, "*", f"{step}_apart"))
        for step in ("get", "update", "insert")
        for place in (("processes", "blocks"), ("engines", "commits", "blocks"))
    ),
    *(
        (name, (*place, "*", name))
        for name in ("sleeper_among", "end_spread", "sleeper_spread")
        for place in (("processes", "transports"), ("engines", "commits", "transports"))
    ),
)
LONG = "interruptions of 0.1 ms and longer"
RESTLESS: Place = ("host", "restless")  # of no figure, so nobody misses it


def present_form(document: Document) -> Document:
    """A machine file of today's form; what stands in both places stays, to be refused."""
    document = _without_retired(document)
    for place, to in MOVED:
        if document.part(place) is not None and document.part(to) is None:
            document = moved(document, place, to)
    return document


def ignored_parts(description: MachineDescription) -> Iterator[str]:
    """A line that names the ignored parts of the file, if any."""
    if description.ignored:
        yield (
            f"machine '{description.name}': parts of an earlier version are ignored: no plane "
            f"models such disturbances: {', '.join(description.ignored)}"
        )


def _without_retired(document: Document) -> Document:
    found: dict[str, None] = {}
    value = _without(document.value, RESTLESS, lambda: None)
    for name, place in RETIRED:
        value = _without(value, place, lambda name=name: found.setdefault(name))  # type: ignore[misc]
    value = _without_long(value, lambda: found.setdefault(LONG))
    if not found:
        return document if value is document.value else replace(document, value=value)
    known = value.get("ignored", ())
    ignored = [*known, *found] if isinstance(known, (list, tuple)) else known
    return replace(document, value={**value, "ignored": ignored})


def _without(whole: Any, place: Place, met: Callable[[], None]) -> Any:
    """``whole`` without what stands at that place; ``met`` is called where something does."""
    key, rest = place[0], place[1:]
    if isinstance(whole, list):
        made = [_without(part, rest, met) for part in whole] if key == "*" else whole
        return made if any(a is not b for a, b in zip(made, whole, strict=True)) else whole
    if not isinstance(whole, dict):
        return whole
    keys = [name for name in whole if key in ("*", name)]
    if not rest and keys:
        met()
        return {name: value for name, value in whole.items() if name not in keys}
    changes = {name: _without(whole[name], rest, met) for name in keys}
    same = all(changes[name] is whole[name] for name in keys)
    return whole if same else {**whole, **changes}


def _without_long(whole: Any, met: Callable[[], None]) -> Any:
    kinds = whole.get("interruptions") if isinstance(whole, dict) else None
    if not isinstance(kinds, list):
        return whole
    short = [kind for kind in kinds if not _is_long(kind)]
    if len(short) == len(kinds):
        return whole
    met()
    return {**whole, "interruptions": short}


def _is_long(kind: Any) -> bool:
    length = kind.get("length") if isinstance(kind, dict) else None
    text = length.get("value") if isinstance(length, dict) else length
    try:
        return INTERRUPTION_MAX_S <= parse_quantity(str(text), "time") <= DISTURBANCE_MAX_S
    except ValueError:
        return False  # to be refused by its schema
