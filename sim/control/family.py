"""Families of policies: policies of one system with the same observations and commands."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ...inputs import DescriptionError, InputError
from ..planes.outcome import ControlEvent
from .policy import NO_POLICY, AnyPolicy, PolicySpec
from .user_policy import Origin, guarded, origin_of, user_policy


@dataclass(frozen=True, eq=False)
class Family:
    """Policies that control the same thing, by the ``name`` that a scenario gives them.

    ``what`` they control, in words. ``spec``: what a scenario may say of one. ``titles``: bundled
    policies' names to list, and what they stand for; one is ``none``. ``make``: the policy of a
    name with the options given; None where no policy has that name; raises ValueError for an option
    that does not fit. ``expected``: the names in words, for an error message.
    ``fixed``: policies without options, by name.
    ``check``: the commands that a policy returned, as the system takes them; told what it saw, its
    name and, of a user's, where its code is; raises InputError for what cannot be done.
    ``event``: how the record tells of a command that the policy of that name gave at a time.
    ``types``: of what policies see and order, which users' files import.
    ``draw``: a policy as a picture (SVG), where the one of that name has any to show.
    """

    name: str
    what: str
    spec: type[PolicySpec]
    titles: Mapping[str, str]
    make: Callable[[str, Mapping[str, Any]], AnyPolicy | None]
    expected: str
    check: Callable[[Any, Any, str, Origin | None], tuple[Any, ...]]
    event: Callable[[Any, str, float], ControlEvent]
    types: tuple[type, ...] = ()
    draw: Callable[[str], str | None] = lambda name: None
    fixed: Mapping[str, Callable[[], AnyPolicy]] = field(default_factory=dict)

    def bundled(self, name: str, options: Mapping[str, Any]) -> AnyPolicy:
        """The bundled policy of that name.

        Raises InputError for an unknown name, ValueError for an option that does not fit.
        """
        if name in self.fixed:
            for option in options:
                raise ValueError(f"{option}: {self.name} '{name}' has no options")
            return self.fixed[name]()
        made = self.make(name, options)
        if made is None:
            close = difflib.get_close_matches(name, self.titles, 1)
            raise InputError(
                "unknown policy",
                token=name,
                expected=f"'{close[0]}'" if close else f"{self.expected}, or FILE.py:CLASS",
            )
        return made


@dataclass(frozen=True, eq=False)
class ChosenPolicy:
    """A policy of ``family`` ready to be made: its name, what makes a new one, how often it is
    asked, the user's file that it is from.
    """

    family: Family
    name: str
    make: Callable[[], AnyPolicy]
    period_s: float
    file: Path | None = None

    @property
    def acts(self) -> bool:
        """Whether it may give any command."""
        return self.file is not None or self.name != NO_POLICY


def choose(spec: PolicySpec, family: Family, folder: Path) -> ChosenPolicy:
    """The policy that ``spec`` means; a file is looked for in ``folder``.

    Raises InputError, or DescriptionError for an option that does not fit.
    """
    period_s = spec.period.value
    if spec.file is not None and spec.class_name is not None:
        path = folder / spec.file
        make = user_policy(path, spec.class_name, spec.options or {})
        return ChosenPolicy(family, spec.class_name, make, period_s, path)
    name = spec.policy or NO_POLICY
    make = partial(family.bundled, name, spec.bundled_options())
    try:
        make()
    except ValueError as failure:
        raise DescriptionError((), str(failure)) from None
    return ChosenPolicy(family, name, make, period_s)


def decide(family: Family, policy: AnyPolicy, observation: Any) -> tuple[Any, ...]:
    """The commands of ``policy``, checked.

    Raises InputError where a user's policy raises or orders what cannot be done; a bundled policy
    that does so is a bug, and its exception passes.
    """
    name = type(policy).__name__
    if is_bundled(policy):
        ordered = policy.decide(observation)
        return family.check(ordered, observation, name, None) if ordered != () else ()
    origin = origin_of(type(policy))

    def ask() -> Any:
        commands: Any = policy.decide(observation)
        return tuple(commands) if isinstance(commands, Iterator) else commands  # runs a generator

    commands = guarded(ask, f"policy {name}", origin)
    return family.check(commands, observation, name, origin)


def is_bundled(policy: AnyPolicy) -> bool:
    """Whether the policy comes with numatwin."""
    return type(policy).__module__.startswith(f"{__package__.partition('.')[0]}.")
