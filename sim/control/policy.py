"""The interface of a policy: any class that returns commands when it is called.

A policy knows no plane: the same policy runs on all of them. The control plane asks it once per
period. What it sees and what it may order is its family's, and that belongs to a system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

Seen = TypeVar("Seen", contravariant=True)
Order = TypeVar("Order", covariant=True)


class Policy(Protocol[Seen, Order]):
    """Any class with this method is a policy."""

    def decide(self, observation: Seen) -> Sequence[Order]:
        """The commands to give now; often none."""


AnyPolicy = Policy[Any, Any]


@dataclass(frozen=True)
class NoPolicy:
    """Leaves everything as it is."""

    def decide(self, observation: Any) -> tuple[()]:
        """No command, ever."""
        return ()


def is_memoryless(policy: AnyPolicy) -> bool:
    """Whether it says ``MEMORYLESS = True``: neither the time nor what it saw before matters."""
    return bool(getattr(policy, "MEMORYLESS", False))
