"""Loops of running tasks by the node of their thread and the homes of what they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .batches import Batch
from .parameters import PLACES
from .program import MemoryUse

Floats = npt.NDArray[np.float64]
Where = Callable[[int | None, int], Floats]


@dataclass(frozen=True)
class KindLoop:
    """One of a kind's loops, per entry; ``read`` (n,)."""

    read: Floats
    instructions_s: float
    slots: float


def lines_by_place(memory: Sequence[MemoryUse]) -> Floats:
    """(2, 3) lines that are read and written, by place (``PLACES``)."""
    found = np.zeros((2, len(PLACES)))
    for use in memory:
        found[:, PLACES.index(use.place)] += use.read, use.written
    return found


def lines_by_home(by_place: Floats, part: Floats, own: Floats, all_nodes: Floats) -> Floats:
    """(F, n) lines of each home: those of each place (F, 3) where the part lies (F, n), on the
    thread's own node (F, n), and where lies what is on all nodes (n,).
    """
    of_part, local, spread = by_place.T[:, :, None]
    return np.asarray(of_part * part + local * own + spread * all_nodes)


def loops_of_kinds(
    batches: Sequence[Batch], kinds: Sequence[tuple[int, int]], where: Where, more: int
) -> tuple[tuple[KindLoop, ...], ...]:
    """Of tasks of a batch on a node each, and of ``more`` kinds that have none; empty where no
    batch has several loops."""
    if not any(batch.stage.cost.loops for batch in batches):
        return ()
    found = [_loops(batches[b], node, where) for b, node in kinds]
    return (*found, *[()] * more)


def _loops(batch: Batch, node: int, where: Where) -> tuple[KindLoop, ...]:
    part, own = where(batch.home, batch.spread)[None], where(node, 0)[None]
    return tuple(
        KindLoop(
            lines_by_home(lines_by_place(loop.memory)[:1], part, own, where(None, 0))[0],
            float(loop.instructions_s[node]),
            max(float(loop.misses_at_once[node]), 1e-9),
        )
        for loop in batch.stage.cost.loops
    )
