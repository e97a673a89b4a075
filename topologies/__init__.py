"""Machines: descriptions in YAML, their schema, importers, generators, the graph and its routes."""

from .build import build_machine
from .catalogue import description_from_document, load_machine, machine_from_document, machine_names
from .machine import Machine
from .schema import DescriptionError, MachineDescription


def _svg(machine: Machine) -> str:
    from .draw import machine_svg  # with what draws, which most do without

    return machine_svg(machine)


Machine.svg = _svg

__all__ = [
    "DescriptionError",
    "Machine",
    "MachineDescription",
    "build_machine",
    "description_from_document",
    "load_machine",
    "machine_from_document",
    "machine_names",
]
