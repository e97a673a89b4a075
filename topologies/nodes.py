"""The nodes of a machine from their groups and types in its description."""

from __future__ import annotations

from ..inputs.yaml_file import Place
from .machine import CacheLevel, Node, TlbLevel
from .schema import DEFAULT_LINE_BYTES, DescriptionError, MachineDescription, NodeGroup
from .schema_types import NODES_MAX
from .values import check_unique, in_ns, or_nan, plain, si


def build_nodes(description: MachineDescription) -> tuple[Node, ...]:
    """All nodes by rising id; CPUs are numbered in the order of the file."""
    groups = [(g, index) for index, g in enumerate(description.nodes)]
    ids: list[int] = []
    for g, index in groups:
        first, last = g.id_range()
        ids += range(first, last + 1)
        if len(ids) > NODES_MAX:
            raise DescriptionError(("nodes", index), f"more than {NODES_MAX} nodes")
        if g.type not in description.node_types:
            known = ", ".join(description.node_types)
            raise DescriptionError(
                ("nodes", index, "type"), f"unknown node type: expected one of {known}"
            )
    check_unique(ids, ("nodes",), "node")
    nodes: list[Node] = []
    next_cpu = 0
    for g, index in groups:
        first, last = g.id_range()
        for offset, node_id in enumerate(range(first, last + 1)):
            node = _node(description, g, index, node_id, offset, next_cpu)
            next_cpu += node.threads
            nodes.append(node)
    check_unique([cpu for node in nodes for cpu in node.cpus], ("nodes",), "CPU")
    return tuple(sorted(nodes, key=lambda node: node.id))


def _node(
    description: MachineDescription,
    g: NodeGroup,
    index: int,
    node_id: int,
    offset: int,
    next_cpu: int,
) -> Node:
    kind = description.node_types[g.type]
    cores = kind.cores or 0
    threads = cores * kind.threads_per_core
    cpus = tuple(range(next_cpu, next_cpu + threads))
    if g.cpus is not None:
        cpus = _cpu_list(g.cpus, ("nodes", index, "cpus"))
        if not cores <= len(cpus) <= threads:
            raise DescriptionError(
                ("nodes", index, "cpus"),
                f"{len(cpus)} CPUs: expected from one per core ({cores}) to "
                f"cores × threads_per_core ({threads})",
            )
    group = g.group
    if g.group_size is not None:
        group = f"{g.group or 'group'}{offset // g.group_size}"
    memory, energy = kind.memory, kind.energy
    size = g.memory_size or memory.size
    return Node(
        id=node_id,
        cpus=cpus,
        cores=cores,
        threads_per_core=kind.threads_per_core,
        group=group,
        memory_bytes=or_nan(si(size)),
        memory_bandwidth_Bps=si(memory.bandwidth),
        memory_latency_ns=in_ns(memory.latency),
        memory_kind=memory.kind,
        side_cache_bytes=tuple(cache.size.value for cache in memory.side_caches),
        clock_Hz=si(kind.clock),
        ipc=plain(kind.ipc),
        outstanding_misses=plain(kind.outstanding_misses),
        outstanding_misses_together=plain(kind.outstanding_misses_together),
        die_Bps=si(kind.die_bandwidth),
        die_cores=kind.die_cores,
        streaming_misses=plain(kind.streaming_misses),
        reorder_window=plain(kind.reorder_window),
        caches=tuple(
            CacheLevel(
                cache.level,
                cache.size.value,
                cache.shared_by_cores,
                cache.line.value if cache.line else DEFAULT_LINE_BYTES,
                in_ns(cache.latency),
                cache.ways,
            )
            for cache in sorted(kind.caches, key=lambda cache: cache.level)
        ),
        tlbs=tuple(TlbLevel(t.page.value, t.entries, t.shared_by_cores) for t in kind.tlbs),
        core_active_W=si(energy.core_active) if energy else None,
        core_idle_W=si(energy.core_idle) if energy else None,
        memory_energy_J_per_bit=si(energy.memory) if energy else None,
        write_turnaround=plain(memory.write_turnaround),
        home_agent_entries=plain(memory.home_agent_entries),
        system_call_ns=in_ns(kind.system_call),
    )


def _cpu_list(text: str, place: Place) -> tuple[int, ...]:
    """``0-3,8`` as numbers, as the kernel writes them; an empty text is no CPU."""
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.strip().partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise DescriptionError(place, f"'{part}': expected CPU numbers such as '0-3,8'")
        low, high = int(first), int(last or first)
        if high < low or high - low > 65_536:
            raise DescriptionError(
                place, f"'{part}': expected a rising range of at most 65,536 CPUs"
            )
        cpus += range(low, high + 1)
        if len(cpus) > 65_536:
            raise DescriptionError(place, "more than 65,536 CPUs")
    return tuple(cpus)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 7
