"""The machine that is meant: by its name or file, or this host, as its kernel describes it."""

from __future__ import annotations

from pathlib import Path

from ...topologies.export import machine_yaml
from ...topologies.facts import complete
from ...topologies.importers import import_machine


def described(machine: str | None, folder: Path) -> str:
    """The machine's name or file; None: a file in ``folder`` of this host."""
    if machine is not None:
        return str(Path(machine).absolute()) if Path(machine).exists() else machine
    made = folder / "this-host.yaml"
    made.write_text(machine_yaml(complete(import_machine(None), None, None).description))
    return str(made)
