"""Copy engines as the service of a machine takes them: cores that copy lines, where they are.

An engine is a core of ``SharedService``: its contexts are the threads, each copied line takes its
pipeline as long as its bandwidth says, and the lines that it may have asked for are its miss slots.
One in a hub is at a node of its own there, without memory, so that its copies take the links that
they take on the machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ...topologies.copy_engines import CopyEngine
from ...topologies.machine import Machine
from .._kernel import ServiceMachine
from ..kernel.arrays import Floats, Ints
from ..kernel.picoseconds import PS_PER_S
from .costs import LINE_BYTES, CostModel
from .reference.service_machine import MemoryUse

NONE = -1


@dataclass(frozen=True)
class EnginesInService:
    """``core`` (E,): the engines' cores in ``service``; ``of_node`` (n,): which engine threads of a
    node use, -1 for none. ``latency_s`` (E, n): of a line of each home to an engine.
    """

    service: ServiceMachine
    engines: tuple[CopyEngine, ...]
    core: tuple[int, ...]
    of_node: tuple[int, ...]
    latency_s: Floats


def line_s(engine: CopyEngine, coherent: bool = True) -> float:
    """How long a line takes an engine that nothing else holds up."""
    Bps = engine.bandwidth_Bps if coherent else engine.non_coherent_Bps
    assert Bps is not None
    return LINE_BYTES / Bps


def copied_memory(
    read: Sequence[tuple[int, float]], written: Sequence[tuple[int, float]], slots: float
) -> tuple[MemoryUse, ...]:
    """Lines of a copy by home, read before written, rising."""
    homes = sorted({home for home, _ in (*read, *written)})
    return tuple(
        MemoryUse(
            home,
            float(sum(count for node, count in read if node == home)),
            float(sum(count for node, count in written if node == home)),
            slots,
        )
        for home in homes
    )


def nearest_engines(machine: Machine) -> tuple[int, ...]:
    """(n,) the engine with the fewest links to each node, then the first; -1 for none."""
    vertices = [engine.vertex for engine in machine.copy_engines]
    if not vertices:
        return (NONE,) * len(machine.nodes)
    if not machine.links:
        return tuple(
            vertices.index(node) if node in vertices else 0 for node in range(len(machine.nodes))
        )
    return tuple(
        int(np.argmin(machine.routes.depth[node, vertices])) for node in range(len(machine.nodes))
    )


def engine_latency_s(costs: CostModel) -> Floats:
    """(E, n) of a line of each home to each engine, without load.

    Known are latencies between nodes: that of an engine at a node is its node's; one in a hub is as
    far as its nearest node, less or more the links by which it is nearer or farther.
    """
    machine, idle = costs.machine, costs.idle_s
    n, depth = len(machine.nodes), machine.routes.depth
    link_s = _link_s(costs)
    found = np.zeros((len(machine.copy_engines), n))
    for e, engine in enumerate(machine.copy_engines):
        if engine.vertex < n:
            found[e] = idle[engine.vertex]
            continue
        node = int(np.argmin(depth[:, engine.vertex]))
        for home in range(n):
            nearer = int(depth[home, engine.vertex]) - int(depth[node, home])
            found[e, home] = max(idle[node, home] + nearer * link_s, 0.0)
    return found


def _link_s(costs: CostModel) -> float:
    """What one link adds to a latency, on average over pairs that few links join."""
    machine, idle = costs.machine, costs.idle_s
    hops = machine.hops
    for least in range(1, int(np.nanmax(hops, initial=0.0)) + 1):
        near = np.argwhere(hops == least)
        added = [idle[i, j] - idle[j, j] for i, j in near if np.isfinite(idle[i, j] - idle[j, j])]
        if added:
            return float(np.mean(added)) / least
    return 0.0


def with_copy_engines(service: ServiceMachine, costs: CostModel) -> EnginesInService:
    """The service of ``costs.machine`` with its copy engines as further cores (and nodes)."""
    machine = costs.machine
    n, engines = len(machine.nodes), machine.copy_engines
    latency_s = engine_latency_s(costs) if engines else np.zeros((0, n))
    in_hubs = [e for e, engine in enumerate(engines) if engine.vertex >= n]
    more, all_nodes = len(in_hubs), n + len(in_hubs)
    latency_ps, line_max_ps = np.zeros((2, all_nodes, all_nodes))
    latency_ps[:n, :n] = np.reshape(service.latency_ps, (n, n))
    line_max_ps[:n, :n] = np.reshape(service.line_max_ps, (n, n))
    latency_ps[n:, :n] = latency_s[in_hubs] * PS_PER_S
    node = [engine.vertex for engine in engines]
    for k, e in enumerate(in_hubs):
        node[e] = n + k
    first = len(service.core_node)
    hubs = [engines[e].vertex for e in in_hubs]
    added = service.replaced(
        read_ps=[*service.read_ps, *[0.0] * more],
        write_ps=[*service.write_ps, *[0.0] * more],
        latency_ps=latency_ps,
        stream_slots=[*service.stream_slots, *[0.0] * more],
        stream_stall=[*service.stream_stall, *[0.0] * more],
        line_max_ps=line_max_ps,
        core_node=[*service.core_node, *node],
        core_threads=[*service.core_threads, *[engine.contexts for engine in engines]],
        **(_routes(machine, hubs) if more and machine.links else {}),
    )
    return EnginesInService(
        added,
        engines,
        tuple(range(first, first + len(engines))),
        nearest_engines(machine),
        latency_s,
    )


def _routes(machine: Machine, hubs: Sequence[int]) -> dict[str, Any]:
    """Routes among the nodes and a further one in each of ``hubs`` (vertices): fields of
    ServiceMachine."""
    n, more = len(machine.nodes), len(hubs)
    vertices = machine.routes.vertices + more
    # Where each vertex stands: hubs come after the further nodes.
    place = np.array([v if v < n else v + more for v in range(machine.routes.vertices)])
    entering = np.full((n + more, vertices), NONE, dtype=np.int64)
    before = np.full((n + more, vertices), NONE, dtype=np.int64)
    known = machine.routes.predecessor
    entering[:n, place] = machine.routes.entering
    before[:n, place] = np.where(known >= 0, place[known], NONE)
    for k, hub in enumerate(hubs):
        found, last_link = _tree(machine, hub)
        root = np.where(last_link == hub, n + k, place[last_link])
        entering[n + k, place] = found
        before[n + k, place] = np.where(last_link >= 0, root, NONE)
    # What leads to a hub leads to the further node in it.
    for k, hub in enumerate(hubs):
        entering[:, n + k] = entering[:, place[hub]]
        before[:, n + k] = before[:, place[hub]]
        entering[n + k, n + k] = before[n + k, n + k] = NONE
    return {"entering": entering, "predecessor": before, "vertices": vertices}


def _tree(machine: Machine, root: int) -> tuple[Ints, Ints]:
    """(v,) the link into each vertex on the way from ``root``, and the vertex before it: fewest
    links, then the widest of them, then the first."""
    count = machine.routes.vertices
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for k, edge in enumerate(machine.links):
        a, b = edge.ends
        leaving[a].append((2 * k, b))
        leaving[b].append((2 * k + 1, a))
    entering = np.full(count, NONE, dtype=np.int64)
    before = np.full(count, NONE, dtype=np.int64)
    done = np.zeros(count, dtype=bool)
    waiting: list[tuple[int, float, int, int, int]] = [(0, 0.0, NONE, NONE, root)]
    while waiting:
        links, width, link, of, vertex = heappop(waiting)
        if done[vertex]:
            continue
        done[vertex] = True
        entering[vertex], before[vertex] = link, of
        for out_edge, to in leaving[vertex]:
            if not done[to]:
                narrow = (
                    max(width, -machine.links[out_edge // 2].bandwidth_Bps)
                    if links
                    else (-machine.links[out_edge // 2].bandwidth_Bps)
                )
                heappush(waiting, (links + 1, narrow, out_edge, vertex, to))
    return entering, before
