"""What validation has of each system, in a module by its name; other studies have one, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

from ..results import Published

# Systems by the names of sim/systems/registry.py; then studies of what no system plays whole.
MODULES = (".eris", ".commits", ".joins", ".access_paths")


@dataclass(frozen=True)
class Part:
    """``published``: its published results, by id. ``blindness``: how blind their predictions are,
    a paragraph of the page.
    """

    published: Mapping[str, Published]
    blindness: str


def parts() -> Iterator[Part]:
    """Of each module."""
    for name in MODULES:
        module = import_module(name, __package__)
        yield Part(module.PUBLISHED, module.BLINDNESS)
