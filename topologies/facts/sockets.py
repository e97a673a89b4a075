"""Which nodes are one socket, and which CPUs one core, where only the processor's name is given.

Intel MLC and ``numactl -H`` list nodes. Firmware may split a socket into several (cluster-on-die,
sub-NUMA clusters, NPS2 and NPS4): then a node has a part of its cores, cache and channels.
"""

from __future__ import annotations

import numpy as np

from ..machine import Machine
from .catalogue import Entry

Groups = tuple[tuple[int, ...], ...]
"""Positions of nodes, by socket."""


def sockets_by_latency(machine: Machine, entry: Entry) -> Groups | None:
    """Sockets of several nodes, if measured latencies have two levels; None where they do not.

    Nodes of a socket add less to the latency than the middle between the catalogue's for another
    node of the socket and for another socket.
    """
    known, ns = entry.processor.latency, machine.latency_ns
    if known.neighbour is None or np.isnan(ns).any():
        return None
    far = known.remote or known.neighbour
    if known.remote is not None:
        limit_s = (known.neighbour.value + far.value) / 2 - known.local.value
        near = ns - np.diag(ns)[:, None] < limit_s * 1e9
    else:
        near = np.ones_like(ns, dtype=bool)
    near = near & near.T
    groups = tuple(dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in near))
    return groups if _are_sockets(groups, entry) else None


def sockets_by_cpus(machine: Machine, entry: Entry) -> tuple[Groups, int] | None:
    """Sockets by how many CPUs a node has, and hardware threads of a core; None if it is no part.

    Linux numbers second threads after all first ones: a node then has two runs of numbers.
    """
    lists = {node.cpus for node in machine.nodes if node.cpus}
    counts = {len(cpus) for cpus in lists}
    if len(counts) != 1 or entry.model.cores is None:
        return None
    gaps = all(cpus[-1] - cpus[0] + 1 > len(cpus) for cpus in map(sorted, lists))
    threads, each = entry.threads_per_core if gaps else 1, counts.pop()
    size, rest = divmod(entry.model.cores * threads, each)
    able = [k for k, node in enumerate(machine.nodes) if node.cpus]
    if rest or not size or len(able) % size:
        return None
    groups = tuple(tuple(able[k : k + size]) for k in range(0, len(able), size))
    if size == 1:
        return groups, threads
    slit = machine.slit
    for group in groups:
        others = [k for k in able if k not in group]
        if slit is None or not others:
            break
        if slit[np.ix_(group, group)].max() > slit[np.ix_(group, others)].min():
            return None
    return (groups, threads) if _are_sockets(groups, entry) else None


def _are_sockets(groups: Groups, entry: Entry) -> bool:
    size = len(groups[0])
    return (
        size in entry.processor.nodes_per_socket
        and size > 1
        and all(len(group) == size for group in groups)
        and len({k for group in groups for k in group}) == size * len(groups)
        and len(groups) <= entry.processor.sockets_max
    )
