"""Machine files of earlier versions: parts that have moved since are put where they belong."""

from __future__ import annotations

from ..inputs import Document, moved
from ..inputs.yaml_file import Place

# Where parts stood until version 0.1, and where they stand today.
MOVED: tuple[tuple[Place, Place], ...] = (
    (("engine",), ("engines", "eris")),
    *(
        (("processes", name), ("engines", "commits", name))
        for name in (
            "key_draw",
            "timestamp",
            "note",
            "begin_spread",
            "block_spreads",
            "blocks",
            "transports",
        )
    ),
)


def present_form(document: Document) -> Document:
    """A machine file of today's form; what stands in both places stays, to be refused."""
    for place, to in MOVED:
        if document.part(place) is not None and document.part(to) is None:
            document = moved(document, place, to)
    return document
