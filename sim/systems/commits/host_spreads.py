"""How the steps of commits on one host vary: from what was measured of single ones to spreads.

Steps on blocks were measured three at a time, as processors overlap what they miss; more of them
are several such, each independent of the others. What was measured within a whole that a step is
only a part of varies as much in time: the rest of the whole takes its time always.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .facts import BlockSpread, CommitFacts, TransportCosts
from .processors import Processors
from .sizes import Records
from .spread import Spread, measured, mixed, shifted, summed

TOGETHER = 3  # blocks of a measured step (engine_native/systems/commits/measured_blocks.hpp)
Part = tuple[float, float, float]
"""How often blocks lie in such a region, bytes of it, and seconds that a step takes there."""


class BlockSpreads:
    """Of steps on blocks, by the memory that they lie in; ``together`` as in BlockCosts."""

    def __init__(self, measured_at: Sequence[BlockSpread], *, together: bool) -> None:
        self._known = sorted(measured_at, key=lambda spread: spread.region.value)
        self._end = "_together" if together else ""

    def of(self, step: str, parts: Sequence[Part]) -> Spread:
        """Of a step on blocks of several regions."""
        return mixed([(often, seconds, self._at(step, region)) for often, region, seconds in parts])

    def _at(self, step: str, region: float) -> Spread:
        """On lines by the logarithm of the region."""
        regions = [math.log(spread.region.value) for spread in self._known]
        factors = [
            getattr(spread, step + self._end) or getattr(spread, step) for spread in self._known
        ]
        return measured(
            [
                float(np.interp(math.log(region), regions, at_regions))
                for at_regions in zip(*factors, strict=True)
            ]
        )


def direct_spreads(
    facts: CommitFacts,
    records: Records,
    *,
    together: bool,
    begin_s: float,
    lines_s: float,
    lock_s: float,
    reads: Sequence[Part],
    writes: Sequence[Part],
    inserts: Part,
) -> dict[str, Spread]:
    """Where all is the client's own time, by message type; none where nothing was measured.

    ``lock_s``: of what writes take, the part that is a message of its own.
    """
    if not facts.block_spreads:
        return {}
    blocks = BlockSpreads(facts.block_spreads, together=together)
    begin = None if facts.begin_spread is None else measured(facts.begin_spread)
    update_s = sum(often * seconds for often, _, seconds in writes)
    steps: list[tuple[float, Spread | None]] = []
    if update_s > lock_s:
        update = shifted(blocks.of("write", writes), update_s, update_s - lock_s)
        steps += _several(records.updates, update_s - lock_s, update)
    created = records.writes - records.updates
    steps += _several(created, inserts[2], blocks.of("insert", [inserts]))
    found = {
        "snapshot-read": summed([(begin_s, begin), (lines_s, None)]),
        "read": summed(_several(records.reads, 1.0, blocks.of("get", reads))),
        "write": summed(steps),
    }
    return {name: spread for name, spread in found.items() if spread is not None}


def _several(blocks: float, seconds: float, spread: Spread) -> list[tuple[float, Spread | None]]:
    """As many steps as were measured at a time, of so many blocks."""
    steps = max(round(blocks / TOGETHER), 1)
    return [(blocks * seconds / steps, spread)] * steps


def end_spread(costs: TransportCosts) -> Spread | None:
    """Of what an end does for a message."""
    return None if costs.end_spread is None else measured(costs.end_spread)


def wake_spread(costs: TransportCosts, processors: Processors) -> Spread | None:
    """From being woken to running: what a message to a sleeper varies, as far as it is that."""
    if costs.sleeper_spread is None or costs.sleeper_other is None or not processors.wake_ps:
        return None
    whole_ps = costs.sleeper_other.value * 1e12
    return shifted(measured(costs.sleeper_spread), whole_ps, processors.wake_ps)
