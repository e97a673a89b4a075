"""Maps a scenario's nodes and workers to this host.

Memory and processors of this host that a run may use.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..inputs import InputError
from ..inputs.quantities import counted
from ..inputs.text_lines import kernel_text
from ..topologies import Machine
from ._engine import HostFacts, host_facts


@dataclass(frozen=True)
class HostMapping:
    """``cpu`` [A]: the CPU of each worker; ``host_node`` [n]: the host's node of each of the
    scenario's. ``warnings``: in which way the host is not the machine.
    """

    cpu: tuple[int, ...]
    host_node: tuple[int, ...]
    warnings: tuple[str, ...]


def workers_that_fit(nodes: Sequence[int], host: HostFacts) -> list[int]:
    """Of the workers of ``nodes`` [A], as many as the host has CPUs: one of each node in turn."""
    room = sum(len(node.cpus) for node in host.nodes if node.may_allocate)
    turn: dict[int, int] = {}
    ranked = []
    for index, node in enumerate(nodes):
        ranked.append((turn.get(node, 0), index))
        turn[node] = turn.get(node, 0) + 1
    kept = sorted(place for _, place in sorted(ranked)[: max(room, 1)])
    return [nodes[place] for place in kept]


def map_workers(machine: Machine, worker_nodes: Sequence[int], host: HostFacts) -> HostMapping:
    """Workers of the nodes at positions ``worker_nodes`` [A] of the machine, on this host.

    The scenario's nodes are dealt to those of the host that have CPUs, in their order; the workers
    of a node get its CPUs in turn. Where the host has too few of either, they are shared.
    """
    able = [node for node in host.nodes if node.cpus and node.may_allocate]
    if not able:
        raise InputError(
            "this process may not use a CPU together with memory of its node",
            expected="a cpuset with both (see 'taskset -p' and 'numactl --show')",
        )
    order = {node: k for k, node in enumerate(dict.fromkeys(worker_nodes))}
    rest = (k for k in range(len(machine.nodes)) if k not in order)
    order |= {node: len(order) + k for k, node in enumerate(rest)}
    homes = [able[order[k] % len(able)] for k in range(len(machine.nodes))]
    dealt = dict.fromkeys((node.id for node in able), 0)
    cpus = []
    for node in worker_nodes:
        home = homes[node]
        cpus.append(home.cpus[dealt[home.id] % len(home.cpus)])
        dealt[home.id] += 1
    return HostMapping(
        tuple(cpus),
        tuple(home.id for home in homes),
        tuple(_warnings(machine, len(order.keys() & set(worker_nodes)), len(able), cpus)),
    )


def _warnings(machine: Machine, nodes: int, host_nodes: int, cpus: Sequence[int]) -> list[str]:
    found = []
    if nodes > host_nodes:
        of_host = "one node" if host_nodes == 1 else f"{host_nodes} nodes"
        found.append(
            f"{nodes} nodes of {machine.name} are mapped onto {of_host} of this host: memory that "
            "is remote there is local here"
        )
    if len(set(cpus)) < len(cpus):
        found.append(f"{len(cpus)} workers share {counted(len(set(cpus)), 'CPU')} of this host")
    return found


SHARED_MEMORY = Path("/dev/shm")
SHARE = 0.8  # of what is free, a run may take so much


def free_bytes() -> int:
    """Memory that may be had without swapping, within the limits of this process's groups."""
    return host_facts().available_bytes


def free_shared_bytes() -> int:
    """Of POSIX shared memory."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def transparent_huge_bytes() -> int | None:
    """Of this process's memory, what lies in transparent huge pages; None where nobody tells."""
    for line in kernel_text("/proc/self/smaps_rollup").splitlines():
        name, _, value = line.partition(":")
        if name == "AnonHugePages":
            return int(value.split()[0]) * 1024
    return None


def processors() -> int:
    """Hardware threads that this process may run on."""
    return len(os.sched_getaffinity(0))


def cpu_ns(pid: int) -> tuple[int, int] | None:
    """The time that a process ran, and that it waited for a processor; None where it is gone."""
    try:
        # As few calls as can be: it is asked while the processes run.
        file = os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            ran, waited, *_ = os.read(file, 256).split()
        finally:
            os.close(file)
    except (OSError, ValueError):
        return None
    return int(ran), int(waited)


def threads_waited_ns() -> int:
    """How long this process's threads have waited for a processor, together."""
    stats = map(kernel_text, Path("/proc/self/task").glob("*/schedstat"))
    return sum(int(text.split()[1]) for text in stats if text)
