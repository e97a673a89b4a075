"""The CPUs and memory of this host that may be measured: all that is permitted and free."""

from dataclasses import dataclass

from ...inputs import InputError
from ...inputs.number_sets import format_list, parse_list
from ...inputs.text_lines import kernel_text
from ...topologies import build_machine
from ...topologies.importers import import_machine
from ...topologies.machine import CacheLevel, Node
from ...topologies.schema import MachineDescription

# Of the memory that is free: the rest stays for page cache and for others.
MEMORY_SHARE = 0.25


@dataclass(frozen=True)
class NodeLayout:
    """A node: the CPUs that may be used, one of each core first, and memory that may be used."""

    id: int
    cpus: tuple[int, ...]
    cores: tuple[int, ...]
    memory_bytes: int
    last_cache_bytes: int


@dataclass(frozen=True)
class Layout:
    """The host as it is measured. ``notes``: what of it is left out, and why."""

    description: MachineDescription
    nodes: tuple[NodeLayout, ...]
    caches: tuple[CacheLevel, ...]
    notes: tuple[str, ...]

    @property
    def starts(self) -> tuple[NodeLayout, ...]:
        """The nodes with CPUs."""
        return tuple(node for node in self.nodes if node.cores)

    @property
    def homes(self) -> tuple[NodeLayout, ...]:
        """The nodes with memory."""
        return tuple(node for node in self.nodes if node.memory_bytes)

    @property
    def first(self) -> tuple[NodeLayout, NodeLayout]:
        """The first node with CPUs, and whose memory these use: its own, if it has any."""
        start = self.starts[0]
        return start, start if start.memory_bytes else self.homes[0]

    @property
    def cpus(self) -> tuple[int, ...]:
        """All CPUs that may be used."""
        return tuple(cpu for node in self.nodes for cpu in node.cpus)

    @property
    def cores(self) -> list[int]:
        """One CPU of each core, node after node."""
        return [cpu for node in self.starts for cpu in node.cores]

    def binding(self, node: NodeLayout) -> int:
        """The node to bind memory to; -1, none, where there is but one."""
        return node.id if len(self.nodes) > 1 else -1


def host_layout() -> Layout:
    """This host's; raises InputError where it has nothing to measure on."""
    from ...engine_native._engine import host_facts

    description = import_machine(None)
    machine = build_machine(description)
    facts = host_facts()
    engine = {node.id: node for node in facts.nodes}
    allowed = {cpu for node in facts.nodes for cpu in node.cpus}
    online = {cpu for node in machine.nodes for cpu in node.cpus}
    notes = []
    if forbidden := online - allowed:
        notes.append(
            f"CPUs {format_list(forbidden)} are forbidden to this process (cpuset or affinity): "
            "not measured"
        )
    if len(machine.nodes) > 1 and facts.binding_refused:
        raise InputError(
            "this host: memory cannot be bound to its nodes, so that they cannot be distinguished "
            f"({facts.binding_refused})"
        )
    usable_cpus = online & allowed
    first_thread = {min(siblings_of(cpu) & usable_cpus) for cpu in usable_cpus}
    nodes = []
    for node in machine.nodes:
        known = engine.get(node.id)
        if known is not None and not known.may_allocate:
            notes.append(f"memory of node {node.id} is forbidden to this process: not measured")
        usable = known is not None and known.may_allocate and node.memory_bytes != 0
        spare = facts.available_bytes // len(machine.nodes)
        free = min(known.free_bytes, spare) if known is not None and usable else 0
        cpus = tuple(cpu for cpu in node.cpus if cpu in allowed)
        cores = tuple(cpu for cpu in cpus if cpu in first_thread)
        nodes.append(
            NodeLayout(node.id, cpus, cores, int(MEMORY_SHARE * free), _last_cache_bytes(node))
        )
    if not any(node.cpus for node in nodes) or not any(node.memory_bytes for node in nodes):
        raise InputError("this host: no CPU and memory that this process may use")
    caches = next(node.caches for node in machine.nodes if node.cores)
    return Layout(description, tuple(nodes), caches, tuple(notes))


def _last_cache_bytes(node: Node) -> int:
    """Of all last-level caches of the node together."""
    last = max(node.caches, key=lambda cache: cache.level, default=None)
    if last is None:
        return 0
    return int(last.size_bytes * -(-max(node.cores, 1) // last.shared_by_cores))


def siblings_of(cpu: int) -> frozenset[int]:
    """The CPUs of its core; itself alone where the kernel does not tell others."""
    folder = f"/sys/devices/system/cpu/cpu{cpu}/topology"
    text = kernel_text(f"{folder}/core_cpus_list") or kernel_text(f"{folder}/thread_siblings_list")
    try:
        return parse_list(text) | {cpu}
    except ValueError:
        return frozenset({cpu})
