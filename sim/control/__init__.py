"""The control plane: once per period, policies decide what the data plane changes.

What policies of a family see and order belongs to a system (``sim/systems``).
"""

from __future__ import annotations

from importlib import import_module

from .family import ChosenPolicy, Family, decide
from .policy import Policy
from .policy_spec import NO_POLICY, PolicySpec

__all__ = ["NO_POLICY", "ChosenPolicy", "Family", "Policy", "PolicySpec", "decide"]


def __getattr__(name: str) -> object:
    """What policies see and order, which belongs to systems: files of users import it from here."""
    systems = import_module("..systems.registry", __package__).systems()
    for kind in (kind for system in systems for family in system.families for kind in family.types):
        if kind.__name__ == name:
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
