"""The systems: one line each, and nothing else names them."""

from __future__ import annotations

from importlib import import_module

from ...inputs import InputError
from ...inputs.fields import near
from ...topologies import Machine
from .descriptor import System, SystemSpec

# By the ``kind`` that scenarios give them: the module with its ``SYSTEM``. The first one is meant
# where a scenario does not say.
SYSTEMS = {
    "eris": ".eris.system",
    "commits": ".commits.system",
    "tasks": ".tasks.system",
}


def system_named(name: str) -> System:
    """The system of that name; raises InputError for an unknown one."""
    if name not in SYSTEMS:
        raise InputError("unknown system", token=name, expected=near(name, SYSTEMS))
    found: System = import_module(SYSTEMS[name], __package__).SYSTEM
    return found


def system_of(spec: SystemSpec) -> System:
    """The system that a scenario says this of."""
    return system_named(spec.kind)


def systems() -> tuple[System, ...]:
    """All of them."""
    return tuple(map(system_named, SYSTEMS))


def default_kind() -> str:
    """The one that a scenario means which does not say."""
    return next(iter(SYSTEMS))


def family_names() -> dict[str, str]:
    """Each name that a family of policies has or had in any system, with the one it has now."""
    return {
        name: family.name
        for system in systems()
        for family in system.families
        for name in (*family.aliases, family.name)
    }


def check_engines(machine: Machine) -> None:
    """Reads what engines were measured to take on ``machine``; raises InputError for a part of an
    unknown engine, or one that is wrong.
    """
    facts = {system.name: system.facts for system in systems() if system.facts is not None}
    for name, part in machine.description.engines.items():
        if name not in facts:
            raise part.error(
                f"unknown engine '{name}' in engines",
                expected=near(name, facts) or f"one of {', '.join(facts)}",
            )
        part.read_as(facts[name])
