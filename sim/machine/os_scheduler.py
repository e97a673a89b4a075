"""Facts of the operating system's scheduler of threads, and its scheduling domains of a machine.

Rules and values are those of Linux: Documentation/scheduler/sched-domains.rst and sched-eevdf.rst,
and what kernel/sched/topology.c (sd_init) and kernel/sched/fair.c have as defaults. The rules are
written out in ``reference/os_scheduler.py``.
"""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from ...topologies.machine import Machine, Node
from .._kernel import OsDomain, OsSetup
from ..kernel.arrays import Floats

Groups = tuple[tuple[int, ...], ...]

PS_PER_MS = 1_000_000_000

TICK_PS = 4 * PS_PER_MS  # CONFIG_HZ=250, the default of Kconfig.hz
# sysctl_sched_base_slice: 0.7 ms * (1 + log2(CPUs, at most 8)) since Linux 6.13 (0.75 ms before).
BASE_SLICE_PS = 700_000_000
HOT_PS = 500_000_000  # sysctl_sched_migration_cost
# Domains that lie further away than this neither take new threads nor those woken from there:
# RECLAIM_DISTANCE, 30 in the firmware's table.
RECLAIM_DISTANCE = 30.0


class Level(IntEnum):
    """What the processors of a domain have in common."""

    CORE = 0
    CACHE = 1
    NODE = 2
    BEYOND = 3


# sd_init: from how much more load on, in percent, load is moved; after how many attempts threads
# are moved that ran just now.
IMBALANCE_PERCENT: dict[int, int] = {
    Level.CORE: 110,
    Level.CACHE: 117,
    Level.NODE: 117,
    Level.BEYOND: 117,
}
TRIES: dict[int, int] = {Level.CORE: 0, Level.CACHE: 1, Level.NODE: 1, Level.BEYOND: 2}


def base_slice_ps(cpus: int) -> int:
    """The slice that a thread has before others of its processor have theirs."""
    return BASE_SLICE_PS * min(cpus, 8).bit_length()


def scheduler_of(machine: Machine, nodes: Sequence[int]) -> OsSetup:
    """The processors (hardware threads) of these nodes (positions), and their domains; no threads.

    Processors of a core follow each other; cores are numbered as they come.
    """
    core: list[int] = []
    cache: list[int] = []
    node: list[int] = []
    for position in nodes:
        machine_node = machine.nodes[position]
        sharers = _cores_of_a_cache(machine_node)
        first, first_cache = (core[-1] + 1, cache[-1] + 1) if core else (0, 0)
        for k in range(machine_node.cores):
            for _ in range(max(machine_node.threads_per_core, 1)):
                core.append(first + k)
                cache.append(first_cache + k // sharers)
                node.append(position)
    return processors_of(core, cache, node, list(nodes), firmware_distances(machine, nodes))


def _cores_of_a_cache(node: Node) -> int:
    """Cores that share a last-level cache."""
    last = max(node.caches, key=lambda cache: cache.level, default=None)
    sharers = int(last.shared_by_cores) if last is not None else 0
    return max(min(sharers or node.cores, node.cores), 1)


def firmware_distances(machine: Machine, nodes: Sequence[int]) -> Floats:
    """Between these nodes: 10 times the latency over the local one where no SLIT tells."""
    among = np.array(nodes)[:, None], np.array(nodes)[None, :]
    if machine.slit is not None:
        found = np.asarray(machine.slit, dtype=np.float64)[among]
        if np.isfinite(found).all():
            return np.asarray(found)
    latency = np.asarray(machine.latency_ns, dtype=np.float64)[among]
    local = np.diag(latency)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.rint(10.0 * latency / local)
    found = np.asarray(np.nan_to_num(ratio, nan=20.0))
    np.fill_diagonal(found, 10.0)
    return found


def processors_of(
    core: Sequence[int],
    cache: Sequence[int],
    node: Sequence[int],
    nodes: Sequence[int],
    distance: Floats,
) -> OsSetup:
    """Processors (C,) of these cores, caches and nodes, and the domains in which load is balanced;
    a level that adds no processors is left out. Beyond a node, a level for each distance that
    occurs; its groups are the spans of the level below, and may overlap.

    The first of a domain's groups that has a processor is its local one.
    """
    cpus = range(len(core))
    spans: list[list[tuple[int, ...]]] = [[(cpu,) for cpu in cpus]]
    kinds: list[Level] = []

    def add(level: Level, span_of: list[tuple[int, ...]]) -> None:
        if span_of != spans[-1]:
            spans.append(span_of)
            kinds.append(level)

    for level, of in ((Level.CORE, core), (Level.CACHE, cache), (Level.NODE, node)):
        members: dict[int, tuple[int, ...]] = {}
        for cpu in cpus:
            members[of[cpu]] = (*members.get(of[cpu], ()), cpu)
        add(level, [members[of[cpu]] for cpu in cpus])
    at = {position: k for k, position in enumerate(nodes)}
    reach = sorted({float(d) for d in distance.ravel() if d > distance.diagonal().min()})
    reached: dict[Level | int, float] = {}
    for d in reach:
        near = [
            tuple(
                other
                for other in cpus
                if node[other] == node[cpu] or distance[at[node[cpu]], at[node[other]]] <= d
            )
            for cpu in cpus
        ]
        before = len(spans)
        add(Level.BEYOND, near)
        if len(spans) > before:
            reached[len(kinds) - 1] = d
    found: list[OsDomain] = []
    number: dict[tuple[int, Groups], int] = {}
    domains_of: list[list[int]] = [[] for _ in cpus]
    for k, level in enumerate(kinds):
        for cpu in cpus:
            groups = _groups(cpu, spans[k + 1][cpu], spans[k])
            if level is not Level.BEYOND:
                groups = tuple(sorted(groups))
            key = (k, groups)
            if key not in number:
                number[key] = len(found)
                inner = kinds[k - 1] if k else None
                found.append(
                    OsDomain(
                        level=int(level),
                        groups=[list(group) for group in groups],
                        places_new_threads=level is not Level.BEYOND
                        or reached[k] <= RECLAIM_DISTANCE,
                        spreads=inner is not None and inner is not Level.BEYOND,
                        spare=_spare(cpu, cache, node, len(spans[k + 1][cpu]), spans, kinds),
                    )
                )
            domains_of[cpu].append(number[key])
    return OsSetup(
        core=list(core),
        cache=list(cache),
        node=list(node),
        domains=found,
        domains_of=domains_of,
        tick_ps=TICK_PS,
        slice_ps=base_slice_ps(len(core)),
        hot_ps=HOT_PS,
    )


def _groups(cpu: int, span: tuple[int, ...], inner: list[tuple[int, ...]]) -> Groups:
    """Spans of the level below that cover it, its own first."""
    groups = [inner[cpu]]
    covered = set(inner[cpu])
    for other in span:
        if other not in covered:
            group = tuple(c for c in inner[other] if c in span)
            groups.append(group)
            covered.update(group)
    return tuple(groups)


def _spare(
    cpu: int,
    cache: Sequence[int],
    node: Sequence[int],
    weight: int,
    spans: list[list[tuple[int, ...]]],
    kinds: list[Level],
) -> int:
    """An eighth of a node with one last-level cache, else one thread for each; more where a level
    has more nodes than the first one beyond a node (build_sched_domains)."""
    in_node = [other for other in range(len(node)) if node[other] == node[cpu]]
    caches = len({cache[other] for other in in_node})
    few = max(len(in_node) >> 3 if caches == 1 else caches, 1)
    first = next(
        (len(spans[k + 1][cpu]) for k, kind in enumerate(kinds) if kind == Level.BEYOND), 1
    )
    return few * max(weight // max(first, 1), 1)
