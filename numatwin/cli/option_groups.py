"""Options that belong together: one parameter of a command, a dataclass, for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


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
