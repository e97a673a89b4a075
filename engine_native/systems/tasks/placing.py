"""What a placer sees of the engine on this host, and how its commands are carried out there."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ....sim.kernel.arrays import Floats
from ....sim.machine.costs import CostModel
from ....sim.planes.plane import Experiment
from ....sim.systems.tasks.commands import SAMPLE_S, MergeTable, MovePart, PlacerObservation
from ....sim.systems.tasks.control_state import ControlState
from ....sim.systems.tasks.event_plane import LocalUse, PartsInPlay
from ....sim.systems.tasks.layout import Copy, halved
from ..._engine import TaskEngine, TaskPart
from ...outcomes import SLICE_S

COPYING_LOOK_S = 0.002  # how often to look whether a copy has ended


class NativePlacing(PartsInPlay):
    """Is its own model, of the engine. ``host_node``: this host's, by node."""

    def __init__(self, scenario: Experiment, engine: TaskEngine, host_node: Sequence[int]) -> None:
        self.control = ControlState(scenario, CostModel(scenario.machine))
        self.host_node, self._engine, self._made, self._samples = host_node, engine, 0, 0
        self._together: dict[int, list[int]] = {}  # copies that end with that one
        parts = self.control.layout.parts.values()
        self._numbers = [self._more(len(of_table)) for of_table in parts]
        super().__init__(self.control.layout, cast(Any, self))

    def attend(self, time_s: float) -> float:
        """What has arrived, and samples that are due; in how many seconds at most to ask again."""
        self.arrived(time_s)
        while (due_s := (self._samples + 1) * SAMPLE_S) <= time_s + 1e-9:
            self.sample()
            self._samples += 1
        return min(due_s - time_s, COPYING_LOOK_S if self.layout.copies else SLICE_S)

    def seen(self, time_s: float) -> PlacerObservation:
        """By a placer."""
        threads = self.control.program.scheduling.workers
        return self.control.parts_seen(time_s, threads, *self.observed())

    def _copy(self, copy: Copy) -> None:
        """Begins it; a table is partitioned or merged at once, with the copy of its last part."""
        table, parts = self._positions[copy.table], self.layout.parts[copy.table]
        command, to = self.layout.command_of(copy.number), self.host_node
        if isinstance(command, MovePart):
            self._engine.move(copy.number, table, copy.part, to[copy.target])
        elif copy.part + 1 == len(parts):
            copies = [one for one in self.layout.copies if one.table == copy.table]
            self._together[copy.number] = [one.number for one in copies]
            made = [(k, c.target) for c in copies for k in halved(parts[c.part].rows)]
            if isinstance(command, MergeTable):
                made = [(sum(part.rows for part in parts), copy.target)]
            of_engine = [TaskPart(rows=rows, node=n, host_node=to[n]) for rows, n in made]
            self._engine.remake(copy.number, table, of_engine)

    def _more(self, parts: int) -> range:
        self._made += parts
        return range(self._made - parts, self._made)

    def take_arrived(self) -> list[int]:
        return [k for n in self._engine.arrived() for k in self._together.pop(n, [n])]

    def parts(self, table: int) -> Sequence[int]:
        return self._numbers[table]

    def set_parts(self, table: int, rows: Sequence[int], nodes: Sequence[int]) -> None:
        self._engine.swap(table)
        self._numbers[table] = self._more(len(rows))

    def block(self, table: int, part: int) -> None:
        self._engine.hold(table, part)

    def place(self, table: int, part: int, node: int) -> None:
        self._engine.place(table, part, node)

    def node_use(self) -> LocalUse:
        return _use(np.array(self._engine.local_use()[0]))

    def part_use(self) -> LocalUse:
        """Nothing of those that are no more."""
        found = np.zeros((self._made, 2))
        for numbers, uses in zip(self._numbers, self._engine.local_use()[1:], strict=True):
            found[numbers] = uses
        return _use(found)


def _use(found: Floats) -> LocalUse:
    return (found[:, 0] * 1000).astype(np.int64), found[:, 1]
