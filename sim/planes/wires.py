"""Bytes on links per cache line, for each pair of nodes; each computed once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..machine.costs import LINE_BYTES, CostModel
from .resources import Resources

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

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
        self._handed: tuple[Floats, Floats, Floats, Floats] | None = None

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

    def rows(self, lines: Floats, *, written: bool) -> Floats:
        """(2, n, 2L) wire bytes of each row of ``lines``, read or ``written`` back."""
        key = (written, lines.tobytes())
        if key not in self._rows:
            costs = self.costs
            self._rows[key] = (costs.written_wire_rows if written else costs.wire_rows)(lines)
        return self._rows[key]

    def handed_over(self, source: Floats, target: Floats) -> tuple[Floats, Floats, Floats]:
        """Of lines that issuers ``source`` (n,) fetch from executors ``target`` (n,), who fetch
        them back: ``source`` as used, lines (n, n) between nodes, (2, 2L) wire bytes.

        Those of the last call, if that was about the same.
        """
        if self._handed is not None:
            before, to, *_ = self._handed
            near = np.abs(source - before).max() <= SOURCE_TOLERANCE
            if near and np.abs(target - to).max() <= SOURCE_TOLERANCE:
                return before, *self._handed[2:]
        moved = np.outer(source, target)
        moved = moved + moved.T
        np.fill_diagonal(moved, 0.0)
        wire = self.costs.wire_Bps(moved, snooped=False)
        self._handed = source, target, moved, wire
        return source, moved, wire
