"""``SharedService`` of a machine: cores, controllers and links in picoseconds per line."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._kernel import ServiceMachine
from .costs import LINE_BYTES, CostModel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PS_PER_S = 1e12


def service_machine(costs: CostModel, core_node: Ints, core_threads: Ints) -> ServiceMachine:
    """The machine of ``costs`` with cores (C,) on these nodes, each for so many pieces at a time.

    Limits of pairs of nodes, where no links are known, are not part of it.
    """
    machine = costs.machine
    line_ps = np.nan_to_num(LINE_BYTES * PS_PER_S / costs.memory_Bps, nan=0.0)
    load, load_ratio = costs.loaded_latency
    links: dict[str, Any] = {}
    if machine.links:
        each_ps = PS_PER_S / costs.link_Bps
        links = {
            "data_ps": np.rint((LINE_BYTES + costs.link_header_bytes) * each_ps).astype(int),
            "request_ps": np.rint(costs.link_request_bytes * each_ps).astype(int),
            "answer_ps": np.rint(costs.link_response_bytes * each_ps).astype(int),
            **_messages(costs, each_ps),
            "entering": machine.routes.entering,
            "predecessor": machine.routes.predecessor,
            "vertices": machine.routes.vertices,
        }
    return ServiceMachine(
        read_ps=line_ps,
        write_ps=line_ps * costs.written_line_times,
        latency_ps=costs.idle_s * PS_PER_S,
        load=load,
        load_ratio=load_ratio,
        core_node=core_node,
        core_threads=core_threads,
        entries=costs.home_agent_entries if costs.home_agent_entries.any() else (),
        directory_in_memory=costs.directory_in_memory,
        **links,
    )


def _messages(costs: CostModel, each_ps: Floats) -> dict[str, Any]:
    """What lines read make links carry beyond themselves and requests: fields of ServiceMachine."""
    if not costs.lines_make_messages:
        return {}
    nodes = range(len(costs.machine.nodes))
    of_pairs = [list(costs.messages_of(node, home)) for node in nodes for home in nodes]
    link = np.array([link for found in of_pairs for link, _ in found], dtype=np.int64)
    size = np.array([size for found in of_pairs for _, size in found])
    return {
        "snooping": len(nodes),
        "message_first": np.cumsum([0, *(len(found) for found in of_pairs)]),
        "message_link": link,
        "message_ps": size * each_ps[link],
    }
