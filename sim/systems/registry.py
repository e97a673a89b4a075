"""The systems: one line each; no other file names them."""

from importlib import import_module
from typing import Any

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
    "joins": ".joins.system",
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


def family_names() -> set[str]:
    """Of policies, of all systems."""
    return {family.name for system in systems() for family in system.families}


def trainer_of(family: str) -> Any:
    """What trains models for policies of that family."""
    return next(s.trainers[family] for s in systems() if family in s.trainers).load()


def threshold_search() -> Any:
    """What finds a machine's threshold, for the system whose policies go by one."""
    return next(s.threshold for s in systems() if s.threshold is not None).load()


def check_engines(machine: Machine) -> None:
    """Reads what engines were measured to take on ``machine``; raises InputError for a part of an
    unknown engine, or one that is wrong.
    """
    for name, part in machine.description.engines.items():
        facts = system_named(name).facts if name in SYSTEMS else None
        if facts is None:
            known = [system.name for system in systems() if system.facts is not None]
            raise part.error(
                f"unknown engine '{name}' in engines",
                expected=near(name, known) or f"one of {', '.join(known)}",
            )
        part.read_as(facts)
