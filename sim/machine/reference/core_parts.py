"""What a thread of a core has at most of pipeline and slots, as ``kernel/core_parts.hpp``."""

from collections.abc import Sequence
from typing import NamedTuple

from .overlap import overlapped


class CorePart(NamedTuple):
    """Of a core's pipeline, and of its miss slots."""

    pipeline: float
    slots: float


WHOLE = CorePart(1.0, 1.0)


def need_of(instructions_ps: float, separate_ps: float, held_ps: float, stall: float) -> CorePart:
    """What a thread would use of the core if it ran there alone, memory answering without load."""
    alone_ps = separate_ps + overlapped(instructions_ps, held_ps, stall)
    if alone_ps > 0:
        return CorePart((instructions_ps + separate_ps) / alone_ps, held_ps / alone_ps)
    return CorePart(0.0, 0.0)


def core_parts(needs: Sequence[CorePart]) -> list[CorePart]:
    """The parts of threads that need so much each."""
    most = WHOLE
    if len(needs) > 1:
        most = CorePart(
            equal_part([need.pipeline for need in needs]),
            equal_part([need.slots for need in needs]),
        )
    all_slots = sum(need.slots for need in needs)
    return [
        CorePart(
            most.pipeline if need.pipeline > most.pipeline else 1.0,
            part_of_slots(need.slots, all_slots, most.slots),
        )
        for need in needs
    ]


def part_of_slots(need: float, all_slots: float, most: float) -> float:
    """Of slots that suffice without load, a thread's part of what all need."""
    if all_slots <= 1:
        return need / all_slots if need > 0 else 1.0
    return most if need > most else 1.0


def equal_part(needs: Sequence[float]) -> float:
    """Who needs more than this part of what is shared is limited to it; 1 if all is enough."""
    available = 1.0
    for before, need in enumerate(sorted(needs)):
        others = len(needs) - before
        if need > available / others:
            return available / others
        available -= need
    return 1.0
