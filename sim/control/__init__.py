"""The control plane: policies decide, once per period, what the data plane shall change.

One more policy family is one more module here with a ``FAMILY``; nothing else names it.
"""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from ...inputs import InputError
from .policy import (
    Family,
    ObjectObservation,
    Observation,
    Policy,
    Rebalance,
    check_commands,
    decide,
)

__all__ = [
    "Family",
    "ObjectObservation",
    "Observation",
    "Policy",
    "Rebalance",
    "bundled_policy",
    "check_commands",
    "decide",
    "families",
    "policy_titles",
]


@cache
def families() -> Mapping[str, Family]:
    """The policy families, by the name of their module (``load_balancing``), in its order."""
    modules = (
        import_module(f".{found.name}", __name__) for found in pkgutil.iter_modules(__path__)
    )
    named = {module.__name__.rpartition(".")[2]: module for module in modules}
    return {
        name: module.FAMILY
        for name, module in named.items()
        if isinstance(getattr(module, "FAMILY", None), Family)
    }


def policy_titles() -> dict[str, str]:
    """The names of the bundled policies, of all families, with what each does."""
    return {name: title for family in families().values() for name, title in family.titles.items()}


def bundled_policy(family: str, name: str, options: Mapping[str, Any]) -> Policy:
    """The bundled policy of that family and name.

    Raises InputError for an unknown name, ValueError for an option that does not fit.
    """
    of_family = families()[family]
    made = of_family.make(name, options)
    if made is None:
        close = difflib.get_close_matches(name, of_family.titles, 1)
        raise InputError(
            "unknown policy",
            token=name,
            expected=f"'{close[0]}'" if close else f"{of_family.expected}, or FILE.py:CLASS",
        )
    return made
