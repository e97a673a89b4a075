"""``SharedService`` of a machine: cores, controllers and links in picoseconds per line."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .costs import LINE_BYTES, CostModel
from .reference.interconnect import Routes
from .reference.memory_controller import LoadCurve
from .reference.service_machine import ServiceMachine

Ints = npt.NDArray[np.int64]

PS_PER_S = 1e12


def service_machine(costs: CostModel, core_node: Ints, core_threads: Ints) -> ServiceMachine:
    """The machine of ``costs`` with cores (C,) on these nodes, each for so many pieces at a time.

    Limits of pairs of nodes, where no links are known, are not part of it.
    """
    machine = costs.machine
    line_ps = np.nan_to_num(LINE_BYTES * PS_PER_S / costs.memory_Bps, nan=0.0)
    load, ratio = costs.loaded_latency
    each_ps = PS_PER_S / costs.link_Bps if machine.links else np.zeros(0)
    routes = machine.routes
    return ServiceMachine(
        read_ps=line_ps.tolist(),
        write_ps=(line_ps * costs.line_times(0.0, 1.0)).tolist(),
        latency_ps=(costs.idle_s * PS_PER_S).ravel().tolist(),
        curve=LoadCurve(tuple(load.tolist()), tuple(ratio.tolist())),
        core_node=core_node.tolist(),
        core_threads=core_threads.tolist(),
        data_ps=np.rint((LINE_BYTES + costs.link_header_bytes) * each_ps).astype(int).tolist()
        if machine.links
        else (),
        request_ps=np.rint(costs.link_request_bytes * each_ps).astype(int).tolist()
        if machine.links
        else (),
        routes=Routes(
            routes.entering.ravel().tolist(), routes.predecessor.ravel().tolist(), routes.vertices
        )
        if machine.links
        else Routes((), (), 0),
        entries=costs.home_agent_entries.tolist() if costs.home_agent_entries.any() else (),
        directory_in_memory=costs.directory_in_memory,
    )
