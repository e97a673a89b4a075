"""Machines: descriptions in YAML, their schema, importers, generators, the graph and its routes."""

from .build import build_machine
from .catalogue import (
    description_from_document,
    load_machine,
    machine_from_document,
    machine_names,
)
from .machine import Machine
from .schema import DescriptionError, MachineDescription

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
