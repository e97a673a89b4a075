"""All parts of one machine as event models are made of them, from the cost model's figures."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._kernel import Histogram, PartsSetup
from ..kernel.streams import stream_key
from .costs import LINE_BYTES, CostModel
from .disturbances.facts import PS_PER_S, STREAM
from .threads import Workers


def parts_setup(
    costs: CostModel, workers: Workers, seed: int = 0, replication: int = 0
) -> PartsSetup:
    """The parts of ``costs.machine`` in ps, with a thread for each of the ``workers``.

    ``seed``, ``replication``: what interruptions of cores are drawn by.
    """
    machine = costs.machine
    line_ps = np.nan_to_num(LINE_BYTES * PS_PER_S / costs.memory_Bps, nan=0.0)
    load, load_ratio = costs.loaded_latency
    links: dict[str, Any] = {}
    if machine.links:
        data = LINE_BYTES + costs.link_header_bytes
        links = {
            "link_data_ps": np.rint(data * PS_PER_S / costs.link_Bps).astype(int),
            "link_request_ps": np.rint(costs.link_request_bytes * PS_PER_S / costs.link_Bps).astype(
                int
            ),
            "entering": machine.routes.entering,
            "predecessor": machine.routes.predecessor,
            "vertices": machine.routes.vertices,
        }
    interruptions: dict[str, Any] = {}
    if (found := costs.disturbances.interruptions) is not None:
        names = [STREAM.format(f"core {k}") for k in range(workers.cores)]
        interruptions = {
            "interrupted_every_ps": found.every_ps,
            "interruption_ps": found.length_ps,
            "interruption_share": found.share,
            "interruption_keys": [stream_key(seed, replication, name) for name in names],
        }
    return PartsSetup(
        core_node=workers.core_node,
        core=workers.core,
        read_ps=line_ps,
        write_ps=line_ps * costs.written_line_times,
        latency_ps=costs.idle_s * PS_PER_S,
        handed_ps=costs.hand_overs.line_s * PS_PER_S,
        load=load,
        load_ratio=load_ratio,
        **links,
        **interruptions,
    )


class PartsModel(Protocol):
    """An event model made of these parts: ``kernel/parts.hpp``, ``reference/parts.py``."""

    @property
    def now_ps(self) -> int:
        """The time reached."""

    @property
    def events(self) -> int:
        """Events handled."""

    def run(self, until_ps: int) -> bool:
        """Handles all events before that time; False where it halts before."""

    def start_counting(self) -> None:
        """Forgets what was counted."""

    def counts(self) -> dict[str, Any]:
        """What was counted since, by name."""

    def latency(self, operation: int) -> Histogram:
        """Latencies of an operation, in ps."""

    def keep_trace(self) -> None:
        """From now on."""

    def trace(self) -> Any:
        """Rows (time_ps, event, subject, data) of what happened."""
