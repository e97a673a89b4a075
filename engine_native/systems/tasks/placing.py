"""What a placer sees of the engine on this host, and how its commands are carried out there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....sim.machine.costs import CostModel
from ....sim.planes.plane import Experiment
from ....sim.systems.tasks.commands import SAMPLE_S, MergeTable, MovePart, PlacerObservation
from ....sim.systems.tasks.control_state import ControlState
from ....sim.systems.tasks.event_plane import LocalUse, PartsInPlay
from ....sim.systems.tasks.layout import Copy, Layout, halved
from ..._engine import TaskEngine, TaskPart
from ...outcomes import SLICE_S

COPYING_LOOK_S = 0.002  # how often to look whether a copy has ended


class EngineParts:
    """The engine as ``PartsInPlay`` has a model; ``host_node``: this host's, by node."""

    def __init__(self, engine: TaskEngine, host_node: Sequence[int], layout: Layout) -> None:
        self._engine, self._host_node, self._layout = engine, host_node, layout
        self._at = {name: k for k, name in enumerate(layout.parts)}
        self._made = 0
        self._numbers = [self._more(len(parts)) for parts in layout.parts.values()]
        self._together: dict[int, list[int]] = {}  # copies that end with that one

    def _more(self, parts: int) -> range:
        self._made += parts
        return range(self._made - parts, self._made)

    def copy(self, copy: Copy) -> None:
        """Begins it; a table is partitioned or merged at once, with the copy of its last part."""
        table, parts = self._at[copy.table], self._layout.parts[copy.table]
        command = self._layout.command_of(copy.number)
        if isinstance(command, MovePart):
            self._engine.move(copy.number, table, copy.part, self._host_node[copy.target])
        elif copy.part + 1 == len(parts):
            copies = [one for one in self._layout.copies if one.table == copy.table]
            self._together[copy.number] = [one.number for one in copies]
            made = [
                (rows, one.target)
                for part, one in zip(parts, copies, strict=True)
                for rows in halved(part.rows)
            ]
            if isinstance(command, MergeTable):
                made = [(sum(part.rows for part in parts), copy.target)]
            made_parts = [
                TaskPart(rows=rows, node=node, host_node=self._host_node[node])
                for rows, node in made
            ]
            self._engine.remake(copy.number, table, made_parts)

    def take_arrived(self) -> list[int]:
        """Numbers of copies that have ended since this was last asked."""
        ended = self._engine.arrived()
        return [one for number in ended for one in self._together.pop(number, [number])]

    def set_parts(self, table: int, rows: Sequence[int], nodes: Sequence[int]) -> None:
        """What was remade becomes the table."""
        self._engine.swap(table)
        self._numbers[table] = self._more(len(rows))

    def block(self, table: int, part: int) -> None:
        """Its tasks wait."""
        self._engine.hold(table, part)

    def place(self, table: int, part: int, node: int) -> None:
        """Its tasks are queued there from now on, those that wait too."""
        self._engine.place(table, part, node)

    def parts(self, table: int) -> Sequence[int]:
        return self._numbers[table]

    def node_use(self) -> LocalUse:
        return _use(np.array(self._engine.local_use()[0]).T)

    def part_use(self) -> LocalUse:
        """Nothing of those that are no more."""
        found = np.zeros((2, self._made))
        for numbers, uses in zip(self._numbers, self._engine.local_use()[1:], strict=True):
            found[:, numbers] = np.array(uses).T
        return _use(found)


def _use(found: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> LocalUse:
    return (found[0] * 1000).astype(np.int64), found[1]


class NativePlacing(PartsInPlay):
    """Of a run that has a placer."""

    def __init__(self, scenario: Experiment, engine: TaskEngine, host_node: Sequence[int]) -> None:
        self.control, self._samples = ControlState(scenario, CostModel(scenario.machine)), 0
        model = EngineParts(engine, host_node, self.control.layout)
        super().__init__(self.control.layout, model, model.copy)

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
