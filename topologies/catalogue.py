"""The machines by name: the bundled files, and any file of the user's."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ..inputs import Catalogue, Document, load_yaml
from .build import build_machine
from .machine import Machine
from .schema import DescriptionError, MachineDescription

BUNDLED = Path(__file__).parent
CATALOGUE = Catalogue(BUNDLED, "machine")


def machine_names() -> list[str]:
    """The names of the bundled machines, in alphabetical order."""
    return CATALOGUE.names()


def load_machine(name_or_path: str | Path) -> Machine:
    """The bundled machine of that name, or the one in that file; raises InputError."""
    text = str(name_or_path)
    path = CATALOGUE.path(text)
    return _bundled(text) if CATALOGUE.is_bundled(text) else machine_from_document(load_yaml(path))


def machine_from_document(document: Document) -> Machine:
    """The machine of a loaded YAML document; raises InputError with line and column."""
    description = document.read_as(MachineDescription)
    try:
        return build_machine(description)
    except DescriptionError as failure:
        raise document.error(failure.place, str(failure)) from None


@lru_cache(maxsize=8)
def _bundled(name: str) -> Machine:
    return machine_from_document(load_yaml(CATALOGUE.path(name)))
