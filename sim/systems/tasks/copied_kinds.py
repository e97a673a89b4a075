"""Scans by a copy engine, and work in the background, as rates: what they add to kinds of tasks.

A thread asks for a copy (r), then works on one chunk while the next is copied: r + max(copy, work)
a chunk. Before the first there are the setup and a copy, after the last copy its work: a task takes

    setup + chunks * (r + max(copy, work)) + min(copy, work)

Left out, and simulated by the event plane: that tasks are whole, and meet at the engine at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...kernel.plain_fields import plain
from ...machine.copy_engines import NONE, EnginesInService, line_s, with_copy_engines
from ...machine.costs import LINE_BYTES, CostModel
from ...machine.reference.interconnect import route
from ...machine.service_machine import service_machine
from .program import Background

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def engines_of(costs: CostModel) -> EnginesInService | None:
    """The copy engines of the machine; None where it has none."""
    if not costs.machine.copy_engines:
        return None
    none = np.zeros(0, dtype=np.int64)
    return with_copy_engines(service_machine(costs, none, none), costs)


@dataclass(frozen=True)
class CopiedKinds:
    """Of F kinds of tasks: the ``engine`` (F,) that copies for each, -1 for none; per entry the
    engine's time (F,), lines that it reads and writes (F, n), and its slots (F,).

    ``setup_s``, ``request_s`` (F,): of a thread, before all and for each chunk of ``chunk`` (F,)
    entries.
    """

    engine: Ints
    engine_s: Floats
    read: Floats
    written: Floats
    slots: Floats
    setup_s: Floats
    request_s: Floats
    chunk: Floats

    @staticmethod
    def none(kinds: int, nodes: int) -> CopiedKinds:
        """Nothing is copied yet."""
        zero = np.zeros(kinds)
        return CopiedKinds(
            engine=np.full(kinds, NONE, dtype=np.int64),
            engine_s=zero.copy(),
            read=np.zeros((kinds, nodes)),
            written=np.zeros((kinds, nodes)),
            slots=np.ones(kinds),
            setup_s=zero.copy(),
            request_s=zero.copy(),
            chunk=np.ones(kinds),
        )

    def add(
        self,
        kind: int,
        found: EnginesInService,
        node: int,
        read: Floats,
        written: Floats,
        coherent: bool,
    ) -> None:
        """The engine of ``node`` copies these lines (n,) per entry."""
        engine = found.of_node[node]
        facts = found.engines[engine]
        self.engine[kind] = engine
        self.engine_s[kind] = read.sum() * line_s(facts, coherent)
        self.read[kind], self.written[kind] = read, written
        self.slots[kind] = facts.in_flight_bytes / LINE_BYTES

    def link_bytes(self, found: EnginesInService, costs: CostModel) -> Floats:
        """(F, 2L) on links, per entry."""
        total = np.zeros((len(self.engine), len(costs.link_Bps)))
        if not costs.machine.links:
            return total
        service = plain(found.service)
        data, request = LINE_BYTES + costs.link_header_bytes, costs.link_request_bytes
        response, nodes = costs.link_response_bytes, len(costs.machine.nodes)
        for f in np.flatnonzero(self.engine != NONE).tolist():
            engine_node = service.core_node[found.core[self.engine[f]]]
            for home in np.flatnonzero(self.read[f] + self.written[f]).tolist():
                read, written = self.read[f, home], self.written[f, home]
                if engine_node < nodes:
                    of_read, of_written = costs.line_bytes(engine_node, home)
                    total[f] += read * of_read + written * of_written
                    continue
                to_engine = route(service, home, engine_node)
                back = route(service, engine_node, home)
                total[f, to_engine] += read * data[to_engine] + written * response[to_engine]
                total[f, back] += read * request[back] + written * data[back]
        return total


def background_lines(background: Background, nodes: int) -> tuple[Floats, Floats]:
    """(n,) lines that are read and written per line of a worker's data."""
    read, written = np.zeros(nodes), np.zeros(nodes)
    read[background.home] += 1.0
    written[background.node] += 1.0
    if background.kind == "interconnect":
        read[background.node] += 2.0  # the place of what is written, and the scan
    else:
        read[background.node] += 1.0
        written[background.home] += 1.0
    return read, written
