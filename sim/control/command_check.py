"""The common part of checks of what a policy orders: one clear line for what cannot be done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from ...inputs import InputError
from .user_policy import Origin


class CommandCheck:
    """Refuses in the name of one policy; ``about``: what its messages begin with."""

    def __init__(self, policy_name: str, origin: Origin | None) -> None:
        self.policy_name, self.origin, self.about = policy_name, origin or Origin(), ""

    def refuse(self, message: str, expected: str) -> NoReturn:
        """Raises InputError."""
        raise InputError(
            f"policy {self.policy_name}: {self.about}{message}",
            self.origin.file,
            self.origin.line,
            expected=expected,
        )

    def listed(self, commands: Any, *kinds: type) -> list[Any]:
        """The commands that ``decide`` returned, each of one of these kinds."""
        names = " or ".join(kind.__name__ for kind in kinds)
        if isinstance(commands, (str, bytes, Mapping)) or not isinstance(commands, Iterable):
            self.refuse(
                f"decide returned {type(commands).__name__}", f"a list of {names}, [] for none"
            )
        found = list(commands)
        for command in found:
            if not isinstance(command, kinds):
                self.refuse(f"decide returned a {type(command).__name__} in its list", names)
        return found

    def position(self, what: str, value: Any, count: int) -> None:
        """``value`` is one of ``count`` positions."""
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
            self.refuse(f"{what} {value!r}", f"a whole number from 0 to {count - 1}")
