"""What the operating system takes for memory that a program maps, touches and unmaps.

A first touch of a page enters the kernel, which zeroes it. Mapping and unmapping hold the lock of
the process's address space, unmapping until all its pages are given back and each other processor
that runs the process has been interrupted, to forget the addresses; that costs each as long. Left
out: faults wait for nobody (since Linux 6.4 they take no lock of the process; before, its line goes
from core to core), and a page lies on the node of who touches it, however full that is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from ...inputs.quantities import Quantity
from .assumptions import Assumed, note
from .costs import CostModel
from .defaults import (
    ASSUMED_HUGE_PAGE_FAULT_NS,
    ASSUMED_INTERRUPT_NS,
    ASSUMED_MAPPING_NS,
    ASSUMED_PAGE_FAULT_NS,
    ASSUMED_PAGE_UNMAP_NS,
)

Pages = Literal["small", "huge"]

ADDRESS_SPACE = "of the address space"  # the lock
PAGE_BYTES = {"small": 4096, "huge": 2 << 20}


@dataclass(frozen=True)
class KernelTime:
    """Seconds: of one thread, of which it holds the lock of the address space for ``held_s``; and
    ``interrupt_s`` more of both for each other processor, which loses as much."""

    alone_s: float = 0.0
    held_s: float = 0.0
    interrupt_s: float = 0.0


class OsMemory:
    """By facts of the first node with cores; what is not known is assumed, and noted."""

    def __init__(self, costs: CostModel, pages: Pages) -> None:
        self.costs, self.page_bytes = costs, PAGE_BYTES[pages]
        node = costs.machine.nodes[costs.first_node or 0]
        self._kind = costs.machine.description.type_of_node()[node.id]
        self._facts = node.kernel

    @property
    def fault_s(self) -> float:
        """Of the first touch of a page."""
        if self.page_bytes == PAGE_BYTES["small"]:
            return self._seconds(self._facts.page_fault, ASSUMED_PAGE_FAULT_NS)
        return self._seconds(self._facts.huge_page_fault, ASSUMED_HUGE_PAGE_FAULT_NS)

    def _seconds(self, fact: Quantity | None, assumed: Assumed) -> float:
        if fact is not None:
            return fact.value
        return note(self.costs.notes, assumed, self._kind) * 1e-9

    def used_once(self, stretches: Sequence[float]) -> KernelTime:
        """Of stretches of so many bytes, each mapped, touched everywhere and unmapped."""
        pages = sum(ceil(size / self.page_bytes) for size in stretches)
        times = len(stretches)
        mapping_s = self._seconds(self._facts.mapping, ASSUMED_MAPPING_NS)
        held_s = times * mapping_s + pages * self._seconds(
            self._facts.page_unmap, ASSUMED_PAGE_UNMAP_NS
        )
        interrupt_s = self._seconds(self._facts.interrupt, ASSUMED_INTERRUPT_NS)
        return KernelTime(pages * self.fault_s + held_s, held_s, times * interrupt_s)
