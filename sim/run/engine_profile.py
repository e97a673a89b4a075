"""Reads an engine's profile, and puts what it costs on a machine into the machine's description."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ...inputs import Document, changed, load_yaml
from ...inputs.fields import near
from ...topologies import Machine
from ...topologies.schema_types import Misfit
from ..systems.descriptor import EngineProfile, ProfileFile
from ..systems.registry import system_named, systems


@dataclass(frozen=True)
class Engine:
    """A profile that was read: of which ``system``, and its ``facts``."""

    file: str
    system: str
    facts: EngineProfile
    misfit: Misfit | None = None


def load_engine(path: Path) -> Engine:
    """The profile in the file at ``path``; raises InputError."""
    document = load_yaml(path)
    described = document.read_as(ProfileFile)
    known = [system.name for system in systems() if system.profile is not None]
    if described.system not in known:
        raise document.error(
            ("system",),
            "no profiles of engines of this kind",
            token=described.system,
            expected=near(described.system, known) or f"one of {', '.join(known)}",
        )
    facts = _facts(document, described.system)
    return Engine(document.file, described.system, facts, described.misfit)


def _facts(document: Document, system: str) -> EngineProfile:
    profile = system_named(system).profile
    assert profile is not None
    return document.read_as(profile, ("facts",))


def with_engine(document: Document, engine: Engine, machine: Machine) -> Document:
    """The machine's ``document`` with what the engine takes on it; ``machine``: as it is there."""
    plain = engine.facts.on(machine).model_dump(mode="json", exclude_defaults=True)
    document = changed(document, ("engines", engine.system), plain, engine.file)
    if engine.misfit is None:
        return document
    return changed(document, ("engine_misfit",), engine.misfit.model_dump(), engine.file)


def on_machine(machine: Machine, system: str, profile: EngineProfile) -> Machine:
    """``machine`` with what an engine of that profile takes there, in its description alone."""
    return replace(machine, description=machine.description.with_facts(system, profile.on(machine)))


def check_kind(document: Document, engine: Engine, system: str) -> None:
    """Raises InputError for a profile of another kind of engine than the scenario's ``system``."""
    if engine.system != system:
        raise document.error(
            ("engine",),
            f"a profile of engines of kind {engine.system}",
            token=engine.file,
            expected=f"one of kind {system}, as the scenario's system is",
        )
