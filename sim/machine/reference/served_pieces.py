"""Pieces of work that share a machine, on SimPy's clock."""

from __future__ import annotations

import simpy

from .shared_service import NEVER, SharedService


class ServedPieces:
    """A service on SimPy's clock: a piece's end is an event."""

    def __init__(self, env: simpy.Environment, service: SharedService) -> None:
        self.env, self.service = env, service
        self.ends: list[simpy.Event] = []
        self.planned = 0

    def start(self, core: int, demand: int, units: float) -> tuple[int, simpy.Event]:
        """A piece begins: its name and its end."""
        end = self.env.event()
        self.ends.append(end)
        name = self.service.start(int(self.env.now), core, demand, units, len(self.ends) - 1)
        self._plan()
        return name, end

    def move(self, name: int, core: int) -> None:
        self.service.move(int(self.env.now), name, core)
        self._plan()

    def cancel(self, name: int) -> float:
        """Its end never comes."""
        left = self.service.cancel(int(self.env.now), name)
        self._plan()
        return left

    def _plan(self) -> None:
        self.planned += 1
        plan, due_ps = self.planned, self.service.next_change()

        def due(_: object) -> None:
            if plan == self.planned:
                while (job := self.service.finish(int(self.env.now))) is not None:
                    self.ends[job].succeed()
                self._plan()

        if due_ps < NEVER:
            self.env.timeout(due_ps - int(self.env.now)).callbacks.append(due)
