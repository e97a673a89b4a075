"""Machines from the output of other tools: each format is a module, recognised by content."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from pydantic import ValidationError

from ...inputs import DescriptionError, InputError
from ...inputs.names import NAME_EXPECTED, is_name
from ..build import build_machine
from ..schema import MachineDescription
from .source import Source, open_source


class Importer(Protocol):
    """What a module of this package offers to be an importer."""

    def recognises(self, source: Source) -> bool:
        """Whether ``source`` is of this format, judged by its beginning."""

    def read(self, source: Source) -> MachineDescription:
        """The machine that ``source`` describes; raises InputError."""


def _importers() -> Iterator[Importer]:
    """In alphabetical order of their modules' names."""
    for module_info in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        module = import_module(f"{__name__}.{module_info.name}")
        if hasattr(module, "recognises") and hasattr(module, "read"):
            yield cast("Importer", module)


def import_machine(path: str | Path | None, *, name: str | None = None) -> MachineDescription:
    """The machine described by the file or folder at ``path``, or this host (None).

    ``name``: what to call it, else it is named after the file. The description builds. Raises
    InputError.
    """
    if name is not None and not is_name(name):
        raise InputError("no name for a machine", token=name, expected=NAME_EXPECTED)
    with open_source(path) as source:
        if name is not None:
            source.machine = name
        importer = _recognised(source)
        try:
            description = importer.read(source)
            build_machine(description)
        except ValidationError as failure:
            problem = failure.errors(include_url=False)[0]
            where = ".".join(map(str, problem["loc"]))
            message = problem["msg"].removeprefix("Value error, ")
            raise source.error(f"makes no machine: {where}: {message}") from None
        except DescriptionError as failure:
            raise source.error(f"makes no machine: {failure}") from None
    return description


def _recognised(source: Source) -> Importer:
    for importer in _importers():
        if importer.recognises(source):
            return importer
    raise source.error(
        "unknown format" if source.head else "empty file",
        expected="a sysfs tree (folder or tar archive), hwloc XML, a libvirt domain, or the "
        "output of numactl -H, lscpu, likwid-topology or Intel MLC",
    )
