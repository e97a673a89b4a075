"""What a client of RSI keeps, and the verbs that it posts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .places import Node

REFUSED = object()


@dataclass(frozen=True)
class Request:
    """A signaled verb: what it does at the node's memory, and returns."""

    kind: str
    node: Node
    effect: Callable[[], Any]
    out: Callable[[], Any] | None = None
    """What is done instead where the node is out."""


class OneSidedClient:
    """What a client keeps beside its copy of the snapshot."""

    def __init__(self, client: int) -> None:
        self.next_cid = client + 1
        self.known = 0
        """The highest committed timestamp when it last looked, and when it last changed."""
        self.since_ps = 0
        self.top = 0
        """The highest timestamp that was set when it last looked."""
        self.unsignaled = 0
        self.locking_ps = 0
        self.claimed = False
