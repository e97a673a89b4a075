"""Times in which the processors of one host are far apart, as a hypervisor moves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .parameters import MessageCost

STREAM = "processors apart"


@dataclass(frozen=True)
class ApartCosts:
    """Processors that mostly share a cache now and then do not: lines of others come from farther.

    ``near_ps``, ``apart_ps``: how long they are so at a time, on average, exponentially
    distributed. ``costs``: of messages meanwhile, as ``CommitParameters.costs``.
    """

    near_ps: float
    apart_ps: float
    costs: Mapping[str, tuple[MessageCost, ...]]
