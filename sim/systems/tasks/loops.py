"""Loops of running tasks by the node of their thread and the homes of what they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .batches import Batch
from .program import MemoryUse

Floats = npt.NDArray[np.float64]
Where = Callable[[int | None, int], Floats]


@dataclass(frozen=True)
class KindLoop:
    """One of a kind's loops, per entry; ``read`` (n,)."""

    read: Floats
    instructions_s: float
    slots: float


def lines_by_home(
    memory: Sequence[MemoryUse], part: Floats | None, all_nodes: Floats, what: str
) -> Floats:
    """(n, n) lines of each home on each node: ``what``, ``read`` or ``written``. ``part`` (n,):
    where a table's part lies; None: with the thread. ``all_nodes`` (n,): of what is interleaved.
    """
    found, own = np.zeros((len(all_nodes), len(all_nodes))), np.eye(len(all_nodes))
    for use in memory:
        where = own
        if use.place == "interleaved":
            where = all_nodes
        elif use.place == "part" and part is not None:
            where = part
        found += getattr(use, what) * where
    return found


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
    part, all_nodes = where(batch.home, batch.spread), where(None, 0)
    return tuple(
        KindLoop(
            lines_by_home(loop.memory, part, all_nodes, "read")[node],
            float(loop.instructions_s[node]),
            max(float(loop.misses_at_once[node]), 1e-9),
        )
        for loop in batch.stage.cost.loops
    )
