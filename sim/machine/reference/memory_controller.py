"""A memory controller, as ``kernel/memory_controller.hpp``."""

from collections.abc import Sequence
from typing import NamedTuple

from .servers import Backlog, LoadWindow, rounded


class LoadCurve(NamedTuple):
    """Latency of a line over its latency without load (``ratio``), by the controller's load."""

    load: Sequence[float]
    ratio: Sequence[float]

    def at(self, load: float) -> float:
        """The ratio at a load, between the two points next to it."""
        x, y, k = self.load, self.ratio, 1
        while k + 1 < len(x) and x[k] < load:
            k += 1
        return y[k - 1] + (y[k] - y[k - 1]) * (load - x[k - 1]) / (x[k] - x[k - 1])


class MemoryController:
    """Serves lines in order of arrival and answers the later the busier it is; times in ps.

    ``read_ps``, ``write_ps``: how long a line takes it (0 to read: it never limits anything);
    ``idle_ps``: latency of a line without load, from its own node.
    """

    def __init__(self, read_ps: float, write_ps: float, idle_ps: float) -> None:
        self.read_ps, self.write_ps, self.idle_ps = read_ps, write_ps, idle_ps
        self.server, self.window = Backlog(), LoadWindow()
        self.last_wait_ps = self.lines = 0.0

    def serve(self, now: int, lines: float, written: float = 0.0) -> int:
        """When so many lines are served that arrive ``now``, of which some are written."""
        self.lines += lines
        if not self.read_ps:
            return now
        work = rounded((lines - written) * self.read_ps + written * self.write_ps)
        self.window.work += work
        return self.server.serve(now, work)

    def wait_ps(self, now: int, curve: LoadCurve) -> float:
        """How much longer a line takes than without load, by the last window that is over."""
        load = self.window.close(now)
        if load is not None:
            self.last_wait_ps = (curve.at(load) - 1.0) * self.idle_ps
        return self.last_wait_ps

    @property
    def arrived(self) -> int:
        """Work that arrived since counting began."""
        return self.server.taken

    def done(self, now: int) -> int:
        """Work done by now, since counting began."""
        return self.server.done(now)

    def start_counting(self, now: int) -> None:
        """Forgets what was done."""
        self.server.start_counting(now)
        self.lines = 0.0
