"""Hand-made machines for ERIS's routing: round figures, so that times can be worked out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from eris_pairs import Row, told

from numatwin.sim._kernel import ErisDemands, ErisMachine, ErisRouting
from numatwin.sim.kernel.histogram import Histogram
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
    usual: dict[str, Any] = {
        "node": list(nodes),
        "core": list(range(len(nodes))),
        "home": [0, 1],
        "issue_ps": [ISSUE] * 2,
        "receive_ps": [RECEIVE] * 2,
        "flush_ps": [FLUSH] * 2,
        "copy_ps": [COPY] * 2,
        "swap_ps": [SWAP] * 2,
        **dict.fromkeys(("batch_ps", "round_ps", "part_ps", "stream_stall"), [0.0] * 2),
        **dict.fromkeys(("stream_slots", "read_slots"), [10.0] * 2),
        "handed_ps": [NEAR, FAR, FAR, NEAR],
        "memory_idle_ps": [100_000.0] * 2,
        **dict.fromkeys(("memory_line_ps", "memory_write_ps"), [0.0] * 2),
        "load": [0.0, 1.0],
        "load_ratio": [1.0, 2.0],
        "buffer_commands": 4,
        "round_commands": 1,
        "incoming_commands": 1000,
    }
    return ErisMachine(**usual | more)


def routing(
    of: ErisMachine,
    shares: Sequence[Sequence[float]],
    scan_lines: Sequence[Sequence[float]] = (),
    seed: int = 0,
) -> ErisRouting:
    """The model. ``shares`` [K, A]: of all commands, by target; ``scan_lines`` [S, A]."""
    count, keyed, scans = len(of.node), len(shares), len(scan_lines)
    names = [f"worker {k} {what}" for what in ("commands", "forwards") for k in range(count)]
    keys = [stream_key(seed, 1, name) for name in names]
    model = ErisRouting(of, keyed + scans, keyed, keys, seed, 1)
    cells = (keyed + scans) * count
    demands = ErisDemands(
        core_ps=[float(WALK)] * (keyed * count) + [float(LINE)] * (scans * count),
        hit_ps=[0.0] * cells,
        lines=[0.0] * cells,
        line_max_ps=[0.0] * cells,
        slots=[10.0] * cells,
        memory_lines=[0.0] * (keyed * count) + [1.0] * (scans * count),
        written=[0.0] * cells,
        scan_lines=[0.0] * (keyed * count) + [float(n) for row in scan_lines for n in row],
    )
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


class Latencies:
    """Of an operation, in ps: how many, their exact mean, and ends and quantiles as the kernel
    counts them, to a part in 128.
    """

    def __init__(self, model: Any, operation: int = 0) -> None:
        counts, total_ps = model.latency(operation)
        self._histogram = Histogram.of_kernel(counts, total_ps)
        self.count, self.mean = self._histogram.count, 1e3 * self._histogram.mean

    @property
    def least(self) -> float:
        return self.quantile(1e-12)

    @property
    def greatest(self) -> float:
        return self.quantile(1.0)

    def quantile(self, part: float) -> float:
        return 1e3 * self._histogram.quantile(part)
