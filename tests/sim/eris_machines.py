"""Hand-made machines for ERIS's routing: round figures, so that times can be worked out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from eris_pairs import Row, told

from numatwin.sim._kernel import ErisDemands, ErisMachine, ErisRouting
from numatwin.sim.kernel.streams import stream_key
from numatwin.sim.systems.eris.event_model import table_of

# In ps: of a command, of a flush and of each command in it, of a swap; the line's way within a node
# and to another.
ISSUE, RECEIVE, FLUSH, COPY, SWAP = 1_000, 500, 2_000, 100, 300
NEAR, FAR = 50, 400
WALK = 700  # of a command that is executed
LINE = 10  # of a line that a scan reads


def machine(nodes: Sequence[int] = (0, 1), **more: Any) -> ErisMachine:
    """Workers, one a core, on the nodes named; two nodes, no links, memory without end.

    A command takes a quarter of a line, and a core has ten lines under way: what it copies from the
    other node in a flush of a few commands is hidden behind the instructions.
    """
    found = ErisMachine()
    found.node, found.core, found.home = list(nodes), list(range(len(nodes))), [0, 1]
    found.issue_ps, found.receive_ps = [ISSUE] * 2, [RECEIVE] * 2
    found.flush_ps, found.copy_ps, found.swap_ps = [FLUSH] * 2, [COPY] * 2, [SWAP] * 2
    found.batch_ps, found.round_ps, found.part_ps = [0.0] * 2, [0.0] * 2, [0.0] * 2
    found.stream_slots, found.read_slots = [10.0] * 2, [10.0] * 2
    found.handed_ps = [NEAR, FAR, FAR, NEAR]
    found.memory_idle_ps = [100_000.0] * 2
    found.memory_line_ps, found.memory_write_ps = [0.0] * 2, [0.0] * 2
    found.load, found.load_ratio = [0.0, 1.0], [1.0, 2.0]
    found.buffer_commands, found.round_commands, found.incoming_commands = 4, 1, 1000
    for name, value in more.items():
        setattr(found, name, value)
    return found


def routing(
    of: ErisMachine,
    shares: Sequence[Sequence[float]],
    scan_lines: Sequence[Sequence[float]] = (),
    seed: int = 0,
) -> ErisRouting:
    """The model. ``shares`` [K, A]: of all commands, by target; ``scan_lines`` [S, A]."""
    count, keyed, scans = len(of.node), len(shares), len(scan_lines)
    kinds = ["commands", "forwards"]
    kinds += ["interruptions"] if of.turns is not None else []
    kinds += ["paces"] if of.pace_lasts_ps > 0 else []
    names = [f"worker {k} {what}" for what in kinds for k in range(count)]
    names += ["cores apart"] if of.apart_ps > 0 else []
    keys = [stream_key(seed, 1, name) for name in names]
    model = ErisRouting(of, keyed + scans, keyed, keys, seed, 1)
    demands = ErisDemands()
    cells = (keyed + scans) * count
    demands.core_ps = [float(WALK)] * (keyed * count) + [float(LINE)] * (scans * count)
    demands.hit_ps, demands.lines, demands.surely_ps = [0.0] * cells, [0.0] * cells, [0.0] * cells
    demands.slots = [10.0] * cells
    demands.memory_lines = [0.0] * (keyed * count) + [1.0] * (scans * count)
    demands.written = [0.0] * cells
    demands.scan_lines = [0.0] * (keyed * count) + [float(n) for row in scan_lines for n in row]
    model.update(demands)
    sums, guide = table_of([np.array(row) for row in shares], [1.0] * scans)
    model.route(sums.tolist(), guide.tolist(), [])
    model.tracing = True
    model.start()
    return model


def rows(model: ErisRouting, kind: str = "", worker: int | None = None) -> list[Row]:
    """The trace, or what is of that kind and worker."""
    return [
        row
        for row in told(model.trace().tolist())
        if (not kind or row[1] == kind) and worker in (None, row[2])
    ]
