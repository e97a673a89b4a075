"""``SharedService`` of a machine: cores, controllers and links in picoseconds per line."""

from typing import Any

import numpy as np

from .._kernel import ServiceMachine
from ..kernel.arrays import Ints
from ..kernel.picoseconds import PS_PER_S
from .costs import LINE_BYTES, CostModel


def service_machine(
    costs: CostModel, core_node: Ints, core_threads: Ints, in_use: Ints | None = None
) -> ServiceMachine:
    """The machine of ``costs`` with cores (C,) on these nodes, so many pieces on each.

    ``in_use``: the nodes of those that work, where not all do.
    """
    machine = costs.machine
    line_ps = np.nan_to_num(LINE_BYTES * PS_PER_S / costs.memory_Bps, nan=0.0)
    load, load_ratio = costs.loaded_latency
    links: dict[str, Any] = {}
    if machine.links:
        each_ps = PS_PER_S / costs.link_Bps
        links = {
            "data_ps": (LINE_BYTES + costs.link_header_bytes) * each_ps,
            "request_ps": costs.link_request_bytes * each_ps,
            "answer_ps": costs.link_response_bytes * each_ps,
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
        stream_slots=costs.streaming_misses,
        line_max_ps=np.nan_to_num(costs.streamed_s * PS_PER_S, posinf=0.0),
        stream_stall=costs.stream_stall,
        entries=costs.home_agent_entries if costs.home_agent_entries.any() else (),
        directory_in_memory=costs.directory_in_memory,
        **links,
        **_messages(costs, core_node if in_use is None else in_use),
    )


def _messages(costs: CostModel, in_use: Ints) -> dict[str, Any]:
    """What lines read take of links beyond themselves and requests, and of limits of transfers:
    fields of ServiceMachine.
    """
    n, limits = len(costs.machine.nodes), costs.limits
    die_s = costs.die_s(np.bincount(in_use, minlength=n))
    count = limits.count(die_s)
    if not (costs.lines_make_messages or count):
        return {}
    sent = [[] for _ in range(n * n)]  # type: list[list[tuple[int, float]]]
    if costs.lines_make_messages:
        each_ps = PS_PER_S / costs.link_Bps
        for pair, of_pair in enumerate(sent):
            of_pair += [(k, size * each_ps[k]) for k, size in costs.messages_of(*divmod(pair, n))]
    for node, home, column, each_s in zip(*limits.columns(die_s), strict=True):
        sent[node * n + home].append((len(costs.link_Bps) + column, each_s * PS_PER_S))
    return {
        "limits": count,
        "snooping": n,
        "message_first": np.cumsum([0, *map(len, sent)]),
        "message_link": np.array([k for found in sent for k, _ in found], dtype=np.int64),
        "message_ps": np.array([ps for found in sent for _, ps in found]),
    }
