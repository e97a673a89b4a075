"""Engines that a machine file may have measured facts of, and the schema of each."""

from __future__ import annotations

from collections.abc import Mapping

from ...inputs import Strict
from ...inputs.fields import near
from ...topologies import Machine
from .commits.facts import ENGINE as COMMITS
from .commits.facts import CommitFacts
from .eris.facts import ENGINE as ERIS
from .eris.facts import ErisFacts

ENGINES: Mapping[str, type[Strict]] = {ERIS: ErisFacts, COMMITS: CommitFacts}


def check_engines(machine: Machine) -> None:
    """Reads the parts of all engines; raises InputError for one that is unknown or wrong."""
    for name, part in machine.description.engines.items():
        if name not in ENGINES:
            raise part.error(
                f"unknown engine '{name}' in engines",
                expected=near(name, ENGINES) or f"one of {', '.join(ENGINES)}",
            )
        part.read_as(ENGINES[name])
