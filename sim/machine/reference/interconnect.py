"""Links, and all of a machine's with the routes over them, as ``kernel/interconnect.hpp``."""

from collections.abc import Sequence
from typing import NamedTuple

from ..._kernel import ServiceMachine, SparseRows
from .servers import WINDOW_PS, Backlog, rounded


class Routes(NamedTuple):
    """Of each vertex, on the way there from a node (n, v): the last directed link, and the vertex
    before it. Nodes are the first n of the v ``vertices``."""

    entering: Sequence[int]
    predecessor: Sequence[int]
    vertices: int


def route(routes: Routes | ServiceMachine, start: int, end: int) -> list[int]:
    """The links from node to node, the last one first."""
    links, vertex = [], end
    while vertex != start:
        links.append(routes.entering[start * routes.vertices + vertex])
        vertex = routes.predecessor[start * routes.vertices + vertex]
    return links


class MemoryPaths(NamedTuple):
    """What a line of memory costs on links, by the node that uses it: wire time of data and of
    control messages, and bytes of both."""

    data_ps: SparseRows
    control_ps: SparseRows
    bytes: SparseRows


class Crossing(NamedTuple):
    """What goes from one node to another at a time: lines with their headers, and messages of the
    size of a request. What is behind comes after the rest, and nobody waits for it."""

    lines: float
    messages: float
    behind: float
    messages_behind: float


class Interconnect:
    """``data_ps``, ``request_ps`` (2L,): how long a line with its header, and a request for one,
    take each directed link."""

    def __init__(
        self, data_ps: Sequence[float], request_ps: Sequence[float], routes: Routes
    ) -> None:
        self.routes = routes
        self.data_ps = [rounded(float(each)) for each in data_ps]
        self.request_ps = [rounded(float(each)) for each in request_ps]
        self.links = [Link() for _ in data_ps]
        self.start_counting(0)

    def send_lines(self, now: int, start: int, end: int, lines: float, done: int) -> int:
        """When lines that go from node to node are across, no earlier than ``done``.

        Requests for them take the way back, and nobody waits for these.
        """
        if start == end:
            return done
        for link in self.route(start, end):
            done = max(done, self.carry(now, link, lines))
        for link in self.route(end, start):
            self.signal(now, link, lines)
        return done

    def cross(self, now: int, start: int, end: int, sent: Crossing, done: int) -> int:
        """The same for all that goes one way at a time."""
        if start == end:
            return done
        for link in self.route(start, end):
            done = max(done, self.carry(now, link, sent.lines))
            self.signal(now, link, sent.messages)
            self.carry(now, link, sent.behind)
            self.signal(now, link, sent.messages_behind)
        return done

    def carry(self, now: int, link: int, lines: float) -> int:
        """When lines that come to a link are across."""
        self.lines[link] += lines
        return self.links[link].data(now, rounded(lines * self.data_ps[link]))

    def signal(self, now: int, link: int, messages: float) -> None:
        """Messages of the size of a request come to a link."""
        self.requests[link] += messages
        self.links[link].message(now, rounded(messages * self.request_ps[link]))

    def use_memory(self, now: int, paths: MemoryPaths, node: int, lines: float, done: int) -> int:
        """When all messages are across that a core of ``node`` causes with lines of memory."""
        for link, each in paths.data_ps.row(node):
            done = max(done, self.links[link].data(now, rounded(lines * each)))
        for link, each in paths.control_ps.row(node):
            done = max(done, self.links[link].message(now, rounded(lines * each)))
        for link, each in paths.bytes.row(node):
            self.bytes[link] += lines * each
        return done

    def route(self, start: int, end: int) -> list[int]:
        """The links from node to node, the last one first; none where there are none at all."""
        return route(self.routes, start, end) if self.links else []

    def done(self, now: int) -> list[int]:
        """How long each link was busy."""
        return [link.done(now) for link in self.links]

    def start_counting(self, now: int) -> None:
        """Forgets what was carried: lines and requests from node to node, bytes of memory."""
        self.lines, self.requests, self.bytes = ([0.0] * len(self.links) for _ in range(3))
        for link in self.links:
            link.start_counting(now)


DATA_PART_MIN = 0.05  # of the wire, that control messages leave to data at least


class Link:
    """Control messages go first; data get what these left free in the last window."""

    def __init__(self) -> None:
        self.both = Backlog()
        self.data_free = self.control_free = self.start = self.work = 0
        self.stretch = 1.0

    def data(self, now: int, work: int) -> int:
        """When data are across that take the wire so long."""
        self.look(now)
        self.both.serve(now, work)
        self.data_free = max(self.data_free, now) + rounded(work * self.stretch)
        return self.data_free

    def message(self, now: int, work: int) -> int:
        """When a control message is across."""
        self.look(now)
        self.work += work
        self.both.serve(now, work)
        self.control_free = max(self.control_free, now) + work
        return self.control_free

    def look(self, now: int) -> None:
        """Once a window: what control messages leave to data."""
        if now - self.start >= WINDOW_PS:
            self.stretch = 1.0 / max(1.0 - self.work / (now - self.start), DATA_PART_MIN)
            self.start, self.work = now, 0

    def done(self, now: int) -> int:
        """How long the wire was busy by now, since counting began: while any of both is left."""
        return self.both.done(now)

    def start_counting(self, now: int) -> None:
        """Forgets what was done."""
        self.both.start_counting(now)
