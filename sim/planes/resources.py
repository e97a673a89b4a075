"""The resources of a machine that flows share, by position."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from ..machine.costs import LINE_BYTES, CostModel
from ..machine.hand_over_traffic import HandOverTraffic, hand_over_traffic

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Resources:
    """The R resources of a machine whose cores at ``core_node`` (C,) are in use, by position.

    Time of the workers of a core (as many seconds per second as it runs ``threads`` (C,)), time
    that the core executes, time of its miss slots; time of memory controllers, in bytes that they
    would read in it per second; bytes per second of data and of control messages on directed links;
    units per second that clients ask for, time of the most contended cache line; pairs of nodes
    that transfers go between follow.
    """

    def __init__(self, costs: CostModel, core_node: Ints, threads: Floats) -> None:
        c, n, links = len(core_node), len(costs.machine.nodes), len(costs.link_Bps)
        self.workers = slice(0, c)
        self.cores = slice(c, 2 * c)
        self.misses = slice(2 * c, 3 * c)
        self.memory = slice(3 * c, 3 * c + n)
        self.links = slice(3 * c + n, 3 * c + n + links)
        self.control = slice(self.links.stop, self.links.stop + links)
        self.clients = self.control.stop
        self.line = self.clients + 1
        self.count = self.line + 1
        memory_Bps = np.where(np.isnan(costs.memory_Bps), np.inf, costs.memory_Bps)
        self.capacity = np.concatenate(
            [threads, np.ones(2 * c), memory_Bps, costs.link_Bps, costs.link_Bps, [np.inf, 1.0]]
        )

    def describe(self, position: int) -> tuple[str, int]:
        """Kind (``workers``, ``cores``, ``misses``, ``memory``, ``links``, ``clients``, ``line``,
        ``pairs``), and position within it.
        """
        if position in (self.clients, self.line):
            return "clients" if position == self.clients else "line", 0
        for kind in ("workers", "cores", "misses", "memory", "links", "control"):
            part = getattr(self, kind)
            if part.start <= position < part.stop:
                return "links" if kind == "control" else kind, position - part.start
        return "pairs", position - self.count


Moved = Literal["read", "taken", "written"]

# The link traffic of hand-overs is worked out again when a node's part in it has changed by this.
SOURCE_TOLERANCE = 1e-5


class Wires:
    """Wire bytes on one machine. ``known`` keeps what others worked out of its links: it does not
    depend on rates, nor on how fast the machine's parts are.
    """

    def __init__(
        self, costs: CostModel, resources: Resources, known: dict[object, Floats] | None = None
    ) -> None:
        self.costs, self.resources = costs, resources
        self._rows = {} if known is None else known
        self._lines: dict[tuple[int, int], tuple[Ints, Floats]] = {}
        self._handed: tuple[Floats, Floats, float, HandOverTraffic] | None = None

    def of_line(self, initiator: int, home: int) -> tuple[Ints, Floats]:
        """Resources of links, and wire bytes on each, of a line that one node reads from another.

        Snoops are left out: what is copied lies in nobody's cache but the owner's.
        """
        key = (initiator, home)
        if key not in self._lines:
            costs, columns = self.costs, self.resources
            routes = costs.machine.routes
            known = bool(costs.machine.links)
            data, requests = (
                np.array(routes.links_of(*ends) if known else [], dtype=np.int64)
                for ends in ((home, initiator), (initiator, home))
            )
            self._lines[key] = (
                np.concatenate([columns.links.start + data, columns.control.start + requests]),
                np.concatenate(
                    [LINE_BYTES + costs.link_header_bytes[data], costs.link_request_bytes[requests]]
                ),
            )
        return self._lines[key]

    def rows(self, lines: Floats, moved: Moved) -> Floats:
        """(2, n, 2L) wire bytes of each row of ``lines``: ``read`` from memory, ``taken`` from
        other caches, ``written`` back.
        """
        key = (moved, lines.tobytes())
        if key not in self._rows:
            costs = self.costs
            rows_of = {
                "read": costs.wire_rows,
                "taken": costs.taken_wire_rows,
                "written": costs.written_wire_rows,
            }
            self._rows[key] = rows_of[moved](lines)
        return self._rows[key]

    def handed_over(
        self, source: Floats, target: Floats, passed_on: float
    ) -> tuple[Floats, HandOverTraffic]:
        """Of lines that issuers ``source`` (n,) fetch from executors ``target`` (n,), who fetch
        them back: ``source`` as used, and the traffic of a line, ``passed_on`` included.

        Those of the last call, if that was about the same.
        """
        if self._handed is not None:
            before, to, passed, traffic = self._handed
            near = np.abs(source - before).max() <= SOURCE_TOLERANCE and passed == passed_on
            if near and np.abs(target - to).max() <= SOURCE_TOLERANCE:
                return before, traffic
        traffic = hand_over_traffic(self.costs, source, target, passed_on)
        self._handed = source, target, passed_on, traffic
        return source, traffic
