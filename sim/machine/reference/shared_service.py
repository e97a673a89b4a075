"""Long pieces of work that share a machine max-min fair, as ``kernel/shared_service.hpp``.

A running piece is one demand on all that it uses at once. Per unit of it: time of the controllers
of each node whose memory it uses, wire time of the links on the way, and (where several threads
share its core) of the core's pipeline and miss slots. It goes no faster than
``separate + max(instructions, misses * latency / slots)`` allows. Rates are shared out anew when a
piece comes, ends or moves; latencies follow the load of the last window.

Shares come from the kernel's ``FlowNetwork``, as random numbers come from its ``Stream``: the same
calls give the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import NamedTuple

import numpy as np
import simpy

from ..._kernel import FlowNetwork
from .interconnect import Routes
from .load_window import WINDOW_PS, LoadWindow
from .memory_controller import LoadCurve
from .servers import rounded

WAIT_TOLERANCE = 0.01  # of a node's own latency: by less, waits do not change
NEVER = 2**63 - 1


class PieceMemory(NamedTuple):
    """Lines of one node's memory that a unit of a piece reads and writes."""

    home: int
    read: float
    written: float = 0.0


class Piece(NamedTuple):
    """How much there is to do, and what a unit takes: instructions (``separate_ps`` overlap with
    nothing), lines of memory, of which ``slots`` are read at a time."""

    units: float
    instructions_ps: float = 0.0
    separate_ps: float = 0.0
    slots: float = 1.0
    memory: Sequence[PieceMemory] = ()


class ServiceMachine(NamedTuple):
    """n nodes, C cores, 2L directed links.

    ``read_ps``, ``write_ps`` (n,): of a line at the controller, 0: not limited; ``latency_ps``
    (n * n,): of a line of node j's memory on node i, without load; ``core_node``, ``core_threads``
    (C,): how many pieces run on a core at most; ``data_ps``, ``request_ps`` (2L,): wire time.
    """

    read_ps: Sequence[float]
    write_ps: Sequence[float]
    latency_ps: Sequence[float]
    curve: LoadCurve
    core_node: Sequence[int]
    core_threads: Sequence[int]
    data_ps: Sequence[int] = ()
    request_ps: Sequence[int] = ()
    routes: Routes = Routes((), (), 0)


@dataclass
class _Node:
    wait_ps: float = 0.0
    read: float = 0.0
    written: float = 0.0
    work: float = 0.0
    load: LoadWindow = field(default_factory=LoadWindow)


@dataclass
class _Running:
    job: int
    piece: Piece
    core: int
    left: float
    counted: int
    flow: int = -1
    """In the network; -1: it has ended."""


class SharedService:
    """Pieces are named by the order in which they began; ``finish`` tells the jobs that are done.

    A model keeps one timer, at ``next_change``, which it sets anew after each call that changes
    something; when it goes off, it calls ``finish`` until that returns None.
    """

    def __init__(self, machine: ServiceMachine) -> None:
        self.machine = machine
        self.nodes = [_Node() for _ in machine.read_ps]
        self.link_work = [0.0] * len(machine.data_ps)
        cores = len(machine.core_node)
        self.on_core, self.core_ran = [0] * cores, [0] * cores
        resources = len(self.nodes) + len(self.link_work) + 2 * cores
        self.network = FlowNetwork(np.ones(resources))
        self.pieces: dict[int, _Running] = {}  # in the order of their slots
        self.slots: list[int | None] = []
        self.unused: list[int] = []
        self.began = 0
        self.of_flow: dict[int, int] = {}
        self.ended: deque[int] = deque()
        self.now, self.window_end = 0, WINDOW_PS

    def start(self, now: int, core: int, piece: Piece, job: int) -> int:
        """A piece begins on a core; ``job`` is what ``finish`` tells at its end. Its name."""
        self._progress(now)
        self._require_thread(core)
        if not self.unused:
            self.unused.append(len(self.slots))
            self.slots.append(None)
        slot, name = self.unused.pop(), self.began
        self.began += 1
        self.slots[slot] = name
        self.pieces[name] = _Running(job, piece, core, float(piece.units), self.now)
        self._enter(name, core)
        return name

    def move(self, now: int, name: int, core: int) -> None:
        """The piece goes on there from now on."""
        self._progress(now)
        of = self.pieces[name]
        if of.core == core:
            return
        self._require_thread(core)
        del self.of_flow[of.flow]
        self._count(of, self.network.cancel(of.flow))
        self.on_core[of.core] -= 1
        self._enter(name, core)

    def cancel(self, now: int, name: int) -> float:
        """The piece ends early: how many of its units were left."""
        self._progress(now)
        of = self.pieces[name]
        del self.of_flow[of.flow]
        self._count(of, self.network.cancel(of.flow))
        self._leave(name)
        return of.left

    def next_change(self) -> int:
        """When something ends or changes next; ``NEVER`` if nothing does."""
        if self.ended:
            return self.now
        if not self.pieces:
            return NEVER
        time = self.network.next_event()
        end = max(self.now, ceil(time)) if time < 2**53 else NEVER
        return min(end, self.window_end)

    def finish(self, now: int) -> int | None:
        """The job of the first piece to end up to now, if there is one (left)."""
        self._advance(now)
        return self.ended.popleft() if self.ended else None

    def rate(self, name: int) -> float:
        """Units per picosecond."""
        return float(self.network.rates(np.array([self.pieces[name].flow]))[0])

    def remaining(self, name: int) -> float:
        """Units, as of the last call's time."""
        return self._remaining(self.pieces[name])

    # -- counted since the start

    def count(self, now: int) -> None:
        """Brings what is counted up to date."""
        self._progress(now)
        self._count_all()

    def lines_read(self, node: int) -> float:
        """Of a node's memory."""
        return self.nodes[node].read

    def lines_written(self, node: int) -> float:
        """Of a node's memory."""
        return self.nodes[node].written

    def controller_ps(self, node: int) -> float:
        """How long a controller was busy."""
        return self.nodes[node].work

    def link_ps(self, link: int) -> float:
        """How long a directed link was busy."""
        return self.link_work[link]

    def core_busy(self, core: int) -> int:
        """How long pieces ran on a core, all together."""
        return self.core_ran[core]

    # -- how it is done

    def _require_thread(self, core: int) -> None:
        if self.on_core[core] == self.machine.core_threads[core]:
            raise RuntimeError(f"core {core} has no thread left")

    def _enter(self, name: int, core: int) -> None:
        of = self.pieces[name]
        of.core, of.counted = core, self.now
        self.on_core[core] += 1
        self._launch(name)

    def _launch(self, name: int) -> None:
        """What is left of the piece, as a flow: rate in units per picosecond."""
        of, m, n = self.pieces[name], self.machine, len(self.nodes)
        piece, node = of.piece, self.machine.core_node[of.core]
        needs: list[tuple[int, float]] = []
        held = 0.0
        for home, read, written in piece.memory:
            needs.append((home, read * m.read_ps[home] + written * m.write_ps[home]))
            held += read * (m.latency_ps[node * n + home] + self.nodes[home].wait_ps)
            needs += [(n + link, each) for link, each in self._wires(node, home, read, written)]
        if held > 0:
            held /= piece.slots
        if m.core_threads[of.core] > 1:
            first = n + len(self.link_work) + 2 * of.core
            needs += [(first, piece.instructions_ps + piece.separate_ps), (first + 1, held)]
        needs = [(resource, each) for resource, each in needs if each > 0]
        each = piece.separate_ps + max(piece.instructions_ps, held)
        of.flow = self.network.start_flow(
            np.array([resource for resource, _ in needs], dtype=np.int64),
            of.left,
            coefficients=np.array([each for _, each in needs], dtype=np.float64),
            cap=1.0 / each if each > 0 else inf,
        )
        self.of_flow[of.flow] = name

    def _wires(
        self, node: int, home: int, read: float, written: float
    ) -> Iterator[tuple[int, float]]:
        """Wire time on each link: lines that are read come from home, written ones go there, and
        requests go the other way."""
        m = self.machine
        if home == node or not self.link_work:
            return
        for link in _way(m.routes, home, node):
            yield link, read * m.data_ps[link] + written * m.request_ps[link]
        for link in _way(m.routes, node, home):
            yield link, read * m.request_ps[link] + written * m.data_ps[link]

    def _leave(self, name: int) -> None:
        of = self.pieces.pop(name)
        self.on_core[of.core] -= 1
        slot = self.slots.index(name)
        self.slots[slot] = None
        self.unused.append(slot)

    def _remaining(self, of: _Running) -> float:
        return float(self.network.remaining(np.array([of.flow]))[0])

    def _count(self, of: _Running, left: float) -> None:
        """What it has done since it was counted last, now that so much is left of it."""
        done, m = of.left - left, self.machine
        self.core_ran[of.core] += self.now - of.counted
        of.left, of.counted = left, self.now
        node = m.core_node[of.core]
        for home, read_each, written_each in of.piece.memory:
            read, written = done * read_each, done * written_each
            at = self.nodes[home]
            at.read += read
            at.written += written
            work = read * m.read_ps[home] + written * m.write_ps[home]
            at.work += work
            at.load.work += rounded(work)
            for link, part in self._wires(node, home, read, written):
                self.link_work[link] += part

    def _by_slot(self) -> list[int]:
        return [name for name in self.slots if name is not None]

    def _count_all(self) -> None:
        for name in self._by_slot():
            of = self.pieces[name]
            self._count(of, self._remaining(of))

    def _progress(self, now: int) -> None:
        """Changes at one time are shared out at once, when time passes."""
        if now != self.now:
            self._advance(now)

    def _advance(self, now: int) -> None:
        """Ends of pieces up to now, and of the window under way."""
        self.now = now
        in_time = self.network.next_event() > now - 1
        advance = self.network.advance_tick if in_time else self.network.advance
        for flow in advance(float(now))[1].tolist():
            name = self.of_flow.pop(flow)
            self._count(self.pieces[name], 0.0)
            self.ended.append(self.pieces[name].job)
            self._leave(name)
        if now >= self.window_end:
            self._close_window()

    def _close_window(self) -> None:
        """Latencies follow the loads of the window that is over, and pieces the latencies."""
        self.window_end = self.now + WINDOW_PS
        self._count_all()
        m, changed = self.machine, set()
        for home, node in enumerate(self.nodes):
            load = node.load.close(self.now)
            if load is None:
                continue
            idle_ps = m.latency_ps[home * len(self.nodes) + home]
            wait_ps = (m.curve.at(load) - 1.0) * idle_ps
            if abs(wait_ps - node.wait_ps) > WAIT_TOLERANCE * idle_ps:
                node.wait_ps = wait_ps
                changed.add(home)
        for name in self._by_slot():
            of = self.pieces[name]
            if any(part.read > 0 and part.home in changed for part in of.piece.memory):
                del self.of_flow[of.flow]
                self.network.cancel(of.flow)
                self._launch(name)


def _way(routes: Routes, start: int, end: int) -> list[int]:
    """The links from node to node, the last one first."""
    found, at = [], end
    while at != start:
        found.append(routes.entering[start * routes.vertices + at])
        at = routes.predecessor[start * routes.vertices + at]
    return found


class ServedPieces:
    """A service on SimPy's clock: a piece's end is an event."""

    def __init__(self, env: simpy.Environment, service: SharedService) -> None:
        self.env, self.service = env, service
        self.ends: list[simpy.Event] = []
        self.planned = 0

    def start(self, core: int, piece: Piece) -> tuple[int, simpy.Event]:
        """A piece begins: its name and its end."""
        end = self.env.event()
        self.ends.append(end)
        name = self.service.start(int(self.env.now), core, piece, len(self.ends) - 1)
        self._plan()
        return name, end

    def move(self, name: int, core: int) -> None:
        """See SharedService."""
        self.service.move(int(self.env.now), name, core)
        self._plan()

    def cancel(self, name: int) -> float:
        """See SharedService; its end never comes."""
        left = self.service.cancel(int(self.env.now), name)
        self._plan()
        return left

    def _plan(self) -> None:
        self.planned += 1
        plan, at = self.planned, self.service.next_change()

        def due(_: object) -> None:
            if plan == self.planned:
                while (job := self.service.finish(int(self.env.now))) is not None:
                    self.ends[job].succeed()
                self._plan()

        if at < NEVER:
            self.env.timeout(at - int(self.env.now)).callbacks.append(due)
