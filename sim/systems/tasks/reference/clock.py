"""SimPy's clock in whole picoseconds, the shared service on it, and the trace."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import simpy

from ...._kernel import ServiceMachine
from ....kernel.arrays import Floats
from ....kernel.plain_fields import plain
from ....machine.reference.interconnect import route
from ....machine.reference.service_machine import PieceDemand
from ....machine.reference.shared_service import NEVER, SharedService
from ..history import Row


class _Served(NamedTuple):
    """A piece under way: its name in the service."""

    name: int
    core: int
    demand: PieceDemand
    units: float
    began_ps: int


class Clock:
    """``ended``: told the job of each piece that ends. After each event, and each call from
    outside, ``plan`` lets threads ``settle``, and looks when the service changes next."""

    def __init__(self, machine: ServiceMachine, ended: Callable[[int], None]) -> None:
        self.env = simpy.Environment()
        self.machine = plain(machine)
        self.service = SharedService(machine)
        self._under_way: dict[int, _Served] = {}
        n = len(machine.read_ps)
        self._lines = np.zeros((2, n, n))  # read and written, by the thread's node and home
        self._core_ps = np.zeros(len(machine.core_node))
        self._called_ps = 0  # when the service was called last
        self.trace: list[Row] = []
        self.events = 0
        self.halted = False
        self._ended = ended
        self.settle: Callable[[], None] = lambda: None
        self._planned = NEVER

    @property
    def now(self) -> int:
        """The time reached, in ps."""
        return int(self.env.now)

    def log(self, what: int, a: int, b: int = 0, c: int = 0, d: int = 0) -> None:
        """Adds a row to the trace."""
        self.trace.append((self.now, what, a, b, c, d))

    def after(self, delay_ps: int, then: Callable[[], None]) -> None:
        """Something happens after so long."""

        def due(_: object) -> None:
            then()
            self.plan()

        self.env.timeout(delay_ps).callbacks.append(due)

    def start(self, core: int, demand: PieceDemand, units: float, job: int) -> None:
        """A piece of so many units begins; ``ended`` is told its job."""
        number = self.service.demand(demand)
        name = self.service.start(self.now, core, number, units, job)
        self._called_ps = self.now
        self._under_way[job] = _Served(name, core, demand, units, self.now)

    def stop(self, job: int) -> float:
        """A piece ends early: how many of its units are left."""
        served = self._under_way.pop(job)
        left = self.service.cancel(self.now, served.name)
        self._called_ps = self.now
        self._count(self._lines, served, served.units - left)
        self._core_ps[served.core] += self.now - served.began_ps
        return left

    def plan(self) -> None:
        """An event for the next change, unless one comes before, which then plans again."""
        self.settle()
        due_ps = self.service.next_change()
        if due_ps >= self._planned:
            return
        self._planned = due_ps
        self.env.timeout(due_ps - self.now).callbacks.append(self._change)

    def _change(self, _: object) -> None:
        if self.now != self._planned:
            return  # another one came before
        self._planned = NEVER
        self.finish_due()
        self.plan()

    def finish_due(self) -> bool:
        """Ends all pieces whose time has come; whether there were any."""
        self._called_ps = self.now
        found = False
        while (job := self.service.finish(self.now)) is not None:
            served = self._under_way.pop(job)
            self._count(self._lines, served, served.units)
            self._core_ps[served.core] += self.now - served.began_ps
            self._ended(job)
            found = True
        return found

    def run(self, until_ps: int) -> bool:
        """Goes on to that time; False where a copy has arrived before."""
        while self.env.peek() < until_ps:
            self.env.step()
            self.events += 1
            if self.halted:
                self.halted = False
                return False
        if self.now < until_ps:
            self.env.run(until_ps)
        return True

    def _count(self, lines: Floats, served: _Served, units: float) -> None:
        node = self.machine.core_node[served.core]
        for use in served.demand.memory:
            lines[:, node, use.home] += units * np.array([use.read, use.written])

    def service_use(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Lines read and written by home (n,), busy times in ps of controllers (n,), directed
        links (2L,) and cores (C,): counted from pieces, not by the service; but for updates of
        directories, which only the service knows."""
        m, lines, core_ps = self.machine, self._lines.copy(), self._core_ps.copy()
        for served in self._under_way.values():
            since_ps = self.now - self._called_ps
            left = self.service.remaining(served.name) - since_ps * self.service.rate(served.name)
            self._count(lines, served, served.units - left)
            core_ps[served.core] += self.now - served.began_ps
        read, written = lines.sum(axis=1)
        controller_ps = read * np.array(m.read_ps) + written * np.array(m.write_ps)
        controller_ps += [home.updating for home in self.service.homes]
        link_ps = np.zeros(len(m.data_ps))
        for node, home in zip(*np.nonzero(lines.sum(axis=0) * (m.vertices > 0)), strict=True):
            data, request = np.array(m.data_ps), np.array(m.request_ps)
            to_node, to_home = route(m, int(home), int(node)), route(m, int(node), int(home))
            read_lines, written_lines = lines[:, node, home]
            link_ps[to_node] += (read_lines * data + written_lines * request)[to_node]
            link_ps[to_home] += (read_lines * request + written_lines * data)[to_home]
        return read, written, controller_ps, link_ps, core_ps
