"""Long pieces of work that share a machine max-min fair, as ``kernel/shared_service.hpp``.

While a piece runs, a unit of it takes at least ``separate + max(instructions, misses)``, where
misses are lines read * latency / slots; and all pieces together take no more than all the time of
controllers and links. Shares are counted in lines. Threads of a core have equal parts of its
pipeline and miss slots at most, where these are short without load; slots that suffice without
load, they share as they need them. Latencies follow loads by windows of 100 µs:
load times latency is kept. A line holds an entry of its home agents also while it waits for a link;
all wait for entries in one queue, whose wait follows in the same windows. Updates of a directory in
memory are writes, which leave the rest of a controller's time to pieces, by windows too.

Pieces of one demand on cores of one node, with equal parts of their cores, form a class
(``class_sharing``). A class has a clock: lines that each member has served. A member that comes at
clock V with w lines ends at V + w. Work is counted in lines, and in units where there are none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import NamedTuple

from ..._kernel import ServiceMachine
from ...kernel.plain_fields import plain
from .class_sharing import ClassSharing
from .interconnect import way
from .load_window import WINDOW_PS
from .servers import rounded
from .service_machine import MemoryUse, PieceDemand, settled_ratio

WAIT_TOLERANCE = 0.01  # of a node's own latency: by less, waits do not change
ROOM_TOLERANCE = 0.002  # of a controller's time: likewise
NEVER = 2**63 - 1


class CorePart(NamedTuple):
    """What a thread has of its core, at most."""

    pipeline: float
    slots: float


WHOLE = CorePart(1.0, 1.0)


@dataclass
class _Core:
    pieces: list[int] = field(default_factory=list)
    busy: int = 0
    counted: int = 0


@dataclass
class _Piece:
    job: int
    demand: int
    core: int
    left: float
    """Lines, when it joined its class."""
    of: int | None = None
    began: float = 0.0
    end: float = 0.0


@dataclass
class _Class:
    demand: int
    node: int
    part: CorePart
    clock: float = 0.0
    since: int = 0
    pace: float = inf
    begun: float = 0.0
    done: float = 0.0
    marked: float = 0.0
    first_end: float = inf
    members: set[int] = field(default_factory=set)


class SharedService:
    """Pieces are named by the order in which they began; ``finish`` tells the jobs that are done.

    A model keeps one timer, at ``next_change``, which it sets again after each call that changes
    something; when it goes off, it calls ``finish`` until that returns None.
    """

    def __init__(self, machine: ServiceMachine) -> None:
        self.machine = plain(machine)
        self.n = len(machine.read_ps)
        self.waits, self.work = [0.0] * self.n, [0] * self.n
        self.entry_waits = [0.0] * self.n
        self.came, self.waited = [0.0] * self.n, [0.0] * self.n
        self.near, self.far = [0.0] * self.n, [0.0] * self.n
        self.rooms, self.updating = [1.0] * self.n, [0] * self.n
        self.sharing = ClassSharing(self.n + len(machine.data_ps))
        self.cores = [_Core() for _ in machine.core_node]
        self.demands: list[PieceDemand] = []
        self.lines_of: list[float] = []
        self.classes: list[_Class] = []
        self.class_of: dict[tuple[int, int, CorePart], int] = {}
        self.pieces: dict[int, _Piece] = {}
        self.began = 0
        self.changed_cores: dict[int, None] = {}
        self.changed: dict[int, None] = {}
        self.window: dict[int, None] = {}
        self.ended: deque[int] = deque()
        self.now, self.window_end = 0, WINDOW_PS

    def demand(self, of: PieceDemand) -> int:
        """The number of a demand; equal ones have the same."""
        if of not in self.demands:
            lines = 0.0
            for m in of.memory:
                lines += m.read + m.written
            self.demands.append(of)
            self.lines_of.append(lines if lines > 0 else 1.0)
        return self.demands.index(of)

    def start(self, now: int, core: int, demand: int, units: float, job: int) -> int:
        """A piece begins on a core; ``job`` is what ``finish`` tells at its end. Its name."""
        self._advance(now)
        self._require_thread(core)
        name = self.began
        self.began += 1
        self.pieces[name] = _Piece(job, demand, core, units * self.lines_of[demand])
        self._occupy(name, core)
        return name

    def move(self, now: int, name: int, core: int) -> None:
        """The piece goes on there from now on."""
        self._advance(now)
        if self.pieces[name].core == core:
            return
        self._require_thread(core)
        self._vacate(name)
        self._occupy(name, core)

    def cancel(self, now: int, name: int) -> float:
        """The piece ends early: how many of its units were left."""
        self._advance(now)
        self._vacate(name)
        of = self.pieces.pop(name)
        return of.left / self.lines_of[of.demand]

    def next_change(self) -> int:
        """When something ends or changes next; ``NEVER`` if nothing does."""
        if self.ended:
            return self.now
        return self._next_time() if self.pieces else NEVER

    def finish(self, now: int) -> int | None:
        """The job of the first piece to end up to now, if there is one (left)."""
        self._advance(now)
        return self.ended.popleft() if self.ended else None

    def rate(self, name: int) -> float:
        """Units per picosecond."""
        self._share()
        of = self.pieces[name]
        assert of.of is not None
        return 1 / (self.classes[of.of].pace * self.lines_of[of.demand])

    def remaining(self, name: int) -> float:
        """Units, as of the last call's time."""
        of = self.pieces[name]
        left = of.left if of.of is None else max(0.0, of.end - self._clock(self.classes[of.of]))
        return left / self.lines_of[of.demand]

    def wait_ps(self, node: int) -> float:
        """How much longer a line of a node takes than without load."""
        return self.waits[node]

    def entry_wait_ps(self, node: int) -> float:
        """How long a line waits for an entry of a node's home agents."""
        return self.entry_waits[node]

    # -- counted since the start

    def count(self, now: int) -> None:
        """Brings what is counted up to date."""
        self._advance(now)

    def lines_read(self, node: int) -> float:
        """Of a node's memory."""
        return sum(units * m.read for _, units, m in self._uses() if m.home == node)

    def lines_written(self, node: int) -> float:
        """Of a node's memory."""
        return sum(units * m.written for _, units, m in self._uses() if m.home == node)

    def lines(self, node: int, home: int) -> float:
        """Read and written by cores of a node, of a home's memory."""
        return sum(
            units * m.read + units * m.written
            for of, units, m in self._uses()
            if of.node == node and m.home == home
        )

    def controller_ps(self, node: int) -> float:
        """How long a controller was busy; with updates of a directory up to the last window."""
        read_ps, write_ps = self.machine.read_ps[node], self.machine.write_ps[node]
        used = (
            units * m.read * read_ps + units * m.written * write_ps
            for _, units, m in self._uses()
            if m.home == node
        )
        return sum(used, start=float(self.updating[node]))

    def link_ps(self, link: int) -> float:
        """How long a directed link was busy."""
        return sum(
            units * time
            for of, units, m in self._uses()
            for at, time in self._wires(of.node, m)
            if at == link
        )

    def core_busy(self, core: int) -> int:
        """How long pieces ran on a core, all together."""
        of = self.cores[core]
        return of.busy + len(of.pieces) * (self.now - of.counted)

    def _uses(self) -> Iterator[tuple[_Class, float, MemoryUse]]:
        """Of each class: its units done, and the memory that they use."""
        for of in self.classes:
            units = self._served(of) / self.lines_of[of.demand]
            for m in self.demands[of.demand].memory:
                yield of, units, m

    # -- pieces on cores

    def _require_thread(self, core: int) -> None:
        if len(self.cores[core].pieces) == self.machine.core_threads[core]:
            raise RuntimeError(f"core {core} has no thread left")

    def _occupy(self, name: int, core: int) -> None:
        of = self.pieces[name]
        of.core = core
        if self.machine.core_threads[core] == 1:
            self._join(name, self._class_of(of.demand, self.machine.core_node[core], WHOLE))
        else:
            self.changed_cores[core] = None
        self._count_core(core)
        self.cores[core].pieces.append(name)

    def _vacate(self, name: int) -> None:
        of = self.pieces[name]
        if of.of is not None:
            self._quit(name)
        self._count_core(of.core)
        self.cores[of.core].pieces.remove(name)
        if self.machine.core_threads[of.core] > 1:
            self.changed_cores[of.core] = None

    def _count_core(self, core: int) -> None:
        self.cores[core].busy = self.core_busy(core)
        self.cores[core].counted = self.now

    # -- classes

    def _held_ps(self, demand: PieceDemand, node: int, waits: Sequence[float]) -> float:
        """The time that a unit's misses take a thread that has all of its core's slots."""
        held = 0.0
        for m in demand.memory:
            if m.read > 0:
                latency_ps = self.machine.latency_ps[node * self.n + m.home] + waits[m.home]
                held += m.read * latency_ps / m.slots
        return held

    def _least_pace(self, of: _Class) -> float:
        d = self.demands[of.demand]
        waits = [a + b for a, b in zip(self.waits, self.entry_waits, strict=True)]
        held = self._held_ps(d, of.node, waits) / of.part.slots
        each = d.separate_ps + max(d.instructions_ps, held)
        each = max(each, (d.instructions_ps + d.separate_ps) / of.part.pipeline)
        return each / self.lines_of[of.demand]

    def _look_at_threads(self, core: int) -> None:
        """What each thread of a core has of it, by those that run there now."""
        pieces, node = self.cores[core].pieces, self.machine.core_node[core]
        needs, most = [], WHOLE
        for name in pieces:
            d = self.demands[self.pieces[name].demand]
            held = self._held_ps(d, node, [0.0] * self.n)
            each = d.separate_ps + max(d.instructions_ps, held)
            needs.append(
                CorePart((d.instructions_ps + d.separate_ps) / each, held / each)
                if each > 0
                else CorePart(0.0, 0.0)
            )
        if len(pieces) > 1:
            most = CorePart(
                equal_part(self.machine.smt_throughput, [need.pipeline for need in needs]),
                equal_part(1.0, [need.slots for need in needs]),
            )
        slots = sum(need.slots for need in needs)
        for name, need in zip(pieces, needs, strict=True):
            of = self.pieces[name]
            part = CorePart(
                most.pipeline if need.pipeline > most.pipeline else 1.0,
                part_of_slots(need.slots, slots, most.slots),
            )
            index = self._class_of(of.demand, node, part)
            if index == of.of:
                continue
            if of.of is not None:
                self._quit(name)
            self._join(name, index)

    def _class_of(self, demand: int, node: int, part: CorePart) -> int:
        key = demand, node, part
        if key not in self.class_of:
            self.class_of[key] = len(self.classes)
            self.classes.append(_Class(*key))
            d, m = self.demands[demand], self.machine
            needs: dict[int, float] = {}
            for use in d.memory:
                time = use.read * m.read_ps[use.home] + use.written * m.write_ps[use.home]
                parts = [(use.home, time)]
                parts += [(self.n + link, each) for link, each in self._wires(node, use)]
                for resource, each in parts:
                    if each > 0:
                        needs[resource] = needs.get(resource, 0.0) + each / self.lines_of[demand]
            self.sharing.add_class(needs.items())
        return self.class_of[key]

    def _wires(self, node: int, use: MemoryUse) -> Iterator[tuple[int, float]]:
        """Wire time on each link: lines that are read come from home, written ones go there, and
        requests go the other way."""
        m, (home, read, written, _) = self.machine, use
        if home == node or not m.data_ps:
            return
        for link in way(m, home, node):
            yield link, read * m.data_ps[link] + written * m.request_ps[link]
        for link in way(m, node, home):
            yield link, read * m.request_ps[link] + written * m.data_ps[link]

    def _clock(self, of: _Class) -> float:
        return of.clock + (self.now - of.since) / of.pace

    def _served(self, of: _Class) -> float:
        return of.done + len(of.members) * self._clock(of) - of.begun

    def _join(self, name: int, index: int) -> None:
        of, piece = self.classes[index], self.pieces[name]
        piece.of = index
        piece.began = self._clock(of)
        piece.end = piece.began + piece.left
        of.begun += piece.began
        of.members.add(name)
        self._plan(of)
        self.changed[index] = self.window[index] = None

    def _quit(self, name: int) -> None:
        """It leaves its class, before its end or at it."""
        piece = self.pieces[name]
        assert piece.of is not None
        of = self.classes[piece.of]
        left = max(0.0, piece.end - self._clock(of))
        self._leave(name, left)
        piece.left = left

    def _leave(self, name: int, left: float) -> None:
        piece = self.pieces[name]
        assert piece.of is not None
        of = self.classes[piece.of]
        of.done += piece.left - left
        of.members.remove(name)
        of.begun = of.begun - piece.began if of.members else 0.0
        self._plan(of)
        self.changed[piece.of] = None
        piece.of = None

    def _first(self, of: _Class) -> int:
        return min(of.members, key=lambda name: (self.pieces[name].end, name))

    def _plan(self, of: _Class) -> None:
        """When the first of its members ends at its present pace."""
        of.first_end = inf
        if of.members and of.pace < inf:
            wait = (self.pieces[self._first(of)].end - of.clock) * of.pace
            if wait < 2**53:
                of.first_end = max(of.since + ceil(wait), self.now)

    def _share(self) -> None:
        """Changes at one time are shared out at once, when time passes."""
        for core in self.changed_cores:
            self._look_at_threads(core)
        self.changed_cores.clear()
        for index in self.changed:
            of = self.classes[index]
            self.sharing.change(index, len(of.members), self._least_pace(of))
        self.changed.clear()
        for index in self.sharing.share():
            of = self.classes[index]
            of.clock = self._clock(of) if of.members else 0.0
            of.since, of.pace = self.now, self.sharing.classes[index].pace
            self._plan(of)

    # -- time

    def _next_time(self) -> int:
        self._share()
        first = min((of.first_end for of in self.classes), default=inf)
        return self.window_end if first > self.window_end else int(first)

    def _take_ends(self) -> None:
        """Those whose time has come leave, by time and class."""
        while self.classes:
            first = min(self.classes, key=lambda of: of.first_end)
            if first.first_end > self.now:
                return
            name = self._first(first)
            self._leave(name, 0.0)
            self._vacate(name)
            self.ended.append(self.pieces.pop(name).job)

    def _advance(self, now: int) -> None:
        if now > self.now:
            while self.pieces and (at := self._next_time()) < now:
                self.now = at
                self._take_ends()
                if self.now == self.window_end:
                    self._close_window()
            if not self.pieces:
                self._rest(now)
            self.now = now
        self._take_ends()
        if self.now == self.window_end:
            self._close_window()

    def _rest(self, now: int) -> None:
        """Nothing runs up to now: windows without load are all alike."""
        for _ in range(2):
            if self.window_end < now:
                self.now = self.window_end
                self._close_window()
        if self.window_end < now:
            self.window_end = -(-now // WINDOW_PS) * WINDOW_PS

    def _close_window(self) -> None:
        """Latencies follow the loads of the window that is over, and pieces the latencies."""
        self.window_end += WINDOW_PS
        m, changed = self.machine, set()
        for index in self.window:
            of = self.classes[index]
            lines = self._served(of)
            units = (lines - of.marked) / self.lines_of[of.demand]
            of.marked = lines
            for home, read, written, _ in self.demands[of.demand].memory:
                time = read * m.read_ps[home] + written * m.write_ps[home]
                self.work[home] += rounded(units * time)
                by = self.near if home == of.node else self.far
                by[home] += units * read
            if m.entries:
                self._hold_entries(index, units)
        for home in range(self.n):
            if m.directory_in_memory:
                self._settle_directory(home)
            if self._settle(home) | self._settle_entries(home):
                changed.add(home)
        for index in self.window:
            memory = self.demands[self.classes[index].demand].memory
            if any(use.read > 0 and use.home in changed for use in memory):
                self.changed[index] = None
        self.window = {k: None for k in self.window if self.classes[k].members}

    def _settle_directory(self, home: int) -> None:
        """What its updates took in the window, and leave in the next: of the lines that near and
        far readers read, the last reader was near with the probability that readers are."""
        near, far = self.near[home], self.far[home]
        self.near[home] = self.far[home] = 0.0
        updates = 2 * near * far / (near + far) if near + far > 0 else 0.0
        work, updating = self.work[home], rounded(updates * self.machine.write_ps[home])
        room = work / (work + updating) if work > 0 else 1.0
        fit = max(min(updating, WINDOW_PS - work), 0)
        self.work[home] += fit
        self.updating[home] += fit
        before = self.rooms[home]
        if abs(room - before) <= ROOM_TOLERANCE and not (room == 1 and before < 1):
            return
        self.rooms[home] = room
        self.sharing.limit(home, room)

    def _settle(self, home: int) -> bool:
        """A controller's latency follows its load; whether it has changed."""
        idle_ps = self.machine.latency_ps[home * self.n + home]
        load = min(1.0, self.work[home] / WINDOW_PS)
        self.work[home] = 0
        if not idle_ps > 0:
            return False
        ratio = settled_ratio(self.machine, load * (1 + self.waits[home] / idle_ps))
        wait_ps = (ratio - 1) * idle_ps
        if abs(wait_ps - self.waits[home]) <= WAIT_TOLERANCE * idle_ps:
            return False
        self.waits[home] = wait_ps
        return True

    def _hold_entries(self, index: int, units: float) -> None:
        """What a class has read in a window, and how long these lines waited for the link that
        bounds it now, on their way to the core."""
        of = self.classes[index]
        memory = self.demands[of.demand].memory
        for use in memory:
            self.came[use.home] += units * use.read
        link = self.sharing.classes[index].binding - self.n
        if not of.members or not of.pace < inf or not 0 <= link < len(self.machine.data_ps):
            return
        crossing = [
            use
            for use in memory
            if use.read > 0 and use.home != of.node and link in way(self.machine, use.home, of.node)
        ]
        held = 0.0
        for use in crossing:
            held += use.read / use.slots
        longer_ps = (of.pace - self._least_pace(of)) * self.lines_of[of.demand]
        if not held > 0 or not longer_ps > 0:
            return
        wait_ps = longer_ps * of.part.slots / held
        for use in crossing:
            self.waited[use.home] += units * use.read * wait_ps

    def _settle_entries(self, home: int) -> bool:
        """The wait for entries follows how many are held; whether it has changed."""
        m, before = self.machine, self.entry_waits[home]
        if not m.entries or not m.entries[home] > 0:
            return False
        came, waited, entries = self.came[home], self.waited[home], m.entries[home]
        self.came[home] = self.waited[home] = 0.0
        if waited == 0 and before == 0:
            return False
        idle_ps = m.latency_ps[home * self.n + home]
        all_ps = entries * m.read_ps[home]
        held_ps = idle_ps + self.waits[home]
        if all_ps > 0:
            held_ps = min(held_ps, all_ps)
        wait_ps = 0.0
        if came > 0:
            wait_ps = max(0.0, before + (came * held_ps + waited - entries * WINDOW_PS) / came)
        near = abs(wait_ps - before) <= WAIT_TOLERANCE * idle_ps
        if wait_ps == before or (near and wait_ps > 0):
            return False
        self.entry_waits[home] = wait_ps
        return True


def part_of_slots(need: float, of_all: float, most: float) -> float:
    """What a thread has at most: of slots that suffice without load, its part of what all need."""
    if of_all <= 1:
        return need / of_all if need > 0 else 1.0
    return most if need > most else 1.0


def equal_part(of_all: float, needs: Sequence[float]) -> float:
    """Who needs more than this part of what is shared is limited to it; 1 if all is enough."""
    for before, need in enumerate(sorted(needs)):
        others = len(needs) - before
        if need > of_all / others:
            return of_all / others
        of_all -= need
    return 1.0
