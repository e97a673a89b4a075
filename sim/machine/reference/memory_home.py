"""How long lines of a node's memory wait, by windows of 100 µs, as ``kernel/memory_home.hpp``.

A controller's latency follows its load: load times latency is kept. A line holds an entry of its
home agents also while it waits for a link; all wait for entries in one queue. Updates of a
directory in memory are writes, which leave the rest of the controller's time to pieces.
"""

from ..._kernel import ServiceMachine
from .servers import WINDOW_PS, rounded
from .service_machine import MemoryUse, settled_ratio

WAIT_TOLERANCE = 0.01  # of the node's own latency: by less, waits do not change
ROOM_TOLERANCE = 0.002  # of the controller's time: likewise


class MemoryHome:
    """A node as the home of memory that long pieces use."""

    controller_wait_ps = 0.0
    """How much longer a line takes than without load."""
    entry_wait_ps = 0.0
    """How long a line waits for an entry."""
    room = 1.0
    """The part of the controller's time that pieces have."""
    updating = 0
    """How long updates of the directory took, in all windows."""

    def __init__(self, machine: ServiceMachine, node: int) -> None:
        self.machine = machine
        self.read_ps, self.write_ps = machine.read_ps[node], machine.write_ps[node]
        self.idle_ps = machine.latency_ps[node * len(machine.read_ps) + node]
        self.entries = machine.entries[node] if machine.entries else 0.0
        # In the window under way: lines read by the node's cores, and by others; all of them.
        self.near = self.far = self.read = 0.0
        self.link_wait_ps = 0.0
        self.work = 0

    @property
    def wait_ps(self) -> float:
        """Both waits of a line."""
        return self.controller_wait_ps + self.entry_wait_ps

    def use(self, lines: MemoryUse, units: float, near: bool) -> None:
        """Lines of so many units are read and written, by cores of this node or of another."""
        time_ps = lines.read * self.read_ps + lines.written * self.write_ps
        self.work += rounded(units * time_ps)
        self.read += units * lines.read
        if near:
            self.near += units * lines.read
        else:
            self.far += units * lines.read

    def wait_for_link(self, lines: float, wait_ps: float) -> None:
        """Lines that were read waited so long for a link, each."""
        self.link_wait_ps += lines * wait_ps

    def settle_directory(self) -> bool:
        """What its updates took in the window, and leave in the next; whether ``room`` has changed.

        Of the lines that near and far readers read, the last reader was near with the probability
        that readers are.
        """
        near, far, work = self.near, self.far, self.work
        self.near = self.far = 0.0
        updates = 2 * near * far / (near + far) if near + far > 0 else 0.0
        updating = rounded(updates * self.write_ps)
        room = work / (work + updating) if work > 0 else 1.0
        fitting = max(min(updating, WINDOW_PS - work), 0)
        self.work += fitting
        self.updating += fitting
        if abs(room - self.room) <= ROOM_TOLERANCE and not (room == 1 and self.room < 1):
            return False
        self.room = room
        return True

    def settle_waits(self) -> bool:
        """At the end of the window; whether ``wait_ps`` has changed."""
        controller = self._settle_controller()
        return self._settle_entries() or controller

    def _settle_controller(self) -> bool:
        load = min(1.0, self.work / WINDOW_PS)
        self.work = 0
        if not self.idle_ps > 0:
            return False
        ratio = settled_ratio(self.machine, load * (1 + self.controller_wait_ps / self.idle_ps))
        wait_ps = (ratio - 1) * self.idle_ps
        if abs(wait_ps - self.controller_wait_ps) <= WAIT_TOLERANCE * self.idle_ps:
            return False
        self.controller_wait_ps = wait_ps
        return True

    def _settle_entries(self) -> bool:
        """The wait for entries follows how many are held."""
        read, link_wait_ps, before = self.read, self.link_wait_ps, self.entry_wait_ps
        self.read = self.link_wait_ps = 0.0
        if not self.entries > 0 or (link_wait_ps == 0 and before == 0):
            return False
        all_ps = self.entries * self.read_ps
        held_ps = self.idle_ps + self.controller_wait_ps
        if all_ps > 0:
            held_ps = min(held_ps, all_ps)
        wait_ps = 0.0
        if read > 0:
            room_ps = self.entries * WINDOW_PS
            wait_ps = max(0.0, before + (read * held_ps + link_wait_ps - room_ps) / read)
        small = abs(wait_ps - before) <= WAIT_TOLERANCE * self.idle_ps
        if wait_ps == before or (small and wait_ps > 0):
            return False
        self.entry_wait_ps = wait_ps
        return True
