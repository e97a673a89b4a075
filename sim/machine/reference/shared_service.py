"""Long pieces of work that share a machine max-min fair, as ``kernel/shared_service.hpp``.

While a piece runs, a unit of it takes at least ``separate + max(instructions, misses)``, where
misses are lines read * latency / slots (of each loop, where it has several: ``separate +`` the sum
of ``max``); and all pieces together take no more than all the time of controllers, links and locks.
Shares are counted in lines. Threads of a core share it as in ``core_parts``.
Latencies follow loads, and lines wait for entries of home agents and before links, by windows of
100 µs (``memory_home``). Streams get lines as fast as they were measured to, at least.

Pieces of one demand on cores of one node, with equal parts of their cores, form a class
(``piece_class``, ``class_sharing``). Work is counted in lines, and in units where there are none.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf

from ..._kernel import ServiceMachine
from ...kernel.plain_fields import plain
from .class_sharing import ClassSharing
from .core_parts import WHOLE, CorePart, core_parts, need_of
from .interconnect import route
from .memory_home import WAIT_TOLERANCE, MemoryHome
from .overlap import overlapped
from .piece_class import PieceClass
from .servers import WINDOW_PS, rounded
from .service_machine import MemoryUse, PieceDemand, settled_link_wait

NEVER = 2**63 - 1


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
    class_index: int | None = None
    began: float = 0.0
    end: float = 0.0


class SharedService:
    """Pieces are named by the order in which they began; ``finish`` tells the jobs that are done.

    A model keeps one timer, at ``next_change``, which it sets again after each call that changes
    something; when it goes off, it calls ``finish`` until that returns None.
    """

    def __init__(self, machine: ServiceMachine) -> None:
        self.machine = plain(machine)
        self.n = len(machine.read_ps)
        self.homes = [MemoryHome(self.machine, node) for node in range(self.n)]
        self.sharing = ClassSharing(self.n + len(machine.data_ps) + machine.limits)
        self.cores = [_Core() for _ in machine.core_node]
        self.demands: list[PieceDemand] = []
        self.lines_of: list[float] = []
        self.classes: list[PieceClass] = []
        self.class_of: dict[tuple[int, int, CorePart], int] = {}
        self.pieces: dict[int, _Piece] = {}
        self.began = 0
        self.changed_cores: dict[int, None] = {}
        self.changed: dict[int, None] = {}
        self.window: dict[int, None] = {}
        self.ended: deque[int] = deque()
        self.now, self.window_end = 0, WINDOW_PS
        self.link_work, self.link_wait_ps = ([0] * len(machine.data_ps) for _ in range(2))

    def demand(self, demand: PieceDemand) -> int:
        """The number of a demand; equal ones have the same."""
        if demand not in self.demands:
            lines = 0.0
            for m in demand.memory:
                lines += m.read + m.written
            self.demands.append(demand)
            self.lines_of.append(lines if lines > 0 else 1.0)
        return self.demands.index(demand)

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
        piece = self.pieces.pop(name)
        return piece.left / self.lines_of[piece.demand]

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
        piece = self.pieces[name]
        assert piece.class_index is not None
        return 1 / (self.classes[piece.class_index].pace * self.lines_of[piece.demand])

    def remaining(self, name: int) -> float:
        """Units, as of the last call's time."""
        piece = self.pieces[name]
        left = (
            piece.left
            if piece.class_index is None
            else max(0.0, piece.end - self.classes[piece.class_index].clock_at(self.now))
        )
        return left / self.lines_of[piece.demand]

    def wait_ps(self, node: int) -> float:
        """How much longer a line of a node takes than without load."""
        return self.homes[node].controller_wait_ps

    def entry_wait_ps(self, node: int) -> float:
        """How long a line waits for an entry of a node's home agents."""
        return self.homes[node].entry_wait_ps

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
            for piece_class, units, m in self._uses()
            if piece_class.node == node and m.home == home
        )

    def controller_ps(self, node: int) -> float:
        """How long a controller was busy; with updates of a directory up to the last window."""
        read_ps, write_ps = self.machine.read_ps[node], self.machine.write_ps[node]
        used = (
            units * m.read * read_ps + units * m.written * write_ps
            for _, units, m in self._uses()
            if m.home == node
        )
        return sum(used, start=float(self.homes[node].updating))

    def link_ps(self, link: int) -> float:
        """How long a directed link was busy."""
        return sum(
            units * time
            for piece_class, units, m in self._uses()
            for crossed, time in self._wires(piece_class.node, m)
            if crossed == link
        )

    def core_busy(self, core: int) -> int:
        """How long pieces ran on a core, all together."""
        used = self.cores[core]
        return used.busy + len(used.pieces) * (self.now - used.counted)

    def _uses(self) -> Iterator[tuple[PieceClass, float, MemoryUse]]:
        """Of each class: its units done, and the memory that they use."""
        for piece_class in self.classes:
            units = piece_class.served(self.now) / self.lines_of[piece_class.demand]
            for m in self.demands[piece_class.demand].memory:
                yield piece_class, units, m

    def _require_thread(self, core: int) -> None:
        if len(self.cores[core].pieces) == self.machine.core_threads[core]:
            raise RuntimeError(f"core {core} has no thread left")

    def _occupy(self, name: int, core: int) -> None:
        piece = self.pieces[name]
        piece.core = core
        if self.machine.core_threads[core] == 1:
            self._join(name, self._class_of(piece.demand, self.machine.core_node[core], WHOLE))
        else:
            self.changed_cores[core] = None
        self._count_core(core)
        self.cores[core].pieces.append(name)

    def _vacate(self, name: int) -> None:
        piece = self.pieces[name]
        if piece.class_index is not None:
            self._quit(name)
        self._count_core(piece.core)
        self.cores[piece.core].pieces.remove(name)
        if self.machine.core_threads[piece.core] > 1:
            self.changed_cores[piece.core] = None

    def _count_core(self, core: int) -> None:
        self.cores[core].busy = self.core_busy(core)
        self.cores[core].counted = self.now

    def _held_ps(self, memory: Sequence[MemoryUse], node: int, loaded: bool) -> float:
        """The time that a unit's misses take a thread that has all of its core's slots."""
        held = 0.0
        for m in memory:
            if m.read > 0:
                wait_ps = entry_ps = line_max_ps = 0.0
                if loaded:
                    entry_ps = self.homes[m.home].entry_wait_ps
                    wait_ps = self.homes[m.home].wait_ps + self._before_links_ps(node, m.home)
                if self.machine.stream_slots and m.slots >= self.machine.stream_slots[node]:
                    line_max_ps = self.machine.line_max_ps[node * self.n + m.home]
                latency_ps = self.machine.latency_ps[node * self.n + m.home] + wait_ps
                each = m.read * latency_ps / m.slots
                if line_max_ps > 0:
                    each = min(each, m.read * (line_max_ps + entry_ps / m.slots))
                held += each
        return held

    def _before_links_ps(self, node: int, home: int) -> int:
        """How long a line waits before links, on its way from home."""
        if not any(self.link_wait_ps):
            return 0
        return sum(self.link_wait_ps[link] for link in route(self.machine, home, node))

    def _overlapped_ps(self, d: PieceDemand, node: int, slots: float) -> float:
        """Time of a unit's instructions and misses; ``slots``: the part of its core's slots."""
        found = 0.0
        for loop in d.loops or (d,):
            misses_ps = self._held_ps(loop.memory, node, True) / slots
            stall = self._stall(loop.memory, node)
            found += overlapped(loop.instructions_ps, misses_ps, stall)
        return found

    def _stall(self, memory: Sequence[MemoryUse], node: int) -> float:
        """What work does not hide of lines that are all read in order; 0 of others."""
        m = self.machine
        if not m.stream_stall or any(use.slots < m.stream_slots[node] for use in memory):
            return 0.0
        return float(m.stream_stall[node])

    def _least_pace(self, piece_class: PieceClass) -> float:
        d = self.demands[piece_class.demand]
        each = d.separate_ps + self._overlapped_ps(d, piece_class.node, piece_class.part.slots)
        each = max(each, (d.instructions_ps + d.separate_ps) / piece_class.part.pipeline)
        return each / self.lines_of[piece_class.demand]

    def _look_at_threads(self, core: int) -> None:
        """What each thread of a core has of it, by those that run there now."""
        pieces, node = self.cores[core].pieces, self.machine.core_node[core]
        needs = []
        for name in pieces:
            d = self.demands[self.pieces[name].demand]
            held_ps = self._held_ps(d.memory, node, False)
            stall = self._stall(d.memory, node)
            needs.append(need_of(d.instructions_ps, d.separate_ps, held_ps, stall))
        parts = core_parts(needs)
        for name, part in zip(pieces, parts, strict=True):
            piece = self.pieces[name]
            index = self._class_of(piece.demand, node, part)
            if index == piece.class_index:
                continue
            if piece.class_index is not None:
                self._quit(name)
            self._join(name, index)

    def _class_of(self, demand: int, node: int, part: CorePart) -> int:
        key = demand, node, part
        if key not in self.class_of:
            self.class_of[key] = len(self.classes)
            self.classes.append(PieceClass(*key))
            d, m = self.demands[demand], self.machine
            needs: dict[int, float] = {}
            for use in d.memory:
                time = use.read * m.read_ps[use.home] + use.written * m.write_ps[use.home]
                parts = [(use.home, time)]
                parts += [(self.n + link, each) for link, each in self._wires(node, use)]
                for resource, each in parts:
                    if each > 0:
                        needs[resource] = needs.get(resource, 0.0) + each / self.lines_of[demand]
            for lock, held_ps in d.held:
                if held_ps > 0:
                    resource = self.n + len(m.data_ps) + lock
                    held = held_ps / self.lines_of[demand]
                    needs[resource] = needs.get(resource, 0.0) + held
            self.sharing.add_class(needs.items())
        return self.class_of[key]

    def _wires(self, node: int, use: MemoryUse) -> Iterator[tuple[int, float]]:
        """Wire time on each link: lines that are read come from home, for a request; written ones
        go there, for an answer. Reads make further messages, and take limits of transfers, which
        are numbered behind the links."""
        m, (home, read, written, _) = self.machine, use
        answer_ps = m.answer_ps or m.request_ps
        if home != node and m.data_ps:
            for link in route(m, home, node):
                yield link, read * m.data_ps[link] + written * answer_ps[link]
            for link in route(m, node, home):
                yield link, read * m.request_ps[link] + written * m.data_ps[link]
        if node < m.snooping and home < m.snooping:
            row = node * m.snooping + home
            for k in range(m.message_first[row], m.message_first[row + 1]):
                yield m.message_link[k], read * m.message_ps[k]

    def _join(self, name: int, index: int) -> None:
        piece_class, piece = self.classes[index], self.pieces[name]
        piece.class_index = index
        piece.began = piece_class.clock_at(self.now)
        piece.end = piece.began + piece.left
        piece_class.add(name, piece.began)
        self._plan(piece_class)
        self.changed[index] = self.window[index] = None

    def _quit(self, name: int) -> None:
        """It leaves its class, before its end or at it."""
        piece = self.pieces[name]
        assert piece.class_index is not None
        piece_class = self.classes[piece.class_index]
        left = max(0.0, piece.end - piece_class.clock_at(self.now))
        self._leave(name, left)
        piece.left = left

    def _leave(self, name: int, left: float) -> None:
        piece = self.pieces[name]
        assert piece.class_index is not None
        piece_class = self.classes[piece.class_index]
        piece_class.remove(name, piece.began, piece.left - left)
        self._plan(piece_class)
        self.changed[piece.class_index] = None
        piece.class_index = None

    def _first(self, piece_class: PieceClass) -> int:
        return min(piece_class.members, key=lambda name: (self.pieces[name].end, name))

    def _plan(self, piece_class: PieceClass) -> None:
        """When the first of its members ends at its present pace."""
        piece_class.first_end = inf
        if piece_class.members and piece_class.pace < inf:
            lines = self.pieces[self._first(piece_class)].end - piece_class.clock
            wait = lines * piece_class.pace
            if wait < 2**53:
                piece_class.first_end = max(piece_class.since + ceil(wait), self.now)

    def _share(self) -> None:
        """Changes at one time are shared out at once, when time passes."""
        for core in self.changed_cores:
            self._look_at_threads(core)
        self.changed_cores.clear()
        for index in self.changed:
            piece_class = self.classes[index]
            self.sharing.change(index, len(piece_class.members), self._least_pace(piece_class))
        self.changed.clear()
        for index in self.sharing.share():
            piece_class = self.classes[index]
            piece_class.clock = piece_class.clock_at(self.now) if piece_class.members else 0.0
            piece_class.since, piece_class.pace = self.now, self.sharing.classes[index].pace
            self._plan(piece_class)

    def _next_time(self) -> int:
        self._share()
        first = min((each.first_end for each in self.classes), default=inf)
        return self.window_end if first > self.window_end else int(first)

    def _take_ends(self) -> None:
        """Those whose time has come leave, by time and class."""
        while self.classes:
            first = min(self.classes, key=lambda each: each.first_end)
            if first.first_end > self.now:
                return
            name = self._first(first)
            self._leave(name, 0.0)
            self._vacate(name)
            self.ended.append(self.pieces.pop(name).job)

    def _advance(self, now: int) -> None:
        if now > self.now:
            while self.pieces and (next_ps := self._next_time()) < now:
                self.now = next_ps
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
        changed = set()
        for index in self.window:
            piece_class = self.classes[index]
            served = piece_class.served(self.now)
            lines = served - piece_class.marked
            units = lines / self.lines_of[piece_class.demand]
            piece_class.marked = served
            for m in self.demands[piece_class.demand].memory:
                self.homes[m.home].use(m, units, m.home == piece_class.node)
            for need in self.sharing.classes[index].needs:
                if 0 <= need.resource - self.n < len(self.link_work):
                    self.link_work[need.resource - self.n] += rounded(lines * need.time)
            if self.machine.entries:
                self._wait_for_link(index, units)
        for node, home in enumerate(self.homes):
            if self.machine.directory_in_memory and home.settle_directory():
                self.sharing.limit(node, home.room)
            if home.settle_waits():
                changed.add(node)
        links = self._settle_links()
        for index in self.window:
            node, memory = self.classes[index].node, self.demands[self.classes[index].demand].memory
            if any(
                use.read > 0 and (use.home in changed or (links and use.home != node))
                for use in memory
            ):
                self.changed[index] = None
        self.window = {k: None for k in self.window if self.classes[k].members}

    def _settle_links(self) -> bool:
        """Waits before links follow the loads of the window that is over; whether any changes."""
        changed = False
        for link, work in enumerate(self.link_work):
            before, latency_ps = self.link_wait_ps[link], self.machine.latency_ps[0]
            load = min(1.0, work / WINDOW_PS)
            line_ps = self.machine.data_ps[link]
            found = rounded(settled_link_wait(line_ps, latency_ps, load, before))
            if abs(found - before) > WAIT_TOLERANCE * latency_ps:
                self.link_wait_ps[link] = found
                changed = True
        self.link_work = [0] * len(self.link_work)
        return changed

    def _wait_for_link(self, index: int, units: float) -> None:
        """How long lines that a class has read in a window waited for the link that bounds it now,
        on their way to the core."""
        piece_class = self.classes[index]
        link = self.sharing.classes[index].binding - self.n
        if not (piece_class.members and piece_class.pace < inf):
            return
        if not 0 <= link < len(self.machine.data_ps):
            return
        crossing = [
            use
            for use in self.demands[piece_class.demand].memory
            if use.read > 0 and link in route(self.machine, use.home, piece_class.node)
        ]
        held = 0.0
        for use in crossing:
            held += use.read / use.slots
        longer = piece_class.pace - self._least_pace(piece_class)
        longer_ps = longer * self.lines_of[piece_class.demand]
        if not held > 0 or not longer_ps > 0:
            return
        wait_ps = longer_ps * piece_class.part.slots / held
        for use in crossing:
            before_ps = self._before_links_ps(piece_class.node, use.home)
            self.homes[use.home].wait_for_link(units * use.read, wait_ps + before_ps)
