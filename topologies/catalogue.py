"""The machines by name: the bundled files, and any file of the user's."""

from __future__ import annotations

import difflib
from functools import lru_cache
from pathlib import Path

from ..inputs import InputError, load_yaml
from ..inputs.yaml_file import Document
from .build import build_machine
from .machine import Machine
from .schema import DescriptionError, MachineDescription

BUNDLED = Path(__file__).parent


def machine_names() -> list[str]:
    """The names of the bundled machines, in alphabetical order."""
    return sorted(path.stem for path in BUNDLED.glob("*.yaml"))


def load_machine(name_or_path: str | Path) -> Machine:
    """The bundled machine of that name, or the one in that file; raises InputError."""
    text = str(name_or_path)
    if "/" not in text and not text.endswith((".yaml", ".yml")):
        if text not in machine_names():
            close = difflib.get_close_matches(text, machine_names(), 1)
            hint = (
                f"'{close[0]}', or a path to a .yaml file"
                if close
                else ("a name that 'numatwin machine list' prints, or a path to a .yaml file")
            )
            raise InputError("unknown machine", token=text, expected=hint)
        return _bundled(text)
    return machine_from_document(load_yaml(text))


def machine_from_document(document: Document) -> Machine:
    """The machine of a loaded YAML document; raises InputError with line and column."""
    description = document.read_as(MachineDescription)
    try:
        return build_machine(description)
    except DescriptionError as failure:
        raise document.error(failure.place, str(failure)) from None


@lru_cache(maxsize=8)
def _bundled(name: str) -> Machine:
    return machine_from_document(load_yaml(BUNDLED / f"{name}.yaml"))
