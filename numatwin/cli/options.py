"""Arguments and options that several commands have."""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from fractions import Fraction
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer


class Plane(StrEnum):
    """The data planes: who does the work between two control events."""

    flow = "flow"
    event = "event"
    reference = "reference"
    native = "native"
    emulator = "emulator"


class Simulated(StrEnum):
    """Those of them that a plan of many runs may be played on."""

    flow = "flow"
    event = "event"


def fraction(text: str | float) -> float:
    """The number in ``text``, such as 1/50 or 0.02."""
    try:
        return float(Fraction(str(text)))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise typer.BadParameter(f"{text!r}: expected a part, such as 1/50 or 0.02") from None


def duration(text: str, least_s: float = 1e-6) -> float:
    """Seconds of a duration such as 60s or 500ms."""
    from ..inputs import parse_quantity

    try:
        found = parse_quantity(text, "time")
    except ValueError as failure:
        raise typer.BadParameter(f"{text!r}: {failure}") from None
    if not least_s <= found <= 1e6:
        raise typer.BadParameter(f"{text!r}: expected from {least_s * 1e3:g} ms to 10^6 s")
    return found


def bundled(module: str, names: str) -> Callable[[str], list[str]]:
    """The bundled names that begin so, of what lists them in a module, for a shell to complete."""

    def begin_so(incomplete: str) -> list[str]:
        listed = getattr(import_module(f"...{module}", __name__), names)()
        return [name for name in listed if name.startswith(incomplete)]

    return begin_so


bundled_scenarios = bundled("sim.run.scenario", "scenario_names")
bundled_machines = bundled("topologies", "machine_names")
bundled_workloads = bundled("workloads", "workload_names")


def bundled_policies(incomplete: str) -> list[str]:
    """The policies of all systems that begin so, with their family's name or without."""
    from ..sim.systems.registry import systems

    families = [family for system in systems() for family in system.families]
    names = {name for family in families for name in family.titles}
    names |= {f"{family.name}={name}" for family in families for name in family.titles}
    return sorted(name for name in names if name.startswith(incomplete))


def option(metavar: str, help_: str, *names: str, **others: Any) -> Any:
    """An option that takes a value; ``names``: where they are not its parameter's."""
    return typer.Option(*names, metavar=metavar, help=help_, **others)


def argument(metavar: str, help_: str, **others: Any) -> Any:
    """What stands without the name of an option."""
    return typer.Argument(metavar=metavar, help=help_, **others)


def flag(name: str, help_: str) -> Any:
    """An option that is given or not, without another one that takes it back."""
    return typer.Option(name, help=help_)


ScenarioName = Annotated[
    str,
    argument(
        "SCENARIO",
        "A bundled scenario, or a scenario file (.yaml).",
        autocompletion=bundled_scenarios,
    ),
]
OtherPlane = Annotated[Plane | None, typer.Option("--on", help="Another data plane to run on.")]
OtherMachine = Annotated[
    str | None, option("M", "Another machine: a name or a file.", autocompletion=bundled_machines)
]
Seed = Annotated[int | None, option("N", "Another seed.", min=0)]
Replications = Annotated[
    int | None, option("N", "Another number of runs with independent random draws.", min=1)
]
Settings = Annotated[
    list[str] | None, option("PATH=VALUE", "Another value for any field; may be repeated.", "--set")
]
Jobs = Annotated[
    int | None, option("N", "Processes; by default one a processor, where that is quicker.", min=1)
]
Json = Annotated[bool, flag("--json", "Print one JSON object and nothing else.")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` as Typer takes it: instead of each parameter that is a dataclass, its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {n: kind for n, kind in hints.items() if is_dataclass(kind)}
    flat: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name not in groups:
            flat.append(parameter.replace(annotation=hints[name]))
            continue
        own = get_type_hints(groups[name], include_extras=True)
        for field in fields(groups[name]):
            default = Parameter.empty if field.default is MISSING else field.default
            kind = Parameter.POSITIONAL_OR_KEYWORD
            flat.append(Parameter(field.name, kind, default=default, annotation=own[field.name]))

    @wraps(command)
    def call(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    call.__signature__ = Signature(flat)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return call
