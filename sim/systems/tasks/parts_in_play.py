"""Table parts between the layout, which requests copies, and a model, which executes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...kernel.picoseconds import PS_PER_S
from .commands import SAMPLE_S, PlacerCommand
from .layout import Copy, Layout, PartState
from .models import LocalUse, Model
from .parameters import INTERLEAVED, home_of

Floats = npt.NDArray[np.float64]


class PartsInPlay:
    """``layout`` decides; what changes there is carried out in the model."""

    def __init__(self, layout: Layout, model: Model) -> None:
        self.layout, self.model = layout, model
        self._positions = {name: k for k, name in enumerate(layout.parts)}
        self._known: dict[str, tuple[PartState, ...]] = dict(layout.parts)
        self._nodes: list[LocalUse] = [model.node_use()]
        self._parts: list[LocalUse] = [model.part_use()]
        self._seen = _samples(self._nodes * 2), _samples(self._parts * 2)

    # -- commands ---------------------------------------------------------------------------------

    def order(self, command: PlacerCommand, time_s: float) -> None:
        """Begins to move, partition or merge."""
        self._begin(self.layout.order(command, time_s))

    def arrived(self, time_s: float) -> None:
        """Copies have arrived; others may follow."""
        for number in self.model.take_arrived():
            self._begin(self.layout.arrived(number, time_s))

    def _begin(self, copies: Sequence[Copy]) -> None:
        self._carry_out()
        for copy in copies:
            source = INTERLEAVED - copy.spread if copy.source is None else copy.source
            page_ps = copy.page_s * PS_PER_S
            self.model.copy(copy.number, source, copy.target, copy.pages, page_ps)

    def _carry_out(self) -> None:
        """The model's parts become those of the layout."""
        for name, parts in self.layout.parts.items():
            known, table = self._known[name], self._positions[name]
            if [part.rows for part in parts] != [part.rows for part in known]:
                nodes = [home_of(part) for part in parts]
                self.model.set_parts(table, [part.rows for part in parts], nodes)
                known = tuple(PartState(p.rows, p.node, p.pages, spread=p.spread) for p in parts)
            for k, (part, before) in enumerate(zip(parts, known, strict=True)):
                if part.blocked and not before.blocked:
                    self.model.block(table, k)
                elif before.blocked > part.blocked or before.node != part.node:
                    assert part.node is not None
                    if not before.blocked:  # what waits for workers goes there, too
                        self.model.block(table, k)
                    self.model.place(table, k, part.node)
            self._known[name] = parts

    # -- samples ----------------------------------------------------------------------------------

    def sample(self) -> None:
        """Takes a sample now, ``SAMPLE_S`` after the last one."""
        self._nodes.append(self.model.node_use())
        self._parts.append(self.model.part_use())

    def observed(
        self,
    ) -> tuple[tuple[Floats, Floats], dict[tuple[str, int], tuple[Floats, Floats]]]:
        """Threads of local tasks, and what these read and write, of the samples since this was last
        asked (of those before, where there are none since): of nodes (n, S), and of each part (S,)
        by table and position.
        """
        if len(self._nodes) > 1:
            self._seen = _samples(self._nodes), _samples(self._parts)
        nodes, (cpu, memory_Bps) = self._seen
        self._nodes, self._parts = self._nodes[-1:], self._parts[-1:]
        return nodes, {
            (table, p): (cpu[number], memory_Bps[number])
            for table, position in self._positions.items()
            for p, number in enumerate(self.model.parts(position))
            if number < len(cpu)
        }


def _samples(sums: Sequence[LocalUse]) -> tuple[Floats, Floats]:
    """(k, S) threads and bytes per second, of sums (S + 1 of them) of up to k things."""
    count = len(sums[-1][0])
    cpu_ps, moved = np.zeros((len(sums), count)), np.zeros((len(sums), count))
    for k, (each_ps, each_bytes) in enumerate(sums):
        cpu_ps[k, : len(each_ps)], moved[k, : len(each_bytes)] = each_ps, each_bytes
    return np.diff(cpu_ps, axis=0).T / PS_PER_S / SAMPLE_S, np.diff(moved, axis=0).T / SAMPLE_S
