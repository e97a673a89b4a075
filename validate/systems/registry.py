"""Validation of each system: one line each; no other file names them."""

from collections.abc import Iterator
from importlib import import_module

from .descriptor import Validation

# The module with its ``VALIDATION``: of systems by the names of sim/systems/registry.py; then of
# studies of what no system runs whole.
MODULES = {
    "eris": ".eris.validation",
    "commits": ".commits.validation",
    "joins": ".joins",
    "access_paths": ".access_paths",
    "tasks": ".tasks",
}


def validation_of(name: str) -> Validation:
    """That of the system of this name; of one without a line here, nothing."""
    if name not in MODULES:
        return Validation()
    found: Validation = import_module(MODULES[name], __package__).VALIDATION
    return found


def validations() -> Iterator[Validation]:
    """Of each one."""
    return map(validation_of, MODULES)
